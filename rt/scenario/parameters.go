package scenario

import (
	"fmt"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/kernel"
	"lockstep/model/plantfile"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/report"
)

// maxChanges is the largest number of changes of parameters in a scenario.
const maxChanges = 16

// readChanges reads the section parameters: a list of {at: 2 s, m_car: 2000 kg}. Each entry keeps the
// values of those before it.
func (s *Scenario) readChanges(r *yamlfile.Reader, f yamlfile.Field, h *bench.Handover) {
	var set []plantfile.Assignment
	for i, f := range r.Items(f, "parameters") {
		c := kernel.Change{Tick: -1}
		var text []string
		for _, g := range r.FieldsOf(f, "parameters") {
			what := "parameters: " + g.Key
			value := r.Scalar(g, what)
			if g.Key == "at" {
				var err error
				if c.Tick, err = ParseInstant(h, value.Text); err != nil {
					r.Fail(g, "%s: %v", what, err)
				}
				continue
			}
			a := plantfile.Assignment{Name: g.Key, Value: value.Text}
			set, text = append(set, a), append(text, a.String())
		}

		switch {
		case i >= maxChanges:
			r.Fail(f, "parameters: more than %d changes", maxChanges)
		case c.Tick < 0 || len(text) == 0:
			r.Fail(f, "parameters: an entry is {at: TIME, NAME: VALUE, ...}")
		case i > 0 && c.Tick <= s.Changes[i-1].Tick:
			r.Fail(f, "parameters: at: the changes are not in the order of time")
		case s.Ticks > 0 && c.Tick >= s.Ticks:
			r.Fail(f, "parameters: at: %s is not before the end of the run, at %s", s.FormatTick(c.Tick, h), s.FormatTick(s.Ticks, h))
		}

		var err error
		if c.Tables, err = h.PrepareChange(LastOf(set)); err != nil {
			r.Fail(f, "parameters: %v", err)
		}
		s.Changes = append(s.Changes, c)
		s.changeTexts = append(s.changeTexts, strings.Join(text, ", "))
	}
}

// LastOf returns the last assignment of each parameter.
func LastOf(set []plantfile.Assignment) (list []plantfile.Assignment) {
	at := map[string]int{}
	for _, a := range set {
		if i, ok := at[a.Name]; ok {
			list[i] = a
			continue
		}
		at[a.Name] = len(list)
		list = append(list, a)
	}
	return list
}

// expectChanges expects that each change of parameters takes effect.
func (s *Scenario) expectChanges(h *bench.Handover) {
	for i := range s.Changes {
		e := Expectation{Want: "from " + s.FormatTick(s.Changes[i].Tick, h), newEvaluator: func() evaluator {
			return &changeEvaluator{index: i, due: s.Changes[i].Tick}
		}}
		e.Name.Text = "parameters " + s.changeTexts[i]
		s.Expect = append(s.Expect, e)
	}
}

// changeEvaluator expects that a change of parameters takes effect.
type changeEvaluator struct {
	index   int   // number of the change, from 0
	due     int64 // planned tick
	tick    int64 // tick whose step is the first with the change; 0: none so far
	refused bool
}

func (c *changeEvaluator) addEntry(_ *Judge, e *rt.Entry) {
	if e.Kind == rt.KindChange && e.Slot == c.index {
		c.tick, c.refused = e.Tick, e.Refused
	}
}

func (c *changeEvaluator) seenSoFar(*Judge) string {
	if c.tick == 0 {
		return "not due yet, or waits"
	}
	return ""
}

func (c *changeEvaluator) finish(j *Judge, f *report.Finding) {
	f.Time = j.seconds(j.Last)
	switch {
	case c.tick == 0:
		j.leaveOpen(f)
		f.Skipped = f.Skipped && c.due > j.Last
	case c.refused:
		f.Seen = fmt.Sprintf("refused at %.9g s: the plant owed time, or a clearance would be overlapped", j.seconds(c.tick-1))
	default:
		f.Held, f.Seen = true, fmt.Sprintf("in effect from %.9g s", j.seconds(c.tick-1))
	}
}
