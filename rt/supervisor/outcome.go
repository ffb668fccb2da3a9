package supervisor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lockstep/io/can"
	"lockstep/io/record"
	"lockstep/rt"
	"lockstep/rt/report"
	"lockstep/sched"
)

// announcement returns the lines that describe the run at its start.
func (r *Session) announcement() string {
	b, out := r.Bench, &strings.Builder{}
	fmt.Fprintf(out, "%s: plant %s every %g ms", b.Name, r.Handover.Tables.Name, float64(b.PeriodNs)/1e6)
	if k := r.Handover.KernelInUse(); k != "table" {
		fmt.Fprintf(out, ", kernel %s", k)
	}
	for i, bus := range b.Buses {
		fmt.Fprintf(out, ", bus %s on %s", bus.Name.Text, bus.Interface.Text)
		if b.Unconnected(i) {
			fmt.Fprint(out, " with nobody at the other end")
		}
	}
	switch {
	case r.Unit != nil && b.Program != nil:
		fmt.Fprintf(out, ", control unit %s", b.Unit.Text)
	case r.Unit != nil:
		fmt.Fprintf(out, ", virtual control unit %s", b.Unit.Text)
	case b.Program != nil:
		fmt.Fprintf(out, " (its control unit %s is not started on a card)", b.Unit.Text)
	case b.Unit.Text != "":
		fmt.Fprintf(out, " (start its virtual control unit with: lockstep %s)",
			strings.Join(b.ControlUnitArgs(b.Buses[0].Interface.Text), " "))
	}

	fmt.Fprint(out, "; Ctrl-C ends it\n")
	if list := r.Handover.Uncommanded(); len(list) > 0 {
		fmt.Fprintf(out, "not commanded: %s\n", strings.Join(list, ", "))
	}
	if names, why := r.Handover.Tunable(), r.Handover.FixedParameters(); names != nil && why != nil {
		fmt.Fprintf(out, "cannot change in this run: %s: %v\n", strings.Join(names, ", "), why)
	}
	for _, bus := range b.Buses {
		if n := bus.Deviations(); n > 0 {
			fmt.Fprintf(out, "database %s breaks its format in %d places: lockstep check lists them\n",
				bus.Database.Text, n)
		}
	}

	for _, warning := range r.states.warnings() {
		fmt.Fprintln(out, warning)
	}
	for _, m := range r.missing {
		fmt.Fprintf(out, "best effort: %s\n", m.What)
	}
	return out.String()
}

// missingLostCPU says that the loop has lost its CPU.
func (r *Session) missingLostCPU() sched.Missing {
	cpu := r.Handover.Thread.CPU
	return sched.Missing{
		What: fmt.Sprintf("the loop lost CPU %d during the run: the CPU went offline, or the affinity was changed", cpu),
		Help: fmt.Sprintf("keep the CPU online: echo 1 > /sys/devices/system/cpu/cpu%d/online", cpu),
	}
}

// report makes the report from the status block, the processes and the host.
func (r *Session) report() *report.Report {
	if r.Target.IsChild() { // the target writes to its parent what the host refused
		var refused []sched.Missing
		_ = json.Unmarshal(r.Target.Stdout.Bytes(), &refused) // empty for a target that died before
		for _, m := range refused {
			if !slices.ContainsFunc(r.missing, func(e sched.Missing) bool { return e.Of == m.Of }) {
				r.missing = append(r.missing, m)
			}
		}
	}

	r.ledger.Collect(r.View)
	r.clock.Collect(r.View)
	if r.loop.migrated.Load() {
		r.missing = append(r.missing, r.missingLostCPU())
	}

	if m := r.watchdog.missingGuard(); m != nil {
		r.missing = append(r.missing, *m)
	}

	v := r.View.Report()
	v.Bench, v.Kernel, v.Overrun = r.Bench.Name, r.Handover.KernelInUse(), r.Bench.Overrun.String()
	v.BestEffort = len(r.missing) > 0
	for _, m := range r.missing {
		v.BestEffortWhy = append(v.BestEffortWhy, m.What)
		if !slices.Contains(v.BestEffortHelp, m.Help) {
			v.BestEffortHelp = append(v.BestEffortHelp, m.Help)
		}
	}

	v.LateTicks, v.BudgetNs = r.Status.LateCount(), cmp.Or(r.Bench.BudgetNs, r.Bench.PeriodNs/2)
	v.Ledger, v.LedgerLost, v.ClockSteps = r.ledger.Entries, r.ledger.Lost, r.clock.Steps
	v.SafeFrames, v.SafeAfter = r.watchdog.Frames, r.watchdog.SafeAfter.Seconds()
	v.Buses = r.states.report()
	v.Addresses, v.Ports = r.ports.lines(), r.ports.counts()
	v.Ended, v.Clean = r.outcome()
	if rt.State(r.Status.State.Load()) != rt.Ended {
		overdue, points := r.Behind(r.Target.EndedNs)
		v.Still, v.Unserved = overdue.Seconds(), uint64(points)
	}

	r.reportUnit(v)
	return v
}

// outcome returns the reason for the end of the run and whether the end was clean.
func (r *Session) outcome() (why string, clean bool) {
	p := r.Status
	reason := rt.Reason(p.Reason.Load())
	died := rt.State(p.State.Load()) != rt.Ended
	switch {
	case died && r.watchdog.Timeout != "":
		return r.watchdog.Timeout + "; the target process was killed", false
	case died && r.killed:
		return "the target process was killed by lockstep stop -now", false
	case died && r.Target.Killed:
		why := r.overdue
		if r.Stop != "" {
			why = "stopped by " + r.Stop
		}
		return why + "; the target process did not answer and was killed", false
	case died:
		return fmt.Sprintf("the target process died (%s; last tick %d)", r.Target.HowEnded(), p.Ticks.Load()), false
	case reason == rt.TimerFailed:
		return cmp.Or(r.Target.Stderr.Reason(), reason.String()), false
	}

	return r.View.Ended(r.Stop, r.overdue)
}

// report returns the states of the buses for the report.
func (s *busStates) report() (list []report.BusState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.buses {
		s.addTime(w, sched.Now())
		e := &w.errors
		v := report.BusState{
			Bus: w.bus.Name.Text, Interface: w.bus.Interface.Text, State: w.lastState, Seconds: map[string]float64{},
			ErrorFrames: e.Frames, Unread: w.unread, ErrorCounts: e.ErrorCounts,
		}
		if e.HasCounters {
			tx, rx := int(e.Tx), int(e.Rx)
			v.TxErrors, v.RxErrors = &tx, &rx
		}

		for state, ns := range w.spent {
			v.Seconds[state] = float64(ns) / 1e9
		}
		for _, c := range s.changes {
			if c.Bus == w.bus.Name.Text {
				v.Changes = append(v.Changes, c)
			}
		}

		list = append(list, v)
	}

	return list
}

// events returns the changes since the last call as events of a record.
func (s *busStates) events() (list []record.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.changes[s.recorded:] {
		list = append(list, record.Event{Kind: record.BusState, Tick: c.Tick, Time: c.Time, Text: c.Text})
	}
	s.recorded = len(s.changes)
	return list
}

// problem describes the first bus that is not active, in at most 60 columns; "" if all are.
func (s *busStates) problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.buses {
		text := w.lastState
		switch text {
		case report.BusUp, can.Active.String():
			continue
		case can.Off.String():
			text = "off"
		}

		if e := &w.errors; e.HasCounters && e.State < can.Off && w.link.Up {
			text += fmt.Sprintf(" (%d/%d)", e.Tx, e.Rx)
		}
		return fmt.Sprintf("bus %.24s is %s", w.bus.Name.Text, text)
	}

	return ""
}
