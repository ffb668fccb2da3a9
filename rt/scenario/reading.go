package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// Reading is an input or output of the plant, named as a port or by the signal that is bound to it.
type Reading struct {
	scale       // declared unit of the port, or unit of the signal
	Output bool // an entry of y; else of u
	Index  int  // index in y or u
}

// Value returns the value of the reading.
func (r Reading) Value(y, u []float64) float64 {
	if r.Output {
		return y[r.Index]
	}
	return u[r.Index]
}

// FindReading finds an output, an input whose value the loop has, or a bound signal.
func FindReading(h *bench.Handover, name string) (r Reading, err error) {
	outputs, inputs := h.Tables.Outputs, h.Tables.Inputs
	if i := bench.PortIndex(outputs, name); i >= 0 {
		return Reading{scale{Wanted: outputs[i].DeclaredUnit()}, true, i}, nil
	}
	if i := bench.PortIndex(inputs, name); i >= 0 {
		return Reading{scale{Wanted: inputs[i].DeclaredUnit()}, false, i}, checkVisible(h, i)
	}
	m, sig, err := findSignal(h, name)
	if err != nil && m.msg == nil { // not a message either
		ports := append(bench.PortNames(outputs), bench.PortNames(inputs)...)
		return r, unknownName("input, output or bound signal", name, ports)
	}

	if err != nil {
		return r, err
	}
	port := portOf(h, m, sig)
	if port == "" {
		return r, fmt.Errorf("signal %s is bound to no port", name)
	}
	r, err = FindReading(h, port)
	r.scale = scaleOf(sig.Unit)
	return r, err
}

// Conditions are conditions on outputs, inputs and signals.
type Conditions = fault.Conditions

// ParseConditions parses "w1 > 1500 rpm", or two conditions joined by " and ".
func ParseConditions(h *bench.Handover, text string) (list Conditions, err error) {
	parts := strings.Split(text, " and ")
	if len(parts) > len(list) {
		return list, fmt.Errorf("%q has %d conditions; at most %d are possible", text, len(parts), len(list))
	}
	for i, p := range parts {
		at := strings.IndexAny(p, "<>")
		if at < 0 {
			return list, fmt.Errorf("%q is not of the form PORT > VALUE or PORT < VALUE", p)
		}
		limit := strings.TrimSpace(p[at+1:])
		if strings.HasPrefix(limit, "=") {
			return list, fmt.Errorf("%q: only > and < are compared", p)
		}
		name := strings.TrimSpace(p[:at])
		v, err := FindReading(h, name)
		if err != nil {
			return list, err
		}
		c := fault.Condition{Set: true, Output: v.Output, Above: p[at] == '>', Index: v.Index}
		if c.Limit, err = v.Read(limit); err != nil {
			return list, fmt.Errorf("%s: %w", name, err)
		}
		list[i] = c
	}

	return list, nil
}

// checkVisible refuses an input that follows the plant's own waveform: the loop does not have its
// value.
func checkVisible(h *bench.Handover, input int) error {
	name := h.Tables.Inputs[input].Name
	does := bench.DescribeSource(&h.Tables.Signals[h.Tables.InputSignal[input]].Source, h.Tables.Inputs[input].DeclaredUnit())
	if !strings.HasPrefix(does, "follows") || drivenBy(h, name) != "" ||
		slices.ContainsFunc(h.Loop.Faults.Stimuli, func(s fault.Stimulus) bool { return s.Input == input }) {
		return nil
	}

	return fmt.Errorf("input %s %s, a value that the loop does not have: "+
		"give the input a waveform (stimuli: {%s: ...}) or name an output", name, does, name)
}

// scale is the unit in which people read and type values: the declared unit of a port, or the unit of
// a signal in its database.
type scale struct {
	units.Wanted
	unknown bool // a unit of a database that package units does not know: values are bare numbers
}

// scaleOf returns the scale of a unit of a database.
func scaleOf(name string) scale {
	w, err := units.ParseWanted(name)
	if err != nil {
		return scale{units.Wanted{Unit: units.Unit{Factor: 1}, Spelled: name}, true}
	}
	return scale{Wanted: w}
}

// Read reads a value to SI.
func (m *scale) Read(text string) (float64, error) { return m.read(text, m.Wanted) }

// ReadDifference reads a difference of values, such as a tolerance, to SI.
func (m *scale) ReadDifference(text string) (float64, error) {
	return m.read(text, m.Difference())
}

// readRate reads a difference per second to SI.
func (m *scale) readRate(text string) (float64, error) {
	per := m.Difference()
	if number, ok := strings.CutSuffix(text, "/s"); ok && per.Dim == (units.Dim{}) {
		return m.read(strings.TrimSuffix(number, " 1"), per) // "0.1/s" is not an expression of package units
	}
	if !m.unknown {
		per = units.Want(cmp.Or(per.Spelled, "1") + "/s")
	}
	return m.read(text, per)
}

func (m *scale) read(text string, unit units.Wanted) (float64, error) {
	if !m.unknown {
		return readTyped(text, unit)
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number; the unit %q of the signal is not known, so its values are bare numbers",
			text, m.Spelled)
	}
	return v, nil
}

// format formats an SI value with up to so many digits.
func (m *scale) format(si float64, digits int) string {
	return units.WithUnit(strconv.FormatFloat(m.FromSI(si), 'g', digits, 64), m.Spelled)
}

// formatRange formats a range of SI values.
func (m *scale) formatRange(lo, hi float64) string {
	return units.WithUnit(fmt.Sprintf("%.9g to %.9g", m.FromSI(lo), m.FromSI(hi)), m.Spelled)
}

// Units of times, and of numbers without dimension.
var (
	seconds = units.Want("s")
	number  = units.Want("1")
)

// readTyped reads a quantity to SI by the rule for typed text.
func readTyped(text string, unit units.Wanted) (float64, error) {
	v, err := unit.Typed(text)
	if missing := new(units.MissingUnit); errors.As(err, &missing) {
		return 0, missing
	}
	if err != nil {
		err = errors.New(bench.QuantityError(text, err))
	}
	return v, err
}
