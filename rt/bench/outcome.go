package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"lockstep/rt"
	"lockstep/sched"
)

// announcement says what is about to run.
func (r *run) announcement() string {
	b, out := r.bench, &strings.Builder{}
	fmt.Fprintf(out, "%s: plant %s every %g ms", b.Name, r.h.Tables.Name, float64(b.PeriodNs)/1e6)
	if k := r.h.Kernel(); k != "table" {
		fmt.Fprintf(out, ", kernel %s", k)
	}
	for _, bus := range b.Buses {
		fmt.Fprintf(out, ", bus %s on %s", bus.Name.Text, bus.Interface.Text)
	}
	switch {
	case r.unit != nil:
		fmt.Fprintf(out, ", virtual control unit %s", b.Unit.Text)
	case b.Unit.Text != "":
		fmt.Fprintf(out, " (a virtual unit for it: lockstep %s)", strings.Join(b.unitArgs(b.Buses[0].Interface.Text), " "))
	}
	fmt.Fprint(out, "; Ctrl-C ends it\n")
	if list := r.h.uncommanded(); len(list) > 0 {
		fmt.Fprintf(out, "not driven: %s\n", strings.Join(list, ", "))
	}
	for _, bus := range b.Buses {
		if n := bus.deviations(); n > 0 {
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
func (r *run) report() *Report {
	if r.target.ours() { // what was refused was told to who started it
		r.missing = join(r.missing, r.refused())
	}
	r.ledger.collect(r.page)
	if r.loop.migrated.Load() {
		r.missing = append(r.missing, sched.Missing{
			What: fmt.Sprintf("the loop lost CPU %d while it ran: it was taken offline, or somebody moved the loop", r.h.Thread.CPU),
			Help: fmt.Sprintf("leave it online: echo 1 > /sys/devices/system/cpu/cpu%d/online", r.h.Thread.CPU),
		})
	}
	v := pageReport(r.page, r.h)
	v.Bench, v.Kernel = r.bench.Name, r.h.Kernel()
	v.Overrun = r.bench.Overrun.String()
	v.BestEffort = len(r.missing) > 0
	for _, m := range r.missing {
		v.BestEffortWhy = append(v.BestEffortWhy, m.What)
		if !slices.Contains(v.BestEffortHelp, m.Help) {
			v.BestEffortHelp = append(v.BestEffortHelp, m.Help)
		}
	}
	v.Silent = r.silent()
	v.Messages, v.Dropped = received(r.page, r.h), drops(r.page, r.h)
	v.Safe, v.SafeSince = r.safe()
	v.LateTicks, v.BudgetNs = r.page.LateTicks(), cmp.Or(r.bench.BudgetNs, r.bench.PeriodNs/2)
	v.Ledger, v.LedgerLost = r.ledger.report(r.h)
	v.SafeFrames, v.SafeAfter = r.guard.frames, r.guard.first.Seconds()
	v.Buses = r.states.report()
	v.Addresses = r.claims.says()
	v.Ended, v.Clean = r.ended()
	if rt.State(r.page.State.Load()) != rt.Ended {
		still, points := r.behind(r.target.when)
		v.Still, v.Unserved = still.Seconds(), uint64(points)
	}
	r.reportUnit(v)
	return v
}

// reportUnit adds how the virtual control unit fared. A run whose unit was never
// there has tested nothing.
func (r *run) reportUnit(v *Report) {
	name := r.bench.Unit.Text
	switch {
	case r.unit == nil:
	case r.unitDie >= 0 && v.RxFrames == 0:
		v.Unit = fmt.Sprintf("%s ended before its first frame, at %.3f s: %s", name, r.unitDie, r.unit.ending())
		if v.Clean {
			v.Clean, v.Ended = false, "control unit "+v.Unit
		}
	case r.unitDie >= 0 && r.unitDie < v.SimTime:
		v.Unit = fmt.Sprintf("%s ended at %.3f s: %s", name, r.unitDie, r.unit.ending())
	case r.unit.shot:
		v.Unit = name + " did not answer and was killed"
	default:
		v.Unit = r.unit.said.last()
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
func (r *run) ended() (why string, clean bool) {
	p := r.page
	reason := rt.Reason(p.Reason.Load())
	switch {
	case rt.State(p.State.Load()) != rt.Ended && r.guard.hung != "":
		return r.guard.hung + "; the target process was killed", false
	case rt.State(p.State.Load()) != rt.Ended && r.killed:
		return "the target process was killed, as lockstep stop -now wanted", false
	case rt.State(p.State.Load()) != rt.Ended && r.target.shot:
		why := r.overdue
		if r.stop != "" {
			why = "stopped by " + r.stop
		}
		return why + "; the target process did not answer and was killed", false
	case rt.State(p.State.Load()) != rt.Ended:
		return fmt.Sprintf("the target process died (%s; last tick %d)", r.target.ending(), p.Ticks.Load()), false
	case reason == rt.TimerFailed:
		return cmp.Or(r.target.told.reason(), reason.String()), false
	}
	return r.view.ended(r.stop, r.overdue)
}

// pageReport is the part of a report that the page and the tables know.
func pageReport(p *rt.Page, h *Handover) *Report {
	v := &Report{
		Plant: h.Tables.Name, StepNs: h.Tables.PeriodNs,
		Ticks: p.Ticks.Load(), Missed: p.Missed.Load(), Late: spread(&p.Late), Tick: spread(&p.Work),
		Events: p.Events.Load(), Transitions: p.Transitions.Load(), LagMax: p.LagMax(),
		RxFrames: p.RxFrames.Load(), TxFrames: p.TxFrames.Load(),
		RxUnknown: p.RxUnknown.Load(), RxShort: p.RxShort.Load(), RxRange: p.RxRange.Load(),
		RxInvalid: p.RxInvalid.Load(), RxBad: p.RxBad.Load(), TxAgain: p.TxAgain.Load(),
		RxOverflow: p.RxOverflow.Load(), RxBadSize: p.RxBadSize.Load(), RxBound: p.RxBound.Load(), RxStale: p.RxStale.Load(),
		TxDropped: p.TxDropped.Load(), TxLost: p.TxLost.Load(), TxRefused: p.TxRefused.Load(), Saturated: p.Saturated.Load(),
		BusDown: p.BusDown.Load(), BusErrors: p.BusErrors.Load(), BusOffs: p.BusOffs.Load(),
		SimTime: float64(p.SimNs.Load()) / 1e9, BestEffortWhy: []string{},
	}
	if p.Response.N() > 0 {
		s := spread(&p.Response)
		v.Response = &s
		for _, c := range p.Response.Classes(8) {
			v.Responses = append(v.Responses, Class{c.Upper, int64(c.N)})
		}
	}
	y := make([]float64, len(h.Tables.Outputs))
	if _, ok := p.Outputs(y); ok && h.Loop.Watch.Lag >= 0 {
		v.Lag = y[h.Loop.Watch.Lag]
	}
	if rt.State(p.State.Load()) == rt.Ended {
		v.Usage = &Usage{p.Allocs.Load(), p.GCCycles.Load(), p.MinorFaults.Load(), p.MajorFaults.Load()}
		if n := float64(max(1, v.Ticks)); p.Voluntary.Load()+p.Involuntary.Load() > 0 {
			v.Switches = &Switches{float64(p.Voluntary.Load()) / n, float64(p.Involuntary.Load()) / n}
		}
	}
	return v
}

func spread(h *sched.Histogram) Spread {
	return Spread{P50: h.Quantile(0.5), P99: h.Quantile(0.99), P999: h.Quantile(0.999), Max: h.Max()}
}
