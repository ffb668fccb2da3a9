package scenario

import (
	"math"
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model/driver"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// readLane reads the key lane of the section driver: a driver who steers along a path.
func readLane(r *yamlfile.Reader, f yamlfile.Field, s *Scenario, h *bench.Handover) *fault.Lane {
	given := r.Section(f, "driver: lane", "path", "steer", "x", "y", "heading", "speed", "preview", "gain", "reaction")
	l := &fault.Lane{Settings: driver.DefaultLane(float64(h.Tables.PeriodNs) / 1e9), PathX: []float64{0}, PathY: []float64{0}}
	port := func(key, standard, unit, kind string, ports []units.Port) (int, yamlfile.Field) {
		name, at := standard, f
		if g, ok := given[key]; ok {
			name, at = r.Scalar(g, "driver: lane: "+key).Text, g
		}
		i := bench.PortIndex(ports, name)
		if i < 0 {
			r.Fail(at, "driver: lane: %s: %w", key, unknownName(kind, name, bench.PortNames(ports)))
		}
		if ports[i].Unit != unit {
			r.Fail(at, "driver: lane: %s: %s %s has the unit %s, want %s", key, kind, name, ports[i].Unit, unit)
		}
		return i, at
	}
	for _, o := range []struct {
		key, standard, unit string
		index               *int
	}{{"x", "X", "m", &l.X}, {"y", "Y", "m", &l.Y}, {"heading", "psi", "rad", &l.Heading}, {"speed", "v", "m/s", &l.Speed}} {
		*o.index, _ = port(o.key, o.standard, o.unit, "output", h.Tables.Outputs)
	}
	i, at := port("steer", "steer", "rad", "input", h.Tables.Inputs)
	in := &h.Tables.Inputs[i]
	if by := drivenBy(h, in.Name); by != "" {
		r.Fail(at, "driver: lane: steer: %s drives the input %s", by, in.Name)
	}
	if slices.ContainsFunc(s.stimuli, func(t *resolvedTarget) bool { return t.Where == fault.Input && t.Input == i }) {
		r.Fail(at, "driver: lane: steer: input %s has a stimulus: leave out the stimulus or the lane", in.Name)
	}
	if math.IsInf(in.Min, 0) || math.IsInf(in.Max, 0) {
		r.Fail(at, "driver: lane: steer: input %s has no range: give it min and max in the plant file", in.Name)
	}
	l.Steer = fault.Pedal{Input: i, Low: in.Min, High: in.Max}
	for _, k := range []struct {
		key, unit string
		at        *float64
	}{{"preview", "s", &l.Settings.Preview}, {"gain", "rad.m", &l.Settings.Gain}, {"reaction", "s", &l.Settings.Reaction}} {
		if g, ok := given[k.key]; ok {
			what := "driver: lane: " + k.key
			*k.at = bench.ReadQuantity(r, g, r.Scalar(g, what).Text, units.Want(k.unit), what)
			if err := l.Settings.Check(); err != nil {
				r.Fail(g, "%w", err)
			}
		}
	}
	if g, ok := given["path"]; ok {
		l.PathX, l.PathY = nil, nil
		for _, point := range r.Items(g, "driver: lane: path") {
			pair := r.Items(point, "driver: lane: path")
			if len(pair) != 2 {
				r.Fail(point, "driver: lane: path: [x, y] of each point is wanted")
			}
			var at [2]float64
			for i, q := range pair {
				at[i] = bench.ReadQuantity(r, q, r.Scalar(q, "driver: lane: path").Text, units.Want("m"), "driver: lane: path")
			}
			if n := len(l.PathX); n > 0 && !(at[0] > l.PathX[n-1]) {
				r.Fail(point, "driver: lane: path: %g m does not lie beyond the point before, at %g m", at[0], l.PathX[n-1])
			}
			l.PathX, l.PathY = append(l.PathX, at[0]), append(l.PathY, at[1])
		}
		if n := len(l.PathX); n == 0 || n > 64 {
			r.Fail(g, "driver: lane: path: %d points, want 1 to 64", n)
		}
	}
	return l
}
