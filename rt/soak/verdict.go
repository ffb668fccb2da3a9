package soak

import (
	"fmt"
	"slices"
	"time"

	"lockstep/io/sigmap"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/ecu"
	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/rt/report"
	"lockstep/rt/unitprogram"
)

// verdict checks the report and the observation against the criteria.
func (o *observation) verdict(v *report.Report) *report.Verdict {
	d := &report.Verdict{Load: o.load}
	stopped := o.segment != nil && o.r.Stop != ""
	if stopped { // the segment is as long as it came
		o.r.Handover.Loop.Ticks = int64(v.Ticks)
	}
	o.checkTicks(d, v)
	if !o.disturbed() {
		o.checkFrames(d, v)
		o.checkUnit(d, v)
	}

	o.checkScenario(d, v)
	if o.samples > 1 || !stopped && o.length() >= MinDuration {
		o.checkProcesses(d)
	}
	if o.loadErr != nil {
		d.AddCriterion(false, "load", "to the end", "%v", o.loadErr)
	}
	d.Pass = d.Failed() == nil
	return d
}

// length returns the planned length of the run.
func (o *observation) length() time.Duration {
	return time.Duration(o.r.Handover.Loop.Ticks * o.r.Handover.Tables.PeriodNs)
}

// disturbed reports whether the scenario disturbs frames or a bus. The criteria of frames and of
// the control unit do not apply then.
func (o *observation) disturbed() bool {
	return o.r.Scenario.Scenario != nil && slices.ContainsFunc(o.r.Scenario.Scenario.Plan.Faults, func(f fault.Fault) bool {
		return f.Where == fault.SentFrame || f.Where == fault.ReceivedFrame || f.Where == fault.Bus
	})
}

// checkScenario checks the expectations of the scenario. In a segment with one fault of every kind,
// it checks that each fault has started and ended.
func (o *observation) checkScenario(d *report.Verdict, v *report.Report) {
	if v.Scenario != nil && len(v.Scenario.Findings) > 0 {
		broken := slices.DeleteFunc(slices.Clone(v.Scenario.Findings), func(f report.Finding) bool { return !f.Broken() })
		first, held := "", 0
		for i := range v.Scenario.Findings {
			if v.Scenario.Findings[i].Held {
				held++
			}
		}
		if len(broken) > 0 {
			first = "; broken: " + broken[0].String()
		}
		n := len(v.Scenario.Findings)
		d.AddCriterion(v.Scenario.Pass, "expectations", "all of the scenario", "%d of %d held%s", held, n, first)
	}

	if o.segment == nil || o.segment.kind != faultsSegment {
		return
	}
	over, first := 0, ""
	for slot, name := range o.r.Scenario.Scenario.FaultNames() {
		if state, _ := o.r.Status.FaultState(slot); state == fault.Over {
			over++
		} else if first == "" {
			first = fmt.Sprintf("; %s is %s", name, state)
		}
	}

	n := len(o.r.Scenario.Scenario.Faults)
	d.AddCriterion(over == n, "faults", "each starts, and ends by itself", "%d of %d%s", over, n, first)
}

// maxOffGrid is the maximum simulated time from the last tick without lag to the end. The lag lasts
// a few steps at a time.
const maxOffGrid = 10 * time.Second

// wall returns the real time from the first grid point to the end of the target, ns.
func (o *observation) wall() int64 {
	return max(0, o.r.Target.EndedNs-int64(o.r.Status.StartNs.Load()))
}

func (o *observation) checkTicks(d *report.Verdict, v *report.Report) {
	h, policy := o.r.Handover, o.r.Bench.Overrun
	d.AddCriterion(v.Clean, "end", "clean", "%s", v.Ended)

	ahead := ""
	if o.ahead > 0 {
		ahead = fmt.Sprintf(", ahead of the clock in %d polls", o.ahead)
	}
	d.AddCriterion(int64(v.Ticks) == h.Loop.Ticks && o.wall() >= int64(v.Ticks)*v.StepNs && o.ahead == 0, "ticks",
		expectedTicks(h.Loop.Ticks, v.StepNs, o.length()), "%d in %.3f s%s", v.Ticks, float64(o.wall())/1e9, ahead)

	held, want := v.Missed == 0, "0"
	if policy.Max > 0 {
		held = o.maxLost <= int64(policy.Max) && v.Unserved == 0
		want = fmt.Sprintf("at most %d at once", policy.Max)
	}

	d.AddCriterion(held, "missed ticks", fmt.Sprintf("%s (policy %v)", want, policy),
		"%d, %.3f %%, at most %d at once", v.Missed, 100*float64(v.Missed)/float64(max(1, v.Ticks)), o.maxLost)
	d.AddCriterion(o.entries == v.LateTicks && o.overwritten == 0 && o.lost == int64(v.Missed), "ledger",
		"every late tick, every missed point",
		"%d of %d late ticks, %d of %d points", o.entries-o.overwritten, v.LateTicks, o.lost, v.Missed)

	if v.Lag == 0 {
		o.onGridTick = int64(v.Ticks)
	}
	since := time.Duration((int64(v.Ticks) - o.onGridTick) * v.StepNs)
	d.AddCriterion(o.onGridTick > 0 && since <= maxOffGrid, "lag", "back at 0",
		"largest %.3f ms; 0 at tick %d of %d", v.LagMax*1e3, o.onGridTick, v.Ticks)

	u := v.Usage
	if u == nil {
		d.AddCriterion(false, "memory", "the target's counts", "none: the target died before its report")
		return
	}

	d.AddCriterion(u.Allocs == 0 && u.GCCycles == 0, "allocations", "0, and 0 GC cycles", "%d, %d", u.Allocs, u.GCCycles)
	d.AddCriterion(u.MinorFaults == 0 && u.MajorFaults == 0, "page faults", "0",
		"%d minor, %d major", u.MinorFaults, u.MajorFaults)
}

// checkFrames checks the counts of the loop against the frames due by their cycles and phases.
// Frames of missed ticks are sent under CatchUp only. Under Stop, the missed ticks that ended the
// run are not among its ticks.
func (o *observation) checkFrames(d *report.Verdict, v *report.Report) {
	due := framesDue(o.r.Handover, 1, int64(v.Ticks))
	lost := o.unsentDue
	switch o.r.Bench.Overrun.Policy {
	case rt.CatchUp:
		lost = 0
	case rt.Stop:
		due += lost
	}

	changing := slices.ContainsFunc(o.r.Handover.Maps, func(m *sigmap.Map) bool { // not countable in advance
		return slices.ContainsFunc(m.Tx, func(t sigmap.Tx) bool { return t.Send != sigmap.Cyclic })
	})
	extra := int64(v.TxFrames+v.TxDropped+v.TxRefused+v.TxLost-v.TxAgain) - due
	idle := idleFrames(o.r.Handover, int64(v.Ticks))
	d.AddCriterion(extra+idle >= 0 && (extra <= o.maxSafeFrames() || changing) &&
		(int64(v.TxLost) == lost || idle > 0 && int64(v.TxLost) < lost), "frames out",
		fmt.Sprintf("%d due, %d of them at missed ticks", due, lost),
		"%d sent, %d dropped, %d refused, %d of missed ticks", v.TxFrames, v.TxDropped, v.TxRefused, v.TxLost)
	d.AddCriterion(v.TxDropped == 0 && v.TxRefused == 0 && v.BusDown == 0 && v.BusErrors == 0, "bus", "every frame sent",
		"dropped %d, refused %d, down for %d ticks, %d errors", v.TxDropped, v.TxRefused, v.BusDown, v.BusErrors)
	conflicts := "none"
	if len(v.Conflicts) > 0 {
		conflicts = fmt.Sprintf("%d; %s", len(v.Conflicts), &v.Conflicts[0])
	}
	d.AddCriterion(len(v.Conflicts) == 0, "identifiers", "no other node sends a message of the bench", "%s", conflicts)
	failures := v.RxUnknown + v.RxFormat + v.RxShort + v.RxBadSize + v.RxRange + v.RxInvalid + v.RxBad
	d.AddCriterion((v.RxFrames > 0 || o.r.Unit == nil) && failures == 0 && v.RxOverflow == 0, "frames in",
		"no frame lost or invalid",
		"%d; lost %d, unknown %d, wrong format %d, short %d, out of range %d, without a value %d, badly protected %d",
		v.RxFrames, v.RxOverflow, v.RxUnknown, v.RxFormat, v.RxShort+v.RxBadSize, v.RxRange, v.RxInvalid, v.RxBad)
}

// idleFrames returns how many of the frames due up to tick last the ignition may keep from the bus: those before their
// delay, and all of a message that is not sent in each state that a scenario or a frame can lead to.
func idleFrames(h *bench.Handover, last int64) (n int64) {
	p := h.Loop.Network
	if p == nil {
		return 0
	}
	switches := len(p.Wake.By) > 0 || slices.ContainsFunc(h.Loop.Faults.States, func(s fault.PlannedState) bool { return s.Op == fault.SwitchIgnition })
	at := 0
	for b, m := range h.Maps {
		managed := slices.ContainsFunc(p.Nodes, func(n network.NodePlan) bool { return n.Bus == b })
		for i := range m.Tx {
			delays := p.Delays[at]
			at++
			switch {
			case m.Tx[i].Send == sigmap.OnChange:
			case delays[p.Start] == network.Never || switches && (managed || slices.Contains(delays[:], network.Never)):
				n += occurrences(&m.Tx[i], last)
			default:
				n += occurrences(&m.Tx[i], min(last, delays[p.Start]+m.Tx[i].CycleTicks))
			}
		}
	}
	return n
}

// maxSafeFrames returns how many frames at most the loop sends with the safe values after the last
// tick: each frame once at once, then in its cycle. The actual number depends on the wake-up
// latency.
func (o *observation) maxSafeFrames() (n int64) {
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

// checkUnit checks the counts that the virtual control unit reports.
func (o *observation) checkUnit(d *report.Verdict, v *report.Report) {
	if o.r.Unit == nil {
		return
	}
	if o.r.Bench.Program != nil {
		o.checkProgram(d, v)
		return
	}
	u, err := ecu.ParseCounts(v.Unit)
	// Frames that the unit sends while the loop misses ticks may not fit the bus.
	ok := err == nil && u.Received > 0 && u.Malformed == 0 && u.Lost == 0 && (u.Dropped == 0 || v.Missed > 0)
	d.AddCriterion(ok, "control unit", "no frame lost or malformed, no gap in the counters", "%s", v.Unit)
}

// checkProgram checks the counts of a program that is the control unit. On an interface of the host it
// has none.
func (o *observation) checkProgram(d *report.Verdict, v *report.Report) {
	dropped, unread, counted := unitprogram.Lost(v.Unit)
	onPair := slices.ContainsFunc(o.r.Bench.Buses, func(b bench.Bus) bool { return b.Interface.Text == bench.PairInterface })
	ok := v.Clean && (!onPair || counted && unread == 0 && (dropped == 0 || v.Missed > 0))
	d.AddCriterion(ok, "control unit", "no failure, no frame lost", "%s", v.Unit)
}

// Permitted growth from the first tenth of a run to its end. The supervisor's ledger has up to a
// thousand entries, and its runtime starts threads on demand. The target allocates before it ticks.
var (
	supervisorGrowth = footprint{KB: 4096, Threads: 4}
	targetGrowth     = footprint{KB: 64}
)

func (o *observation) checkProcesses(d *report.Verdict) {
	if o.sampleErr != nil || o.samples < 2 {
		lastErr := ""
		if o.sampleErr != nil {
			lastErr = ": " + o.sampleErr.Error()
		}
		d.AddCriterion(false, "processes", "measured twice after the first tenth", "%d%s", o.samples, lastErr)
		return
	}

	for i, name := range [...]string{"supervisor", "target"} {
		if i == 0 && o.soak.OnFirstTick != nil {
			continue // this process does other work as well
		}
		a, b := o.first[i], o.last[i]
		growth := [...]footprint{supervisorGrowth, targetGrowth}[i]
		d.AddCriterion(b.KB <= a.KB+growth.KB, name+" memory", fmt.Sprintf("at most %d kB, %d more than after the first tenth",
			a.KB+growth.KB, growth.KB), "%d kB", b.KB)
		d.AddCriterion(b.Files == a.Files, name+" files", fmt.Sprintf("%d open, as after the first tenth", a.Files), "%d", b.Files)
		d.AddCriterion(b.Threads <= a.Threads+growth.Threads, name+" threads", fmt.Sprintf("at most %d",
			a.Threads+growth.Threads), "%d", b.Threads)
	}
}
