package plantfile

import (
	"fmt"
	"math"
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// single returns a waveform of one source.
func single(s model.Source) network.Waveform { return network.Waveform{{{Leaf: s, Signal: -1}}} }

// Bounds of a sum of products.
const (
	maxTerms   = 64
	maxFactors = 8
	maxUnroll  = 1000 // periods of a pulse that ends

	leastPeriod = 1e-6 // period of a table, a pulse or a trapezoid, s
)

// waveformKeys holds the keys of a value over time.
var waveformKeys = []string{"constant", "table", "step", "ramp", "sine", "cosine", "exp_sine", "pulse", "sawtooth",
	"trapezoid", "sum", "product"}

// tableKeys holds the options of table.
var tableKeys = []string{"units", "held", "period", "startTime"}

// waveform reads a value over time. Of an element (named) it accepts names of inputs and of signals, and
// bare times; the times, frequencies, phases and shares of an input carry their unit.
func (in *scope) waveform(f yamlfile.Field, what string, want units.Wanted, named bool) network.Waveform {
	if text, ok := yamlfile.ScalarText(f.Node); ok && named {
		if c, ok := in.namedWaveform(f, text, what, want); ok {
			return c
		}
	}

	if !yamlfile.IsMapping(f.Node) {
		return single(network.Constant(in.sized(f, what, want)))
	}
	main, options := in.oneOf(waveformKeys, f, what, "value; write a sum", append(waveformKeys, tableKeys...))
	if main.Key == "" {
		in.FailAt(f.At, "%s: empty; a value or {table: [[t, v], ...]} is wanted", what)
	}
	what += ": " + main.Key
	if main.Key != "table" {
		in.forbid(options, what, "goes with table", tableKeys...)
	}

	switch main.Key {
	case "sum":
		return in.sumWaveforms(main, what, want, named)
	case "product":
		return in.multiplyWaveforms(main, what, want, named)
	case "constant":
		return single(network.Constant(in.sized(main, what, want)))
	case "table":
		return single(in.tableSource(main, options, what, want, named))
	}

	return single(in.shape(main, what, want, named))
}

// oneOf returns the entry of f with one of keys, and the other entries, whose keys must be known.
func (l *loader) oneOf(keys []string, f yamlfile.Field, what, twice string, known []string) (
	main yamlfile.Field, options map[string]yamlfile.Field) {
	fields := l.FieldsOf(f, what)
	l.CheckKeys(fields, what, known...)
	options = map[string]yamlfile.Field{}
	for _, g := range fields {
		switch {
		case !slices.Contains(keys, g.Key):
			options[g.Key] = g
		case main.Key != "":
			l.FailAt(g.KeyAt, "%s: %s and %s in one %s", what, main.Key, g.Key, twice)
		default:
			main = g
		}
	}

	return main, options
}

// forbid refuses keys that the section has; why continues the error after the key.
func (l *loader) forbid(section map[string]yamlfile.Field, what, why string, keys ...string) {
	for _, key := range keys {
		if f, ok := section[key]; ok {
			l.FailAt(f.KeyAt, "%s: %s %s", what, key, why)
		}
	}
}

// namedWaveform resolves the name of an input, of a signal of an element, or of one that the use of
// the assembly passes; false if the name is none of them.
func (in *scope) namedWaveform(f yamlfile.Field, name, what string, want units.Wanted) (network.Waveform, bool) {
	if b, ok := in.signals[name]; ok {
		return b.scope.waveform(b.field, b.what, want, true), true
	}
	i, kind := in.signalNamed(name)
	if i < 0 {
		return nil, false
	}
	s := &in.Network.Signals[i]
	s.Read = true
	if s.At == (network.Pos{}) {
		s.At = f.At // the element may be read later
	}
	if s.Unit.Dim != want.Dim {
		in.FailAt(f.At, "%s: %s %q is in %s; %s is wanted", what, kind, name, s.Unit.SI, want.Spelled)
	}
	return network.Waveform{{{Leaf: model.Source{}, Signal: i}}}, true
}

// signalNamed returns the index of the signal of an element in the scope, of an input, or of an
// exertion, and its kind for errors; -1 if there is none.
func (in *scope) signalNamed(name string) (i int, kind string) {
	for _, full := range []string{in.prefix + name, name} {
		if i, ok := in.provided[full]; ok {
			return i, "signal"
		}
	}

	if i, ok := in.inputs[name]; ok {
		return i, "input"
	}
	for _, full := range []string{in.prefix + name, name} {
		if i := in.exertion(full); i >= 0 {
			return i, "signal"
		}
	}

	return -1, ""
}

func (in *scope) sumWaveforms(f yamlfile.Field, what string, want units.Wanted, named bool) network.Waveform {
	var all network.Waveform
	for _, g := range in.Items(f, what) {
		all = append(all, in.waveform(g, what, want, named)...)
		want = want.Difference() // further terms of a temperature
		if len(all) > maxTerms {
			in.FailAt(f.At, "%s: more than %d terms", what, maxTerms)
		}
	}

	if len(all) == 0 {
		in.FailAt(f.At, "%s: empty; values to add are wanted", what)
	}
	return all
}

// multiplyWaveforms multiplies factors out. Signals and inputs have their own units, the first factor
// has the rest of the wanted unit, and other factors are numbers.
func (in *scope) multiplyWaveforms(f yamlfile.Field, what string, want units.Wanted, named bool) network.Waveform {
	all := network.Waveform{{}}
	items := in.Items(f, what)
	if len(items) > 1 && want.Zero != 0 {
		in.FailAt(f.At, "%s: a temperature in %s cannot be multiplied; declare it in %s", what, want.Spelled, want.SI)
	}
	if len(items) > 1 {
		want = want.Difference()
	}
	each := make([]units.Wanted, len(items))
	for i, g := range items {
		each[i] = units.Want("1")
		text, scalar := yamlfile.ScalarText(g.Node)
		if s, _ := in.signalNamed(text); i == 0 || !named || scalar && s < 0 {
			continue // a number without a unit, or the rest of the wanted unit
		}
		if u, s := in.ValueUnit(g, what); s == element.UnitKnown {
			each[i] = units.Wanted{Unit: u, Spelled: u.SI}.Difference()
			if u.Dim != (units.Dim{}) {
				for d := range want.Dim {
					want.Dim[d] -= u.Dim[d]
				}
				want.Factor, want.Spelled = 1, want.Dim.String()
			}
		}
	}

	for i, g := range items {
		if i == 0 {
			each[0] = want
		}
		c := in.waveform(g, what, each[i], named)
		if len(all)*len(c) > maxTerms || len(all[0])+len(c[0]) > maxFactors {
			in.FailAt(f.At, "%s: more than %d terms or %d factors when multiplied out", what, maxTerms, maxFactors)
		}
		var next network.Waveform
		for _, a := range all {
			for _, b := range c {
				next = append(next, append(append([]network.Factor(nil), a...), b...))
			}
		}

		all = next
	}

	if len(all[0]) == 0 {
		in.FailAt(f.At, "%s: empty; values to multiply are wanted", what)
	}
	return all
}

// Signal reads a value over time and returns the index of its signal: an input, the signal of an
// element, or a new signal of that name for a source or for sums and products.
func (in *scope) Signal(f yamlfile.Field, what, name string, want units.Wanted) int {
	c := in.waveform(f, what, want, true)
	if len(c) == 1 && len(c[0]) == 1 && c[0][0].Signal >= 0 {
		return c[0][0].Signal
	}
	s := network.Signal{Name: name, At: f.At, Unit: want.Unit, Read: true, Waveform: c}
	if !slices.ContainsFunc(slices.Concat(c...), func(f network.Factor) bool { return f.Signal >= 0 }) {
		s.Source = c.Source()
		return network.Add(&in.Network.Signals, s)
	}
	s.Linear = c.Linear()
	value := in.mixed(c, s)
	i := network.Add(&in.Network.Signals, s)
	in.setLaw(i, value)
	return i
}

// mixed returns the value of a waveform that reads signals; its sources become new signals.
func (l *loader) mixed(c network.Waveform, s network.Signal) *law.Expr {
	sum := law.Number(0)
	for i, term := range c {
		var pure []network.Factor
		product := law.Number(1)
		times := func(signal int) {
			product = law.Formula("product*signal", law.Names{"product": product, "signal": network.SignalOf(signal)})
		}
		for _, f := range term {
			if f.Signal < 0 {
				pure = append(pure, f)
			} else {
				times(f.Signal)
			}
		}
		if len(pure) > 0 {
			part := network.Signal{Name: fmt.Sprintf("%s.%d", s.Name, i+1), At: s.At, Read: true}
			part.Source = network.Waveform{pure}.Source()
			times(network.Add(&l.Network.Signals, part))
		}
		sum = law.Formula("sum + product", law.Names{"sum": sum, "product": product})
	}

	return sum
}

// tableSource reads table: [[t, v], ...] with the options units, held, period and startTime.
func (in *scope) tableSource(f yamlfile.Field, options map[string]yamlfile.Field, what string,
	want units.Wanted, named bool) model.Source {
	var s model.Source
	in.CheckRows(f, what, 2)
	columns := []units.Wanted{units.Want("s"), want}
	if g, ok := options["units"]; ok {
		var err error
		if columns, err = units.SpellColumns(in.Texts(g, what+": units"), columns...); err != nil {
			in.FailAt(g.At, "%s: units: %s", what, units.Reason(err))
		}
	}
	for _, row := range in.Items(f, what) {
		pair := in.Items(row, what+": row")
		if len(pair) != 2 {
			in.FailAt(row.At, "%s: row of %d values; [time, value] is wanted", what, len(pair))
		}
		t := in.sized(pair[0], what+": time", columns[0])
		v := in.sized(pair[1], what+": value", columns[1])
		if k := len(s.T); k > 0 && !(t >= s.T[k-1]) {
			in.FailAt(row.At, "%s: time %g s comes after %g s; times must not decrease", what, t, s.T[k-1])
		}
		s.T, s.V = append(s.T, t), append(s.V, v)
	}

	if len(s.T) == 0 {
		in.FailAt(f.At, "%s: empty; at least one row [time, value] is wanted", what)
	}
	if g, ok := options["held"]; ok {
		text := in.Text(g, what+": held")
		if s.Held = text == "true"; text != "true" && text != "false" {
			in.FailAt(g.At, "%s: held: %q is neither true nor false", what, text)
		}
	}

	if g, ok := options["period"]; ok {
		s.Period = in.sized(g, what+": period", timingUnit("s", named))
		if last := s.T[len(s.T)-1]; !(s.Period >= leastPeriod && s.Period >= last && s.T[0] >= 0) {
			in.FailAt(g.At, "%s: period %g s does not hold the table, %g s to %g s", what, s.Period, s.T[0], last)
		}
	}

	s.Start = in.option(options, "startTime", what, timingUnit("s", named), 0)
	if s.Start != 0 && s.Period == 0 {
		for i := range s.T {
			s.T[i] += s.Start
		}
		s.Start = 0
	}

	return s
}

// shapeKeys holds the parameters of each shape.
var shapeKeys = map[string][]string{
	"step":      {"height", "offset", "startTime"},
	"ramp":      {"height", "duration", "offset", "startTime"},
	"sine":      {"amplitude", "f", "phase", "offset", "startTime"},
	"cosine":    {"amplitude", "f", "phase", "offset", "startTime"},
	"exp_sine":  {"amplitude", "f", "phase", "damping", "offset", "startTime"},
	"sawtooth":  {"amplitude", "period", "nperiod", "offset", "startTime"},
	"pulse":     {"amplitude", "width", "period", "nperiod", "offset", "startTime"},
	"trapezoid": {"amplitude", "rising", "width", "falling", "period", "nperiod", "offset", "startTime"},
}

// timingUnit returns the unit of a number of a waveform that is no value: a time, frequency, phase or
// share. Of an element (named) it may be bare, as the element's parameters are.
func timingUnit(unit string, named bool) units.Wanted {
	w := units.Want(unit)
	w.NeedsUnit = !named
	return w
}

// shape reads a source with parameters, with the names and meanings of Modelica.Blocks.
func (in *scope) shape(f yamlfile.Field, what string, want units.Wanted, named bool) model.Source {
	given := in.Section(f, what, shapeKeys[f.Key]...)
	get := func(key, unit string, missing float64) float64 {
		w := want
		switch {
		case unit != "":
			w = timingUnit(unit, named)
		case key != "offset":
			w = want.Difference()
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

	start, offset, need := get("startTime", "s", 0), get("offset", "", want.Zero), math.NaN()
	switch f.Key {
	case "step", "ramp":
		end := start
		if f.Key == "ramp" {
			end += length("duration")
		}
		return model.Source{T: []float64{start, end}, V: []float64{offset, offset + get("height", "", need)}}
	case "sine", "cosine", "exp_sine":
		s := network.Constant(offset)
		s.Amplitude, s.Frequency, s.Phase = get("amplitude", "", need), get("f", "Hz", need), get("phase", "rad", 0)
		s.Start = start
		if f.Key == "cosine" {
			s.Phase += math.Pi / 2
		}
		if f.Key == "exp_sine" {
			if s.Damping = get("damping", "1/s", need); !(s.Damping >= 0) {
				in.FailAt(given["damping"].At, "%s: damping %g 1/s is negative", what, s.Damping)
			}
		}
		return s
	}

	period := length("period")
	var rising, width, falling float64
	switch f.Key {
	case "sawtooth":
		rising = period
	case "pulse":
		width = period * get("width", "%", need)
	default:
		rising, width, falling = length("rising"), length("width"), length("falling")
	}

	t := []float64{0, rising, rising + width, rising + width + falling}
	if !(period >= leastPeriod && t[3] <= period && t[3] >= 0) {
		in.FailAt(f.At, "%s: a period of %g s does not hold its pulse of %g s", what, period, t[3])
	}
	high := offset + get("amplitude", "", need)
	s := model.Source{T: t, V: []float64{offset, high, high, offset}, Start: start, Period: period}
	return in.unroll(s, get("nperiod", "1", -1), f.At, what)
}

// unroll returns a periodic source that ends after n periods as a plain table; n < 0: it never ends
// and stays periodic.
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
