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
	scale         // unit of its values in the file
	Output bool   // an entry of y; else of u
	Index  int    // index in y or u
	SI     string // unit in y or u
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
		return Reading{scaleOf(outputs[i].Unit), true, i, outputs[i].Unit}, nil
	}
	if i := bench.PortIndex(inputs, name); i >= 0 {
		return Reading{scaleOf(inputs[i].Unit), false, i, inputs[i].Unit}, checkVisible(h, i)
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

// scale is the unit of a number without a unit, in files and in messages. A unit that package
// model/units does not know has numbers without a unit only.
type scale struct {
	name   string
	unit   string  // unit of the same dimension, for package units
	factor float64 // SI value of one unit
	zero   float64 // SI value of the number 0
}

// scaleOf returns the scale of a unit of a plant or a database.
func scaleOf(name string) scale {
	name = cmp.Or(name, "1")
	if name == "degC" || name == "°C" {
		return scale{name, "K", 1, 273.15}
	}
	return scale{name, name, factorOf(name), 0}
}

// factorOf returns the SI value of one unit; 1 if the unit is unknown.
func factorOf(unit string) float64 {
	u, err := units.Parse(unit)
	if err != nil {
		return 1
	}
	return u.Factor
}

// toSI converts a number to SI, fromSI back.
func (m *scale) toSI(number float64) float64 { return number*m.factor + m.zero }
func (m *scale) fromSI(si float64) float64   { return (si - m.zero) / m.factor }

// Read parses a value to SI; a number without a unit is in the unit of the scale.
func (m *scale) Read(text string) (float64, error) {
	if v, ok := parseNumber(text); ok {
		return m.toSI(v), nil
	}
	return parseQuantity(text, m.unit)
}

// Difference parses a difference of values, such as a tolerance, to SI.
func (m *scale) Difference(text string) (float64, error) { return m.parseScaled(text, m.unit) }

// perSecond parses a difference per second to SI.
func (m *scale) perSecond(text string) (float64, error) { return m.parseScaled(text, "("+m.unit+")/s") }

func (m *scale) parseScaled(text, unit string) (float64, error) {
	if v, ok := parseNumber(text); ok {
		return v * m.factor, nil
	}
	return parseQuantity(text, unit)
}

func formatRange(lo, hi float64, unit string) string {
	return units.WithUnit(fmt.Sprintf("%.9g to %.9g", lo, hi), unit)
}

func parseNumber(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}

// parseQuantity parses a quantity to SI.
func parseQuantity(text, unit string) (float64, error) {
	v, err := units.Quantity(text, unit, nil)
	if err != nil {
		err = errors.New(bench.QuantityError(text, err))
	}
	return v, err
}
