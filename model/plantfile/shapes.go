package plantfile

import (
	"math"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

var shapeKeys = map[string][]string{
	"step":      {"height", "offset", "startTime"},
	"ramp":      {"height", "duration", "offset", "startTime"},
	"sine":      {"amplitude", "f", "phase", "offset", "startTime"},
	"pulse":     {"amplitude", "width", "period", "nperiod", "offset", "startTime"},
	"trapezoid": {"amplitude", "rising", "width", "falling", "period", "nperiod", "offset", "startTime"},
}

// shape reads the sources that have parameters: named and meant as in Modelica.Blocks.
func (in *scope) shape(f yamlfile.Field, what string, want units.Wanted) model.Source {
	given := in.Section(f, what, shapeKeys[f.Key]...)
	get := func(key, unit string, missing float64) float64 {
		w := want
		if unit != "" {
			w = units.Want(unit)
		}
		v := in.option(given, key, what, w, missing)
		if math.IsNaN(v) {
			in.FailAt(f.At, "%s: %s is missing", what, key)
		}
		return v
	}

	length := func(key string) float64 {
		v := get(key, "s", math.NaN())
		if !(v >= 0) {
			in.FailAt(f.At, "%s: %s %g s is negative", what, key, v)
		}
		return v
	}

	start, offset, need := get("startTime", "s", 0), get("offset", "", 0), math.NaN()
	switch f.Key {
	case "step", "ramp":
		end := start
		if f.Key == "ramp" {
			end += length("duration")
		}
		return model.Source{T: []float64{start, end}, V: []float64{offset, offset + get("height", "", need)}}
	case "sine":
		s := network.Constant(offset)
		s.Amplitude, s.Frequency, s.Phase = get("amplitude", "", need), get("f", "Hz", need), get("phase", "rad", 0)
		s.Start = start
		return s
	}

	period := length("period")
	var rising, width, falling float64
	if f.Key == "pulse" {
		width = period * get("width", "%", need)
	} else {
		rising, width, falling = length("rising"), length("width"), length("falling")
	}

	t := []float64{0, rising, rising + width, rising + width + falling}
	if !(period > 0 && t[3] <= period && t[3] >= 0) {
		in.FailAt(f.At, "%s: a period of %g s does not hold its pulse of %g s", what, period, t[3])
	}
	high := offset + get("amplitude", "", need)
	s := model.Source{T: t, V: []float64{offset, high, high, offset}, Start: start, Period: period}
	return in.unroll(s, get("nperiod", "1", -1), f.At, what)
}

// unroll makes a plain table of a periodic one that ends after n periods.
func (in *scope) unroll(s model.Source, n float64, at network.Pos, what string) model.Source {
	if n < 0 {
		return s
	}
	if n != math.Trunc(n) || n > maxUnroll {
		in.FailAt(at, "%s: nperiod %g is not a whole number up to %d; -1 is for ever", what, n, maxUnroll)
	}
	once := s
	s.T, s.V, s.Start, s.Period = []float64{once.Start}, []float64{once.V[0]}, 0, 0
	for i := range int(n) {
		for j, t := range once.T {
			s.T, s.V = append(s.T, once.Start+float64(i)*once.Period+t), append(s.V, once.V[j])
		}
	}

	return s
}
