package supervisor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/rt"
	"lockstep/rt/report"
	"lockstep/sched"
)

// announcement says what is about to run.
func (r *Session) announcement() string {
	b, out := r.Bench, &strings.Builder{}
	fmt.Fprintf(out, "%s: plant %s every %g ms", b.Name, r.Handover.Tables.Name, float64(b.PeriodNs)/1e6)
	if k := r.Handover.Kernel(); k != "table" {
		fmt.Fprintf(out, ", kernel %s", k)
	}
	for _, bus := range b.Buses {
		fmt.Fprintf(out, ", bus %s on %s", bus.Name.Text, bus.Interface.Text)
	}
	switch {
	case r.Unit != nil:
		fmt.Fprintf(out, ", virtual control unit %s", b.Unit.Text)
	case b.Unit.Text != "":
		fmt.Fprintf(out, " (a virtual unit for it: lockstep %s)", strings.Join(b.ControlUnitArgs(b.Buses[0].Interface.Text), " "))
	}
	fmt.Fprint(out, "; Ctrl-C ends it\n")
	if list := r.Handover.Uncommanded(); len(list) > 0 {
		fmt.Fprintf(out, "not driven: %s\n", strings.Join(list, ", "))
	}
	for _, bus := range b.Buses {
		if n := bus.Deviations(); n > 0 {
			fmt.Fprintf(out, "database %s does not keep to the format in %d places: lockstep check says where\n", bus.Database.Text, n)
		}
	}
	for _, note := range r.states.notes() {
		fmt.Fprintln(out, note)
	}
	for _, m := range r.missing {
		fmt.Fprintf(out, "best effort: %s\n", m.What)
	}
	return out.String()
}

// report collects what the page, the processes and the host say at the end.
func (r *Session) report() *report.Report {
	if r.Target.Ours() { // what was refused was told to who started it
		r.missing = join(r.missing, r.refused())
	}
	r.ledger.Collect(r.Page)
	if r.loop.migrated.Load() {
		r.missing = append(r.missing, sched.Missing{
			What: fmt.Sprintf("the loop lost CPU %d while it ran: it was taken offline, or somebody moved the loop", r.Handover.Thread.CPU),
			Help: fmt.Sprintf("leave it online: echo 1 > /sys/devices/system/cpu/cpu%d/online", r.Handover.Thread.CPU),
		})
	}
	v := report.FromPage(r.Page, r.Handover)
	v.Bench, v.Kernel = r.Bench.Name, r.Handover.Kernel()
	v.Overrun = r.Bench.Overrun.String()
	v.BestEffort = len(r.missing) > 0
	for _, m := range r.missing {
		v.BestEffortWhy = append(v.BestEffortWhy, m.What)
		if !slices.Contains(v.BestEffortHelp, m.Help) {
			v.BestEffortHelp = append(v.BestEffortHelp, m.Help)
		}
	}
	v.Silent = r.Silent()
	v.Messages, v.Dropped = report.ReceivedMessages(r.Page, r.Handover), report.DroppedFrames(r.Page, r.Handover)
	v.Safe, v.SafeSince = r.Safe()
	v.LateTicks, v.BudgetNs = r.Page.LateTicks(), cmp.Or(r.Bench.BudgetNs, r.Bench.PeriodNs/2)
	v.Ledger, v.LedgerLost = r.ledger.Report(r.Handover)
	v.SafeFrames, v.SafeAfter = r.guard.frames, r.guard.first.Seconds()
	v.Buses = r.states.report()
	v.Addresses = r.claims.says()
	v.Ended, v.Clean = r.ended()
	if rt.State(r.Page.State.Load()) != rt.Ended {
		still, points := r.Behind(r.Target.EndedNs)
		v.Still, v.Unserved = still.Seconds(), uint64(points)
	}
	r.reportUnit(v)
	return v
}

// reportUnit adds how the virtual control unit fared. A run whose unit was never
// there has tested nothing.
func (r *Session) reportUnit(v *report.Report) {
	name := r.Bench.Unit.Text
	switch {
	case r.Unit == nil:
	case r.unitDie >= 0 && v.RxFrames == 0:
		v.Unit = fmt.Sprintf("%s ended before its first frame, at %.3f s: %s", name, r.unitDie, r.Unit.HowEnded())
		if v.Clean {
			v.Clean, v.Ended = false, "control unit "+v.Unit
		}
	case r.unitDie >= 0 && r.unitDie < v.SimTime:
		v.Unit = fmt.Sprintf("%s ended at %.3f s: %s", name, r.unitDie, r.Unit.HowEnded())
	case r.Unit.Killed:
		v.Unit = name + " did not answer and was killed"
	default:
		v.Unit = r.Unit.Stdout.Last()
	}
}

// join adds what the target was refused to what the supervisor expected. Both
// begin with the thing and a colon; the reasons behind it may differ.
func join(expected, refused []sched.Missing) []sched.Missing {
	thing := func(m sched.Missing) string {
		name, _, _ := strings.Cut(m.What, ": ")
		return name
	}
	for _, m := range refused {
		if !slices.ContainsFunc(expected, func(e sched.Missing) bool { return thing(e) == thing(m) }) {
			expected = append(expected, m)
		}
	}
	return expected
}

// ended says why the run is over, and whether that is as it should be.
func (r *Session) ended() (why string, clean bool) {
	p := r.Page
	reason := rt.Reason(p.Reason.Load())
	switch {
	case rt.State(p.State.Load()) != rt.Ended && r.guard.hung != "":
		return r.guard.hung + "; the target process was killed", false
	case rt.State(p.State.Load()) != rt.Ended && r.killed:
		return "the target process was killed, as lockstep stop -now wanted", false
	case rt.State(p.State.Load()) != rt.Ended && r.Target.Killed:
		why := r.overdue
		if r.Stop != "" {
			why = "stopped by " + r.Stop
		}
		return why + "; the target process did not answer and was killed", false
	case rt.State(p.State.Load()) != rt.Ended:
		return fmt.Sprintf("the target process died (%s; last tick %d)", r.Target.HowEnded(), p.Ticks.Load()), false
	case reason == rt.TimerFailed:
		return cmp.Or(r.Target.Stderr.Reason(), reason.String()), false
	}
	return r.View.Ended(r.Stop, r.overdue)
}
