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

// Judge holds the report and what the soak has seen itself against what a run must
// keep.
func (s *soak) Judge(v *report.Report) {
	d := &report.Verdict{Load: s.load}
	stopped := s.leg != nil && s.r.Stop != ""
	if stopped { // a shorter leg
		s.r.Handover.Loop.Ticks = int64(v.Ticks)
	}
	s.judgeTicks(d, v)
	if !s.disturbed() {
		s.judgeFrames(d, v)
		s.judgeUnit(d, v)
	}
	s.judgeTrial(d, v)
	if s.samples > 1 || !stopped && s.length() >= Shortest {
		s.judgeProcesses(d, v)
	}
	if s.over != nil {
		d.Demand(false, "load", "to the end", "%v", s.over)
	}
	d.Pass = d.Failed() == nil
	v.Soak = d
}

// length is how long the run is to be.
func (s *soak) length() time.Duration {
	return time.Duration(s.r.Handover.Loop.Ticks * s.r.Handover.Tables.PeriodNs)
}

// disturbed tells whether frames are disturbed on purpose: then nothing is demanded of
// them, nor of what the unit says of them.
func (s *soak) disturbed() bool {
	return s.r.Scenario.Scenario != nil && slices.ContainsFunc(s.r.Scenario.Scenario.Plan.Faults, func(f fault.Fault) bool {
		return f.Where == fault.SentFrame || f.Where == fault.ReceivedFrame || f.Where == fault.Bus
	})
}

// judgeTrial takes what the scenario expects and, of one fault of every kind, that each
// has come and gone.
func (s *soak) judgeTrial(d *report.Verdict, v *report.Report) {
	if v.Trial != nil && len(v.Trial.Findings) > 0 {
		held, first := 0, ""
		for i := range v.Trial.Findings {
			if f := &v.Trial.Findings[i]; f.Held {
				held++
			} else if first == "" {
				first = "; broken: " + f.String()
			}
		}
		d.Demand(v.Trial.Pass, "expectations", "all of the scenario", "%d of %d held%s", held, len(v.Trial.Findings), first)
	}
	if s.leg == nil || s.leg.kind != faultsLeg {
		return
	}
	over, left := 0, ""
	for slot, name := range s.r.Scenario.Scenario.FaultNames() {
		if state, _ := s.r.Page.FaultState(slot); state == fault.Over {
			over++
		} else if left == "" {
			left = fmt.Sprintf("; %s is %s", name, state)
		}
	}
	n := len(s.r.Scenario.Scenario.Faults)
	d.Demand(over == n, "faults", "each comes, and goes by itself", "%d of %d%s", over, n, left)
}

// calm is before how much simulated time at the latest the plant has been seen back
// on the grid, at the end. It is never off it for more than some steps at a time.
const calm = 10 * time.Second

func (s *soak) judgeTicks(d *report.Verdict, v *report.Report) {
	h, policy := s.r.Handover, s.r.Bench.Overrun
	d.Demand(v.Clean, "end", "clean", "%s", v.Ended)
	wall := max(0, s.r.Target.EndedNs-int64(s.r.Page.StartNs.Load()))
	ahead := ""
	if s.ahead > 0 {
		ahead = fmt.Sprintf(", ahead of the clock when looked at %d times", s.ahead)
	}
	d.Demand(int64(v.Ticks) == h.Loop.Ticks && wall >= int64(v.Ticks)*v.StepNs && s.ahead == 0, "ticks",
		fmt.Sprintf("%d, %v / %g ms", h.Loop.Ticks, s.length(), float64(v.StepNs)/1e6),
		"%d in %.3f s%s", v.Ticks, float64(wall)/1e9, ahead)
	share := 100 * float64(v.Missed) / float64(max(1, v.Ticks))
	missed := fmt.Sprintf("%d, %.3f %%, at most %d at once", v.Missed, share, s.most)
	if policy.Max == 0 {
		d.Demand(v.Missed == 0, "missed ticks", "0 (policy "+policy.String()+")", "%s", missed)
	} else {
		d.Demand(s.most <= int64(policy.Max) && v.Unserved == 0, "missed ticks",
			fmt.Sprintf("at most %d at once (policy %v)", policy.Max, policy), "%s", missed)
	}
	d.Demand(s.entries == v.LateTicks && s.gone == 0 && s.lost == int64(v.Missed), "ledger", "every late tick, every missed point",
		"%d of %d late ticks, %d of %d points", s.entries-s.gone, v.LateTicks, s.lost, v.Missed)
	if v.Lag == 0 {
		s.level = int64(v.Ticks)
	}
	since := time.Duration((int64(v.Ticks) - s.level) * v.StepNs)
	d.Demand(s.level > 0 && since <= calm, "lag", "back at 0", "largest %.3f ms; 0 at tick %d of %d", v.LagMax*1e3, s.level, v.Ticks)
	u := v.Usage
	if u == nil {
		d.Demand(false, "memory", "the target's counts", "none: it died before it could say")
		return
	}
	d.Demand(u.Allocs == 0 && u.GCCycles == 0, "allocations", "0, and 0 GC cycles", "%d, %d", u.Allocs, u.GCCycles)
	d.Demand(u.MinorFaults == 0 && u.MajorFaults == 0, "page faults", "0", "%d minor, %d major", u.MinorFaults, u.MajorFaults)
}

// judgeFrames holds what the loop counts against what is due by the cycles and
// phases of the frames. Those of missed ticks are sent under CatchUp only; a run
// that has ended at them has not stepped over them.
func (s *soak) judgeFrames(d *report.Verdict, v *report.Report) {
	due := framesDue(s.r.Handover, 1, int64(v.Ticks))
	lost := s.unsent
	switch s.r.Bench.Overrun.Policy {
	case rt.CatchUp:
		lost = 0
	case rt.Stop:
		due += lost
	}
	extra := int64(v.TxFrames+v.TxDropped+v.TxRefused+v.TxLost-v.TxAgain) - due
	d.Demand(extra >= 0 && (extra <= s.farewell() || s.changing()) && int64(v.TxLost) == lost, "frames out",
		fmt.Sprintf("%d due, %d of them at missed ticks", due, lost),
		"%d sent, %d dropped, %d refused, %d of missed ticks", v.TxFrames, v.TxDropped, v.TxRefused, v.TxLost)
	d.Demand(v.TxDropped == 0 && v.TxRefused == 0 && v.BusDown == 0 && v.BusErrors == 0, "bus", "takes every frame",
		"dropped %d, refused %d, down for %d ticks, %d errors", v.TxDropped, v.TxRefused, v.BusDown, v.BusErrors)
	bad := v.RxUnknown + v.RxShort + v.RxBadSize + v.RxRange + v.RxInvalid + v.RxBad
	d.Demand((v.RxFrames > 0 || s.r.Unit == nil) && bad == 0 && v.RxOverflow == 0, "frames in", "none lost, none that is wrong",
		"%d; lost %d, unknown %d, short %d, out of range %d, without a value %d, badly protected %d",
		v.RxFrames, v.RxOverflow, v.RxUnknown, v.RxShort+v.RxBadSize, v.RxRange, v.RxInvalid, v.RxBad)
}

// changing tells whether some frames are sent on change, which nobody can count before.
func (s *soak) changing() bool {
	for _, m := range s.r.Handover.Maps {
		if slices.ContainsFunc(m.Tx, func(t sigmap.Tx) bool { return t.Send != sigmap.Cyclic }) {
			return true
		}
	}
	return false
}

// farewell is how many frames at most the loop sends after the last tick, with the
// safe values: each at once, then in its cycle. How many depends on how late it is.
func (s *soak) farewell() (n int64) {
	safe := &s.r.Handover.Loop.Safe
	if safe.Values == nil || safe.On>>s.r.Page.Reason.Load()&1 == 0 {
		return 0
	}
	for _, m := range s.r.Handover.Maps {
		for i := range m.Tx {
			n += 1 + (safe.Ticks+m.Tx[i].CycleTicks-1)/m.Tx[i].CycleTicks
		}
	}
	return n
}

// judgeUnit takes the word of the virtual control unit.
func (s *soak) judgeUnit(d *report.Verdict, v *report.Report) {
	if s.r.Unit == nil {
		return
	}
	u, err := ecu.ParseCounts(v.Unit)
	// What it sends while the loop does not read may not fit the bus.
	ok := err == nil && u.Heard > 0 && u.Malformed == 0 && u.Lost == 0 && (u.Dropped == 0 || v.Missed > 0)
	d.Demand(ok, "control unit", "no frame lost or malformed, no gap in their counters", "%s", v.Unit)
}

// What a process may hold more at the end than after the first tenth: the
// supervisor's ledger has a thousand entries at most, its runtime starts threads
// as it needs them; the target has all it needs from the start.
var (
	spareSupervisor = footprint{KB: 4096, Threads: 4}
	spareTarget     = footprint{KB: 64}
)

func (s *soak) judgeProcesses(d *report.Verdict, v *report.Report) {
	if s.trouble != nil || s.samples < 2 {
		why := ""
		if s.trouble != nil {
			why = ": " + s.trouble.Error()
		}
		d.Demand(false, "processes", "two looks at them after the first tenth", "%d%s", s.samples, why)
		return
	}
	for i, name := range [...]string{"supervisor", "target"} {
		if i == 0 && s.r.Options.Follow != nil {
			continue // it does other things as well
		}
		a, b := s.first[i], s.last[i]
		most := [...]footprint{spareSupervisor, spareTarget}[i]
		d.Demand(b.KB <= a.KB+most.KB, name+" memory", fmt.Sprintf("at most %d kB, %d more than after the first tenth", a.KB+most.KB, most.KB), "%d kB", b.KB)
		d.Demand(b.Files == a.Files, name+" files", fmt.Sprintf("%d open, as after the first tenth", a.Files), "%d", b.Files)
		d.Demand(b.Threads <= a.Threads+most.Threads, name+" threads", fmt.Sprintf("at most %d", a.Threads+most.Threads), "%d", b.Threads)
	}
}
