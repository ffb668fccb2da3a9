package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// Reading is an input or output of the plant, named as a port or by the signal that is bound to it.
type Reading struct {
	units.Wanted      // declared unit of the port, or unit of the signal
	Output       bool // an entry of y; else of u
	Index        int  // index in y or u
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
		return Reading{outputs[i].DeclaredUnit(), true, i}, nil
	}
	if i := bench.PortIndex(inputs, name); i >= 0 {
		return Reading{inputs[i].DeclaredUnit(), false, i}, checkVisible(h, i)
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
	r.Wanted = units.WantSignal(sig.Unit)
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
		if c.Limit, err = readTyped(limit, v.Wanted); err != nil {
			return list, fmt.Errorf("%s: %w", name, err)
		}
		list[i] = c
	}

	return list, nil
}

// FollowsOwn describes the waveform of the plant file that an input follows unless a fault or a live value sets it:
// "follows its own table". It returns "" for an input that a bus, a stimulus or a drive cycle drives, or that is constant.
func FollowsOwn(h *bench.Handover, input int) string {
	does := bench.DescribeSource(&h.Tables.Signals[h.Tables.InputSignal[input]].Source, h.Tables.Inputs[input].DeclaredUnit())
	if !strings.HasPrefix(does, "follows") || drivenBy(h, h.Tables.Inputs[input].Name) != "" ||
		slices.ContainsFunc(h.Loop.Faults.Stimuli, func(s fault.Stimulus) bool { return s.Where == fault.Input && s.Input == input }) ||
		h.Loop.Faults.Cycle.Drives(input) || h.Loop.Faults.Lane.Drives(input) {
		return ""
	}
	return does
}

// checkVisible refuses an input that follows the plant's own waveform: the loop does not have its
// value.
func checkVisible(h *bench.Handover, input int) error {
	name, does := h.Tables.Inputs[input].Name, FollowsOwn(h, input)
	if does == "" {
		return nil
	}

	return fmt.Errorf("input %s %s, a value that the loop does not have: "+
		"give the input a waveform (stimuli: {%s: ...}) or name an output", name, does, name)
}

// Units of times, and of numbers without dimension.
var (
	seconds = units.Want("s")
	number  = units.Want("1")
)

// readTyped reads a quantity to SI by the rule for typed text.
func readTyped(text string, unit units.Wanted) (float64, error) {
	v, err := unit.Typed(text)
	if err != nil {
		err = errors.New(bench.QuantityError(text, err))
	}
	return v, err
}

// readRate reads a difference of values in a unit per second, to SI. "0.1/s" is a number in the unit, per
// second: of a share it lacks the %.
func readRate(text string, unit units.Wanted) (float64, error) {
	unit = unit.Difference()
	perSecond := units.WantSignal(cmp.Or(unit.Spelled, "1") + "/s")
	v, err := perSecond.Typed(text)
	number, ok := strings.CutSuffix(text, "/s")
	number = strings.TrimSuffix(number, " 1")
	plain, wrong := units.Evaluate(number, nil)
	if ok && (errors.As(err, new(*units.UnknownName)) || wrong == nil && plain.Bare) {
		v, err = unit.Typed(number)
		if missing := new(units.MissingUnit); errors.As(err, &missing) {
			err = &units.MissingUnit{Text: missing.Text, Unit: perSecond.Spelled}
		}
	}
	if err != nil {
		err = errors.New(bench.QuantityError(text, err))
	}
	return v, err
}

// formatRange formats a range of SI values.
func formatRange(lo, hi float64, unit units.Wanted) string {
	return units.WithUnit(fmt.Sprintf("%.9g to %.9g", unit.FromSI(lo), unit.FromSI(hi)), unit.Spelled)
}
