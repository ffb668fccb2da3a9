package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/io/sigmap"
	"lockstep/io/yamlfile"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt"
)

// SafeState holds the values that the buses carry instead of the plant's outputs: a declared
// value for every sent output, in the cycles of its frames.
type SafeState struct {
	At     yamlfile.Scalar // position of the section; Text "" without one: the buses fall silent
	Values []SafeValue     // value of each sent output
	TimeNs int64           // time for which they are sent after an end, ns; at least the longest cycle
}

// SafeValue is the value of one output in the safe state.
type SafeValue struct {
	Port  yamlfile.Scalar
	Value yamlfile.Scalar // a number with its unit
}

// Ends holds the reactions to the ends of a run. The first five tell whether the buses carry
// the safe values for SafeState.TimeNs, or fall silent at once.
type Ends struct {
	Planned    bool // end of the run's time, Ctrl-C
	Shutdown   bool // SIGTERM: the service or the host stops
	Policy     bool // missed ticks under the policy stop
	NonFinite  bool // a state of the plant became non-finite
	TargetGone bool // the target died or hangs; the supervisor sends the safe values

	Supervisor rt.Loss // reaction to the end of the supervisor
	Bus        rt.Loss // reaction to a bus that is down or off
}

// defaultOrphanNs is the default time for which a target continues without its supervisor, ns.
const defaultOrphanNs = int64(time.Second)

func readSafeState(r *yamlfile.Reader, f yamlfile.Field) (s SafeState) {
	if f.IsMissing() {
		return s
	}
	s.At = f.Scalar("safe")
	given := r.Section(f, "safe", "values", "time")
	for _, v := range r.FieldsOf(given["values"], "safe: values") {
		s.Values = append(s.Values, SafeValue{v.KeyScalar(), r.Scalar(v, "safe: "+v.Key)})
	}
	if s.TimeNs = readNanoseconds(r, given["time"], "safe: time", 1e6, 60e9); s.TimeNs == 0 {
		r.Fail(f, "safe: the time is missing for which the values are sent after an end (time: 100 ms)")
	}
	return s
}

// end is an end of a run with its choice between safe values and silence.
type end struct {
	name    string
	safe    *bool
	reasons []rt.Reason // reasons of the loop; empty: the supervisor sends the values
}

// ends lists these ends in the order of the bench file.
func (e *Ends) ends() []end {
	return []end{
		{"planned", &e.Planned, []rt.Reason{rt.Done, rt.Stopped}},
		{"shutdown", &e.Shutdown, []rt.Reason{rt.Shutdown}},
		{"policy", &e.Policy, []rt.Reason{rt.MissedTick}},
		{"non_finite", &e.NonFinite, []rt.Reason{rt.NonFinite}},
		{"target_gone", &e.TargetGone, nil},
	}
}

// readEnds reads the section "end"; the default of a key is safe if there are safe values.
func readEnds(r *yamlfile.Reader, f yamlfile.Field, some bool) (e Ends) {
	keys := []string{"supervisor_gone", "bus_off"}
	for i, end := range e.ends() {
		keys = slices.Insert(keys, i, end.name)
	}
	s := r.Section(f, "end", keys...)
	for _, end := range e.ends() {
		word := r.Choice(s[end.name], "end: "+end.name, "safe", "silence")
		*end.safe = word == "safe" || word == "" && some
		if *end.safe && !some {
			r.Fail(s[end.name], "end: %s: safe: there is no section safe with the values", end.name)
		}
	}

	e.Supervisor = rt.Loss{Action: rt.GoEnd, AfterNs: defaultOrphanNs}
	if gone, ok := s["supervisor_gone"]; ok {
		e.Supervisor = readLoss(r, gone, "end: supervisor_gone", "safe", "stop")
	}
	e.Bus = readLoss(r, s["bus_off"], "end: bus_off")

	return e
}

// actions are the words for the reactions to a loss.
var actions = []string{rt.GoOn: "continue", rt.GoSafe: "safe", rt.GoEnd: "stop"}

// readLoss reads one of the actions; actions in later may have a delay: "safe after 500 ms".
func readLoss(r *yamlfile.Reader, f yamlfile.Field, what string, later ...string) rt.Loss {
	form := strings.Join(actions, ", ")
	if later != nil {
		form = "continue, safe after T, stop after T (T: 0 s to 3600 s)"
	}
	word, after := readAction(r, f, what, form, actions, later, 0)
	return rt.Loss{Action: rt.Action(max(0, slices.Index(actions, word))), AfterNs: after}
}

// readAction reads a word of plain, or "WORD after T" with a word of later and a time from least to
// an hour, s; form describes both in errors.
func readAction(r *yamlfile.Reader, f yamlfile.Field, what, form string, plain, later []string, least float64,
) (word string, afterNs int64) {
	text := r.Scalar(f, what).Text
	word, after, timed := strings.Cut(text, " after ")
	if !timed && slices.Contains(plain, word) {
		return word, 0
	}
	seconds, err := units.Typed(after, "s")
	if errors.As(err, new(*units.MissingUnit)) {
		r.Fail(f, "%s: %s", what, units.Reason(err))
	}
	if err != nil || !slices.Contains(later, word) || !(seconds >= least && seconds <= 3600) {
		r.Fail(f, "%s: %q is not one of: %s", what, text, form)
	}

	return word, int64(seconds * 1e9)
}

// prepareSafeValues returns the safe values that the loop sends, and the ends after which it does.
func (b *Bench) prepareSafeValues(t *kernel.Tables, maps []*sigmap.Map) (rt.SafeValues, error) {
	f := rt.SafeValues{Ticks: (b.Safe.TimeNs + b.PeriodNs - 1) / b.PeriodNs}
	if b.Safe.At.Text == "" {
		return rt.SafeValues{}, nil
	}
	f.Values = make([]float64, len(t.Outputs))
	for _, v := range b.Safe.Values {
		i := PortIndex(t.Outputs, v.Port.Text)
		if i < 0 {
			return f, b.Errorf(v.Port, "safe: plant %s has no output %q%s",
				b.Plant.Text, v.Port.Text, units.Meant(v.Port.Text, PortNames(t.Outputs)))
		}

		x, err := t.Outputs[i].DeclaredUnit().Typed(v.Value.Text)
		if err != nil {
			return f, b.Errorf(v.Value, "safe: %s: %s", v.Port.Text, QuantityError(v.Value.Text, err))
		}
		f.Values[i] = x
	}

	for i, m := range maps {
		if err := b.checkSafe(&b.Buses[i], m, t, f.Values); err != nil {
			return f, err
		}
	}

	f.Ends = 1<<rt.SupervisorGone | 1<<rt.BusLost
	for _, end := range b.End.ends() {
		for _, reason := range end.reasons {
			if *end.safe {
				f.Ends |= 1 << reason
			}
		}
	}

	return f, nil
}

// checkSafe checks that each output sent on bus has a safe value within the range of its
// signal, and that the time is at least the cycle of its frame.
func (b *Bench) checkSafe(bus *Bus, m *sigmap.Map, t *kernel.Tables, values []float64) error {
	for i := range m.Tx {
		tx := &m.Tx[i]
		if !slices.ContainsFunc(tx.Fields, func(f sigmap.Field) bool { return f.Waveform == 0 }) {
			continue // the frame carries no output of the plant
		}
		if cycle := tx.CycleTicks * b.PeriodNs; cycle > b.Safe.TimeNs {
			return b.Errorf(b.Safe.At, "safe: the time, %v, is shorter than the cycle of frame %s, %v",
				time.Duration(b.Safe.TimeNs), tx.Name, time.Duration(cycle))
		}

		for j := range tx.Fields {
			f := &tx.Fields[j]
			if f.Waveform > 0 {
				continue
			}
			name := t.Outputs[f.Index].Name
			at := slices.IndexFunc(b.Safe.Values, func(v SafeValue) bool { return v.Port.Text == name })
			if at < 0 {
				return b.Errorf(b.Safe.At, "safe: no value for %s, which bus %s sends in frame %s (%s: %s)",
					name, bus.Name.Text, tx.Name, name, units.WithUnit("0", t.Outputs[f.Index].DeclaredUnit().Spelled))
			}

			if raw := (values[f.Index] - f.Offset) / f.Factor; !(raw >= f.Lo-0.5 && raw <= f.Hi+0.5) {
				return b.Errorf(b.Safe.Values[at].Value, "safe: %s: %s is beyond the range of its signal in frame %s",
					name, b.Safe.Values[at].Value.Text, tx.Name)
			}
		}
	}

	return nil
}

// DescribeEnds describes the reaction to each end, in lines.
func (b *Bench) DescribeEnds() string {
	words := map[bool]string{true: "safe", false: "silence"}
	var list []string
	for _, end := range b.End.ends() {
		list = append(list, end.name+" "+words[*end.safe])
	}
	text := fmt.Sprintf("%s,\nsupervisor_gone %s, bus_off %s",
		strings.Join(list, ", "), formatLoss(b.End.Supervisor), formatLoss(b.End.Bus))
	if b.Safe.At.Text == "" {
		return text + "\nno safe values: the safe state is silence"
	}
	return text + fmt.Sprintf("\nsafe values for %v after an end", time.Duration(b.Safe.TimeNs))
}

// formatLoss returns a loss in the notation of a bench file.
func formatLoss(l rt.Loss) string {
	text := actions[l.Action]
	if l.AfterNs > 0 {
		text += fmt.Sprintf(" after %v", time.Duration(l.AfterNs))
	}
	return text
}
