package scenario

import (
	"fmt"
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model/kernel"
	"lockstep/model/units"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/fault"
	"lockstep/rt/report"
)

// readStates reads the section states: a list of {at: 2 s, snapshot: NAME}, {at: 3 s, reset: NAME} and
// {at: 4 s, reset: true}.
func (s *Scenario) readStates(r *yamlfile.Reader, f yamlfile.Field, h *bench.Handover) {
	const form = "states: an entry is {at: TIME, snapshot: NAME}, {at: TIME, reset: NAME} or {at: TIME, reset: true}"
	for i, f := range r.Items(f, "states") {
		given := r.Section(f, "states", "at", "snapshot", "reset")
		at := r.Scalar(given["at"], "states: at")
		snapshot, reset := r.Scalar(given["snapshot"], "states: snapshot").Text, r.Scalar(given["reset"], "states: reset").Text
		if at.Text == "" || (snapshot == "") == (reset == "") {
			r.Fail(f, form)
			return
		}
		tick, err := ParseInstant(h, at.Text)
		p := fault.PlannedState{Tick: tick, Op: fault.Restore, Slot: -1}
		text := "reset"
		switch {
		case err != nil:
			r.Fail(given["at"], "states: at: %v", err)
		case i >= rt.MaxPlannedStates:
			r.Fail(f, "states: more than %d entries", rt.MaxPlannedStates)
		case i > 0 && tick < s.Plan.States[i-1].Tick:
			r.Fail(given["at"], "states: at: the entries are not in the order of time")
		case s.Ticks > 0 && tick >= s.Ticks:
			r.Fail(given["at"], "states: at: %s is not before the end of the run, at %s", s.FormatTick(tick, h), s.FormatTick(s.Ticks, h))
		}
		switch {
		case snapshot != "":
			p.Op, p.Slot, text = fault.TakeSnapshot, s.slotOf(r, given["snapshot"], snapshot), "snapshot "+snapshot
		case reset != "true":
			if p.Slot, text = slices.Index(s.snapshots, reset), "reset "+reset; p.Slot < 0 {
				r.Fail(given["reset"], "states: reset: %v", unknownName("earlier snapshot", reset, s.snapshots))
			}
		}
		s.Plan.States, s.stateTexts = append(s.Plan.States, p), append(s.stateTexts, text)
	}
}

// slotOf returns the slot of a snapshot, which may be new.
func (s *Scenario) slotOf(r *yamlfile.Reader, f yamlfile.Field, name string) int {
	if err := checkSnapshotName(name); err != nil {
		r.Fail(f, "states: snapshot: %v", err)
	}
	slot := slices.Index(s.snapshots, name)
	if slot < 0 {
		slot, s.snapshots = len(s.snapshots), append(s.snapshots, name)
	}
	if slot >= fault.MaxSnapshots {
		r.Fail(f, "states: snapshot: more than %d names", fault.MaxSnapshots)
	}
	return slot
}

// checkSnapshotName returns why a snapshot cannot have a name.
func checkSnapshotName(name string) error {
	if !units.IsName(name, false) || len(name) > rt.MaxSnapshotName || name == "true" {
		return fmt.Errorf("%.60q is not a name: use 1 to %d letters, digits and _, not a digit first", name, rt.MaxSnapshotName)
	}
	return nil
}

// expectStates expects that each snapshot and reset has effect.
func (s *Scenario) expectStates(h *bench.Handover) {
	for i := range s.Plan.States {
		if op := s.Plan.States[i].Op; op != fault.TakeSnapshot && op != fault.Restore {
			continue // steps have effect always
		}
		e := Expectation{Want: "at " + s.FormatTick(s.Plan.States[i].Tick, h), newEvaluator: func() evaluator {
			return &stateEvaluator{index: i, due: s.Plan.States[i].Tick, tables: h.Tables}
		}}
		e.Name.Text = fmt.Sprintf("%s at %s", s.stateTexts[i], s.FormatTick(s.Plan.States[i].Tick, h))
		s.Expect = append(s.Expect, e)
	}
}

// stateEvaluator expects that a snapshot or reset has effect.
type stateEvaluator struct {
	index    int   // number of the snapshot or reset, from 0
	due      int64 // planned tick
	tick     int64 // tick whose step is the first after it; 0: none so far
	obstacle kernel.Obstacle
	tables   *kernel.Tables
}

func (c *stateEvaluator) addEntry(_ *Judge, e *rt.Entry) {
	if e.Kind == rt.KindState && e.Slot == c.index {
		c.tick, c.obstacle = e.Tick, kernel.Obstacle(e.Obstacle)
	}
}

func (c *stateEvaluator) seenSoFar(*Judge) string {
	if c.tick == 0 {
		return "not due yet"
	}
	return ""
}

func (c *stateEvaluator) finish(j *Judge, f *report.Finding) {
	f.Time = j.seconds(j.Last)
	switch {
	case c.tick == 0:
		j.leaveOpen(f)
		f.Skipped = f.Skipped && c.due > j.Last
	case c.obstacle != kernel.NoObstacle:
		f.Seen = fmt.Sprintf("refused at %.9g s: %s", j.seconds(c.tick-1), c.tables.Describe(c.obstacle))
	default:
		f.Held, f.Seen = true, fmt.Sprintf("done at %.9g s", j.seconds(c.tick-1))
	}
}
