package soak

import (
	"fmt"
	"slices"
	"time"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/ecu"
	"lockstep/rt/fault"
	"lockstep/rt/report"
)

// judge holds the report and what the soak has seen itself against what a run must
// keep.
func (o *observation) judge(v *report.Report) *report.Verdict {
	d := &report.Verdict{Load: o.load}
	stopped := o.leg != nil && o.r.Stop != ""
	if stopped { // a shorter leg
		o.r.Handover.Loop.Ticks = int64(v.Ticks)
	}
	o.judgeTicks(d, v)
	if !o.disturbed() {
		o.judgeFrames(d, v)
		o.judgeUnit(d, v)
	}

	o.judgeScenario(d, v)
	if o.samples > 1 || !stopped && o.length() >= Shortest {
		o.judgeProcesses(d)
	}
	if o.over != nil {
		d.AddCriterion(false, "load", "to the end", "%v", o.over)
	}
	d.Pass = d.Failed() == nil
	return d
}

// length is how long the run is to be.
func (o *observation) length() time.Duration {
	return time.Duration(o.r.Handover.Loop.Ticks * o.r.Handover.Tables.PeriodNs)
}

// disturbed tells whether frames are disturbed on purpose: then nothing is demanded of
// them, nor of what the unit says of them.
func (o *observation) disturbed() bool {
	return o.r.Scenario.Scenario != nil && slices.ContainsFunc(o.r.Scenario.Scenario.Plan.Faults, func(f fault.Fault) bool {
		return f.Where == fault.SentFrame || f.Where == fault.ReceivedFrame || f.Where == fault.Bus
	})
}

// judgeScenario takes what the scenario expects and, of one fault of every kind, that each
// has come and gone.
func (o *observation) judgeScenario(d *report.Verdict, v *report.Report) {
	if v.Scenario != nil && len(v.Scenario.Findings) > 0 {
		broken := slices.DeleteFunc(slices.Clone(v.Scenario.Findings), func(f report.Finding) bool { return f.Held })
		first := ""
		if len(broken) > 0 {
			first = "; broken: " + broken[0].String()
		}
		n := len(v.Scenario.Findings)
		d.AddCriterion(v.Scenario.Pass, "expectations", "all of the scenario", "%d of %d held%s", n-len(broken), n, first)
	}

	if o.leg == nil || o.leg.kind != faultsLeg {
		return
	}
	over, left := 0, ""
	for slot, name := range o.r.Scenario.Scenario.FaultNames() {
		if state, _ := o.r.Status.FaultState(slot); state == fault.Over {
			over++
		} else if left == "" {
			left = fmt.Sprintf("; %s is %s", name, state)
		}
	}

	n := len(o.r.Scenario.Scenario.Faults)
	d.AddCriterion(over == n, "faults", "each comes, and goes by itself", "%d of %d%s", over, n, left)
}

// calm is before how much simulated time at the latest the plant has been seen back
// on the grid, at the end. It is never off it for more than some steps at a time.
const calm = 10 * time.Second

// wall is how long the target has ticked, real time, ns.
func (o *observation) wall() int64 {
	return max(0, o.r.Target.EndedNs-int64(o.r.Status.StartNs.Load()))
}

func (o *observation) judgeTicks(d *report.Verdict, v *report.Report) {
	h, policy := o.r.Handover, o.r.Bench.Overrun
	d.AddCriterion(v.Clean, "end", "clean", "%s", v.Ended)

	ahead := ""
	if o.ahead > 0 {
		ahead = fmt.Sprintf(", ahead of the clock when looked at %d times", o.ahead)
	}
	d.AddCriterion(int64(v.Ticks) == h.Loop.Ticks && o.wall() >= int64(v.Ticks)*v.StepNs && o.ahead == 0, "ticks",
		ticksWanted(h.Loop.Ticks, v.StepNs, o.length()), "%d in %.3f s%s", v.Ticks, float64(o.wall())/1e9, ahead)

	held, want := v.Missed == 0, "0"
	if policy.Max > 0 {
		held = o.most <= int64(policy.Max) && v.Unserved == 0
		want = fmt.Sprintf("at most %d at once", policy.Max)
	}

	d.AddCriterion(held, "missed ticks", fmt.Sprintf("%s (policy %v)", want, policy),
		"%d, %.3f %%, at most %d at once", v.Missed, 100*float64(v.Missed)/float64(max(1, v.Ticks)), o.most)
	d.AddCriterion(o.entries == v.LateTicks && o.gone == 0 && o.lost == int64(v.Missed), "ledger",
		"every late tick, every missed point",
		"%d of %d late ticks, %d of %d points", o.entries-o.gone, v.LateTicks, o.lost, v.Missed)

	if v.Lag == 0 {
		o.level = int64(v.Ticks)
	}
	since := time.Duration((int64(v.Ticks) - o.level) * v.StepNs)
	d.AddCriterion(o.level > 0 && since <= calm, "lag", "back at 0",
		"largest %.3f ms; 0 at tick %d of %d", v.LagMax*1e3, o.level, v.Ticks)

	u := v.Usage
	if u == nil {
		d.AddCriterion(false, "memory", "the target's counts", "none: it died before it could say")
		return
	}

	d.AddCriterion(u.Allocs == 0 && u.GCCycles == 0, "allocations", "0, and 0 GC cycles", "%d, %d", u.Allocs, u.GCCycles)
	d.AddCriterion(u.MinorFaults == 0 && u.MajorFaults == 0, "page faults", "0",
		"%d minor, %d major", u.MinorFaults, u.MajorFaults)
}

// judgeFrames holds what the loop counts against what is due by the cycles and
// phases of the frames. Those of missed ticks are sent under CatchUp only; a run
// that has ended at them has not stepped over them.
func (o *observation) judgeFrames(d *report.Verdict, v *report.Report) {
	due := framesDue(o.r.Handover, 1, int64(v.Ticks))
	lost := o.unsent
	switch o.r.Bench.Overrun.Policy {
	case rt.CatchUp:
		lost = 0
	case rt.Stop:
		due += lost
	}

	changing := slices.ContainsFunc(o.r.Handover.Maps, func(m *sigmap.Map) bool { // nobody can count those before
		return slices.ContainsFunc(m.Tx, func(t sigmap.Tx) bool { return t.Send != sigmap.Cyclic })
	})
	extra := int64(v.TxFrames+v.TxDropped+v.TxRefused+v.TxLost-v.TxAgain) - due
	d.AddCriterion(extra >= 0 && (extra <= o.farewell() || changing) && int64(v.TxLost) == lost, "frames out",
		fmt.Sprintf("%d due, %d of them at missed ticks", due, lost),
		"%d sent, %d dropped, %d refused, %d of missed ticks", v.TxFrames, v.TxDropped, v.TxRefused, v.TxLost)
	d.AddCriterion(v.TxDropped == 0 && v.TxRefused == 0 && v.BusDown == 0 && v.BusErrors == 0, "bus", "takes every frame",
		"dropped %d, refused %d, down for %d ticks, %d errors", v.TxDropped, v.TxRefused, v.BusDown, v.BusErrors)
	bad := v.RxUnknown + v.RxShort + v.RxBadSize + v.RxRange + v.RxInvalid + v.RxBad
	d.AddCriterion((v.RxFrames > 0 || o.r.Unit == nil) && bad == 0 && v.RxOverflow == 0, "frames in",
		"none lost, none that is wrong",
		"%d; lost %d, unknown %d, short %d, out of range %d, without a value %d, badly protected %d",
		v.RxFrames, v.RxOverflow, v.RxUnknown, v.RxShort+v.RxBadSize, v.RxRange, v.RxInvalid, v.RxBad)
}

// farewell is how many frames at most the loop sends after the last tick, with the
// safe values: each at once, then in its cycle. How many depends on how late it is.
func (o *observation) farewell() (n int64) {
	safe := &o.r.Handover.Loop.Safe
	if safe.Values == nil || safe.Ends>>o.r.Status.Reason.Load()&1 == 0 {
		return 0
	}
	for _, m := range o.r.Handover.Maps {
		for i := range m.Tx {
			n += 1 + (safe.Ticks+m.Tx[i].CycleTicks-1)/m.Tx[i].CycleTicks
		}
	}

	return n
}

// judgeUnit takes the word of the virtual control unit.
func (o *observation) judgeUnit(d *report.Verdict, v *report.Report) {
	if o.r.Unit == nil {
		return
	}
	u, err := ecu.ParseCounts(v.Unit)
	// What it sends while the loop does not read may not fit the bus.
	ok := err == nil && u.Received > 0 && u.Malformed == 0 && u.Lost == 0 && (u.Dropped == 0 || v.Missed > 0)
	d.AddCriterion(ok, "control unit", "no frame lost or malformed, no gap in their counters", "%s", v.Unit)
}

// What a process may hold more at the end than after the first tenth: the
// supervisor's ledger has a thousand entries at most, its runtime starts threads
// as it needs them; the target has all it needs from the start.
var (
	spareSupervisor = footprint{KB: 4096, Threads: 4}
	spareTarget     = footprint{KB: 64}
)

func (o *observation) judgeProcesses(d *report.Verdict) {
	if o.trouble != nil || o.samples < 2 {
		why := ""
		if o.trouble != nil {
			why = ": " + o.trouble.Error()
		}
		d.AddCriterion(false, "processes", "two looks at them after the first tenth", "%d%s", o.samples, why)
		return
	}

	for i, name := range [...]string{"supervisor", "target"} {
		if i == 0 && o.soak.Begun != nil {
			continue // it does other things as well
		}
		a, b := o.first[i], o.last[i]
		most := [...]footprint{spareSupervisor, spareTarget}[i]
		d.AddCriterion(b.KB <= a.KB+most.KB, name+" memory", fmt.Sprintf("at most %d kB, %d more than after the first tenth",
			a.KB+most.KB, most.KB), "%d kB", b.KB)
		d.AddCriterion(b.Files == a.Files, name+" files", fmt.Sprintf("%d open, as after the first tenth", a.Files), "%d", b.Files)
		d.AddCriterion(b.Threads <= a.Threads+most.Threads, name+" threads", fmt.Sprintf("at most %d",
			a.Threads+most.Threads), "%d", b.Threads)
	}
}
