package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/io/messages"
	"lockstep/io/yamlfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/rt/report"
)

// Errors of a bench without the sections that a change needs.
var (
	errNoIgnition = errors.New("the bench has no ignition: give its file the section network, like network: {start: off}")
	errNoPower    = errors.New("the bench switches no supply: give its file the section power, like power: {exec: ./supply.sh}")
)

// switchCommand returns the command that switches the ignition or the supply.
func switchCommand(h *bench.Handover, name, value string) (c fault.Command, err error) {
	if name == "ignition" {
		s, err := network.ParseState(value)
		if h.Loop.Network == nil {
			err = errNoIgnition
		}
		return fault.Command{Op: fault.SwitchIgnition, Slot: int(s)}, err
	}
	s, err := network.ParseSupply(value)
	virtual := h.Bench.Unit.Text != "" && h.Bench.Program == nil // in virtual time the unit itself loses its supply
	if h.Loop.Network == nil || h.Bench.Power == nil && !virtual {
		err = errNoPower
	}
	return fault.Command{Op: fault.SwitchPower, Slot: int(s)}, err
}

// readSteps reads the section steps: a list of {at: 10 s, ignition: off} and {at: 12 s, power: 9 V}, each with
// every: 20 s and times: 100 if it repeats.
func (s *Scenario) readSteps(r *yamlfile.Reader, f yamlfile.Field, h *bench.Handover) {
	const form = "steps: an entry is {at: TIME, ignition: STATE} or {at: TIME, power: on, off or a voltage}, with every: TIME and times: N if it repeats"
	for _, f := range r.Items(f, "steps") {
		if yamlfile.IsMapping(f.Node) {
			for _, g := range r.FieldsOf(f, "steps") {
				if g.Key == "uds" {
					r.FailAt(g.KeyAt, "steps: a request to the unit stands in the list diagnosis: [{uds: clear, at: 1 s}]")
				}
			}
		}
		given := r.Section(f, "steps", "at", "ignition", "power", "every", "times")
		name := "ignition"
		if given[name].IsMissing() {
			name = "power"
		}
		if given["at"].IsMissing() || given["ignition"].IsMissing() == given["power"].IsMissing() ||
			given["every"].IsMissing() != given["times"].IsMissing() {
			r.Fail(f, form)
			return
		}
		value := r.Scalar(given[name], "steps: "+name).Text
		c, err := switchCommand(h, name, value)
		if err != nil {
			r.Fail(given[name], "steps: %s: %v", name, err)
		}
		tick, err := ParseInstant(h, r.Scalar(given["at"], "steps: at").Text)
		if err != nil {
			r.Fail(given["at"], "steps: at: %v", err)
		}
		times, every := 1, int64(0)
		if g, ok := given["every"]; ok {
			times = r.Integer(given["times"], "steps: times", 1, rt.MaxPlannedStates)
			if every, err = parseTicks(h, r.Scalar(g, "steps: every").Text); err != nil || every < 1 {
				r.Fail(g, "steps: every: expected a time of at least one tick, like 20 s")
			}
		}
		last := tick + int64(times-1)*every
		if s.Ticks > 0 && last >= s.Ticks {
			r.Fail(f, "steps: %s %s at %s is not before the end of the run, at %s", name, value, s.FormatTick(last, h), s.FormatTick(s.Ticks, h))
		}
		if len(s.Plan.States)+times > rt.MaxPlannedStates {
			r.Fail(f, "steps: more than %d entries, with those of states and their repetitions", rt.MaxPlannedStates)
		}
		for i := range times {
			s.plan(fault.PlannedState{Tick: tick + int64(i)*every, Op: c.Op, Slot: c.Slot}, name+" "+value)
		}
	}
}

// plan inserts a command behind all that are planned for its tick or before.
func (s *Scenario) plan(p fault.PlannedState, text string) {
	at := len(s.Plan.States)
	for at > 0 && s.Plan.States[at-1].Tick > p.Tick {
		at--
	}
	s.Plan.States = slices.Insert(s.Plan.States, at, p)
	s.stateTexts = slices.Insert(s.stateTexts, at, text)
}

// silenceEvaluator expects that messages end within a time after the ignition has entered a state, as long as it
// stays there. It judges each time, and the first that breaks the rule counts.
type silenceEvaluator struct {
	after    network.State
	messages []message
	ns       int64

	since  int64 // tick at which the state began; 0: it is another one
	judged int   // entries of the state that were long enough
	last   message
	lastAt int64 // tick of the last frame since then; 0: none

	broken, brokenAt int64 // tick of the state, and of the first frame that came too late; 0: none
	brokenBy         message
	worst, worstAt   int64 // longest time from the state to the last frame, ticks, and the tick of that frame; -1: none
	worstBy          message
}

func (w expectSpec) resolveSilent(e *Expectation) {
	w.checkKeys("silence", "silent", "within", "after")
	name, after := w.get("silent"), w.text("after")
	v := silenceEvaluator{worst: -1}
	state, ok := strings.CutPrefix(after, "ignition ")
	var err error
	if v.after, err = network.ParseState(state); !ok || err != nil {
		w.fail(w.at, "silent: expected after: ignition STATE, like after: ignition off")
	}
	if w.h.Loop.Network == nil {
		w.fail(name, "silent: %w", errNoIgnition)
	}
	if v.messages, err = receivedFrom(w.h, name.Text); err != nil {
		w.fail(name, "silent: %w", err)
	}
	if v.ns, err = w.within(); err != nil {
		w.check("within", err)
	}
	var names []string
	for _, m := range v.messages {
		names = append(names, m.name)
	}
	e.Want = fmt.Sprintf("%s silent within %s after ignition %s", name.Text, w.text("within"), v.after)
	if len(names) > 1 || names[0] != name.Text {
		e.Want += " (" + strings.Join(names, ", ") + ")"
	}
	e.newEvaluator = func() evaluator { c := v; return &c }
}

// receivedFrom returns the message called name, or all messages of the node called name, that the bench receives.
func receivedFrom(h *bench.Handover, name string) (list []message, err error) {
	for _, m := range messagesOf(h) {
		db, err := h.Database(m.bus)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(db.Messages, func(e messages.Message) bool { return e.Name == m.name })
		if !m.sent && (m.name == name || i >= 0 && db.Messages[i].Sender == name) {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		err = fmt.Errorf("the bench receives no message called %.60s, and none of a node of that name", name)
	}
	return list, err
}

func (v *silenceEvaluator) addEntry(j *Judge, e *rt.Entry) {
	switch {
	case e.Kind == rt.KindNetwork && e.Network.Topic == network.OfIgnition:
		v.endState(j, e.Tick)
		if v.since = 0; network.State(e.Network.Value) == v.after {
			v.since, v.lastAt = e.Tick, 0
		}
	case e.Kind == rt.KindFrame && e.Fate == rt.Received && v.since > 0:
		i := slices.IndexFunc(v.messages, func(m message) bool { return m.bus == e.Bus && m.at == e.Message })
		if i < 0 {
			return
		}
		v.last, v.lastAt = v.messages[i], e.Tick
		if (e.Tick-v.since)*j.period > v.ns && v.broken == 0 {
			v.broken, v.brokenAt, v.brokenBy = v.since, e.Tick, v.last
		}
	}
}

// endState ends a stay in the state before a tick.
func (v *silenceEvaluator) endState(j *Judge, tick int64) {
	if v.since == 0 || (tick-v.since)*j.period < v.ns {
		return
	}
	v.judged++
	if last := max(0, v.lastAt-v.since); last > v.worst {
		v.worst, v.worstAt, v.worstBy = last, v.lastAt, v.last
	}
}

func (v *silenceEvaluator) finish(j *Judge, f *report.Finding) {
	v.endState(j, j.Last)
	v.since = 0
	switch {
	case v.broken > 0:
		f.Time = j.seconds(v.brokenAt)
		f.Seen = fmt.Sprintf("%s at tick %d, %.9g s after ignition %s at tick %d", v.brokenBy.name, v.brokenAt,
			j.seconds(v.brokenAt-v.broken), v.after, v.broken)
		if v.lastAt > v.brokenAt {
			f.Seen += fmt.Sprintf("; the last frame is %s at tick %d", v.last.name, v.lastAt)
		}
	case v.judged == 0:
		j.leaveOpen(f)
		f.Seen = fmt.Sprintf("not judged: the ignition was not in %s for that time", v.after)
	case v.worstAt == 0:
		f.Held, f.Seen = true, fmt.Sprintf("no frame after ignition %s, %d times", v.after, v.judged)
	default:
		f.Time = j.seconds(v.worst)
		f.Held, f.Seen = true, fmt.Sprintf("the last frame is %s at tick %d, %.9g s after ignition %s; judged %d times", v.worstBy.name,
			v.worstAt, j.seconds(v.worst), v.after, v.judged)
	}
}

func (v *silenceEvaluator) seenSoFar(*Judge) string {
	switch {
	case v.broken > 0:
		return ""
	case v.since > 0 && v.lastAt > 0:
		return fmt.Sprintf("%s at tick %d, ignition %s since tick %d", v.last.name, v.lastAt, v.after, v.since)
	}
	return fmt.Sprintf("judged %d times so far", v.judged)
}

// within reads the key within as a time, ns.
func (w expectSpec) within() (int64, error) {
	text := w.text("within")
	if text == "" {
		w.fail(w.at, "within: the time is missing (within: 50 ms)")
	}
	within, err := readTyped(text, seconds)
	if err == nil && !(within > 0 && within < 1e6) {
		err = fmt.Errorf("%s is not more than 0 s and less than 1e6 s", text)
	}
	return int64(math.RoundToEven(within * 1e9)), err
}
