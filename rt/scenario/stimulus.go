package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
)

// findStimulus finds what a stimulus or `set` drives: an input that no bus drives, or a signal sent
// that no output drives, as SIGNAL, MESSAGE.SIGNAL or MESSAGE.SIGNAL on BUS. driven makes the error
// of another input or signal from what drives it and from its target of a fault, KEY=NAME.
func findStimulus(h *bench.Handover, name string, driven func(by, target string) error) (*resolvedTarget, error) {
	if i := bench.PortIndex(h.Tables.Inputs, name); i >= 0 {
		if by := drivenBy(h, name); by != "" {
			return nil, driven(by+" drives the input", "input="+name)
		}
		t := targetOfInput(h, i)
		t.name = name
		return t, nil
	}

	full, err := findUndriven(h, name)
	if err != nil {
		return nil, err
	}
	m, sig, err := findSignal(h, full)
	switch {
	case err != nil:
		return nil, err
	case !m.sent:
		return nil, driven("the signal is received", "signal="+name)
	}
	if port := portOf(h, m, sig); port != "" {
		return nil, driven("output "+port+" drives the signal", "signal="+name)
	}
	t, err := findSignalTarget(h, full)
	if err == nil {
		t.name = m.name + "." + sig.Name + onBus(h, m.bus)
	}
	return t, err
}

// onBus returns " on BUS" if the bench has several buses.
func onBus(h *bench.Handover, b int) string {
	if len(h.Maps) > 1 {
		return " on " + h.Bench.Buses[b].Name.Text
	}
	return ""
}

// findUndriven returns the full name of a signal sent that no output drives, from its name alone.
// It returns other names as they are; a name that is no signal is an error.
func findUndriven(h *bench.Handover, name string) (full string, err error) {
	if _, _, err := findSignal(h, name); err == nil {
		return name, nil
	}
	var found []string
	names := bench.PortNames(h.Tables.Inputs)
	for _, m := range messagesOf(h) {
		if !m.sent {
			continue
		}
		for _, f := range h.Maps[m.bus].Tx[m.at].Fields {
			if f.Index >= 0 {
				continue
			}
			if names = append(names, f.Name); f.Name == name {
				found = append(found, m.name+"."+f.Name+onBus(h, m.bus))
			}
		}
	}

	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return "", fmt.Errorf("several messages have a signal %s: write %s", name, strings.Join(found, " or "))
	case units.Meant(name, names) != "" || !namesMessage(h, name):
		return "", unknownName("input", name, names)
	}
	return name, nil
}

// namesMessage reports whether a name is MESSAGE.SIGNAL with a known message, or nearly.
func namesMessage(h *bench.Handover, name string) bool {
	message, _, dotted := strings.Cut(name, ".")
	var known []string
	for _, m := range messagesOf(h) {
		known = append(known, m.name)
	}
	return dotted && (slices.Contains(known, message) || units.Meant(message, known) != "")
}

// drive returns a command of kind Drive or Release for the target.
func (t *resolvedTarget) drive(op fault.Op) fault.Command {
	if t.Where == fault.Input {
		return fault.Command{Op: op, Input: t.Input}
	}
	return fault.Command{Op: op, Fault: t.Fault}
}

// parseStimulus reads a value for a stimulus or `set`, in the unit of package fault.
func (t *resolvedTarget) parseStimulus(text string) (float64, error) {
	v, err := t.parseLevel(text)
	if err == nil {
		err = t.checkConstant(text, v)
	}
	return v, err
}

// checkConstant is checkStimulus for a constant value, which must be whole where the target can only be
// that: a flag, a signal of one bit, or one that is a plain number of whole steps.
func (t *resolvedTarget) checkConstant(text string, v float64) error {
	if t.flag && v != 0 && v != 1 {
		return fmt.Errorf("%s is neither 0 nor 1: the input is a flag", text)
	}
	if s := t.sig; s != nil && !s.Float {
		isWhole := (s.Unit == "" || s.Unit == "-" || s.Unit == "1") && isInteger(s.Factor) && isInteger(s.Offset)
		step := (t.FromSI(t.toSI(v)) - s.Offset) / s.Factor
		if (s.Len == 1 || isWhole) && !isInteger(step) {
			return fmt.Errorf("%s is between two values of the signal: its whole steps are %s",
				text, units.WithUnit(strconv.FormatFloat(math.Abs(s.Factor), 'g', -1, 64), t.Spelled))
		}
	}
	return t.checkStimulus(text, v)
}

// isInteger reports whether v is a whole number but for the rounding of a conversion of units.
func isInteger(v float64) bool { return math.Abs(v-math.RoundToEven(v)) <= 1e-9 }

// parseWhole reads a value v of a signal, in text, as raw bits if a float64 is not exact.
func (t *resolvedTarget) parseWhole(text string, v float64) (raw uint64, ok bool) {
	if t.sig == nil || t.sig.Float || !(math.Abs(v) >= 1<<53) {
		return 0, false
	}
	if raw, ok = t.rawOfText(text); ok {
		return raw, true
	}
	number, _ := strings.CutSuffix(text, " "+t.Wanted.Spelled)
	return sigmap.ParseWhole(t.sig, number)
}

// checkStimulus refuses values, in the unit of package fault, outside the range of the target; text
// names them.
func (t *resolvedTarget) checkStimulus(text string, values ...float64) error {
	what := "input"
	if t.sig != nil {
		what = "signal"
	}
	for _, v := range values {
		if !(v >= t.lo-t.slack && v <= t.hi+t.slack) {
			return fmt.Errorf("%s is outside the range of the %s, %s", text, what, formatRange(t.toSI(t.lo), t.toSI(t.hi), t.Wanted))
		}
	}
	return nil
}

// StimulusUnit returns the unit of a stimulus by its name in a scenario.
func StimulusUnit(h *bench.Handover, name string) (unit units.Wanted, ok bool) {
	t, err := findStimulus(h, name, func(by, _ string) error { return fmt.Errorf("%s", by) })
	if err != nil {
		return unit, false
	}
	return t.Wanted, true
}

// readStimuli reads the waveforms of inputs that no bus drives and of signals sent that no output
// drives.
func readStimuli(r *yamlfile.Reader, f yamlfile.Field, s *Scenario, h *bench.Handover) {
	for _, g := range r.FieldsOf(f, "stimuli") {
		t, err := findStimulus(h, g.Key, func(by, target string) error {
			key, name, _ := strings.Cut(target, "=")
			if by = strings.TrimSuffix(by, " drives the input"); key == "input" {
				by = "input " + name + " is driven by " + by
			} else {
				by = name + ": " + by
			}
			return fmt.Errorf("%s: use a fault (faults: [{%s: %s, stuck: ...}])", by, key, name)
		})
		if err != nil {
			r.FailAt(g.KeyAt, "stimuli: %w", err)
		}
		if slices.ContainsFunc(s.stimuli, func(o *resolvedTarget) bool { return o.name == t.name }) {
			r.FailAt(g.KeyAt, "stimuli: %s has a stimulus already", t.name)
		}
		s.stimuli = append(s.stimuli, t)
		s.Plan.Stimuli = append(s.Plan.Stimuli, fault.Stimulus{
			Where: t.Where, Input: t.Input, Bus: t.Bus, Message: t.Message, Field: t.Field, Waveform: t.readWaveform(r, g),
		})
	}
}

// readWaveform reads a value or a waveform within the range of the target, in the unit of package fault.
func (t *resolvedTarget) readWaveform(r *yamlfile.Reader, f yamlfile.Field) sigmap.Waveform {
	what := "stimuli: " + t.name
	if !yamlfile.IsMapping(f.Node) {
		text := r.Scalar(f, what).Text
		v, err := t.parseLevel(text)
		if err == nil {
			err = t.checkConstant(t.Format(t.toSI(v)), v)
		}
		if err != nil {
			r.Fail(f, "%s: %w", what, err)
		}
		raw, whole := t.parseWhole(text, v)
		return sigmap.Waveform{At: []int64{0}, Value: []float64{v}, Whole: whole, Raw: raw}
	}

	c := bench.ReadWaveform(r, f, what, t.Wanted)
	for i, si := range c.Value {
		c.Value[i] = t.toFault(si)
	}
	for _, v := range []float64{slices.Min(c.Value), slices.Max(c.Value)} {
		if err := t.checkStimulus(t.Format(t.toSI(v)), v); err != nil {
			r.Fail(f, "%s: %w", what, err)
		}
	}
	return *c
}
