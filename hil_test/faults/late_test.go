package faults

import (
	"math"
	"slices"
	"time"

	"lockstep/rt/report"
)

// late runs a bench for 2 s under an overrun policy and stops its target for 200 ms after the first
// 100 ticks.
func late(a *attempt, policy string, change ...string) *session {
	s := a.run(plan{change: append(change, "overrun: skip 200", "overrun: "+policy), args: []string{"-for", "2s"}})
	s.bus.ticking(100)
	a.halt(a.target(), 200*time.Millisecond)
	return s
}

// checkLedger checks the entry of the ledger about the grid points lost in the 200 ms. list selects
// the frames of the entry, which are all sent messages. The entry is that with the most lost
// points: a tick that was late without a lost point may have an entry of its own.
func (a *attempt) checkLedger(r report.Report, list func(report.LateTick) []string) {
	a.Helper()
	if len(r.Ledger) == 0 || r.LateTicks == 0 {
		a.Fatalf("the ledger is empty, %d late ticks", r.LateTicks)
	}
	e := slices.MaxFunc(r.Ledger, func(a, b report.LateTick) int { return int(a.Lost - b.Lost) })
	a.Logf("ledger: %s; late %q, unsent %q", e.String(), e.Late, e.Unsent)
	a.must(e.Lost >= 35 && e.LateNs >= 175e6, "%d points lost, %d ns late; want 40, 200 ms", e.Lost, e.LateNs)
	a.inTime(e.Phase == "the wake-up", "most of the time in %s: the target stood within a tick; want the wake-up", e.Phase)
	a.must(e.Tick > 0 && math.Abs(float64(e.Tick)*tick.Seconds()-e.Time) < 1e-9, "the entry is of tick %d at %g s", e.Tick, e.Time)
	got := slices.Sorted(slices.Values(list(e)))
	a.must(slices.Equal(got, []string{"Speeds", "Status", "Torque"}), "frames %q, want all three", got)
	a.must(r.Missed >= uint64(e.Lost), "%d missed, %d lost at once", r.Missed, e.Lost)
}

func unsent(e report.LateTick) []string   { return e.Unsent }
func sentLate(e report.LateTick) []string { return e.Late }

// onTime checks that the times of the first and the last of n ticks on the bus differ by n-1 ticks,
// within 60 ms: simulated time follows the clock over the stall of 200 ms.
func (a *attempt) onTime(all []frame, n int) {
	a.Helper()
	list := of(all, speeds)
	got, want := list[len(list)-1].at.Sub(list[0].at), time.Duration(n-1)*tick
	a.inTime((got-want).Abs() < 60*time.Millisecond, "%d ticks took %v on the bus, want %v", n, got, want)
}

func lateStop(a *attempt) {
	s := late(a, "stop")
	s.ends(1, "run: a tick was missed (stop), after ")
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	a.checkLedger(r, unsent)
	a.inTime(s.gapBeforeSafe(all) > 175*time.Millisecond, "no frame for %v before the first safe one; want 200 ms", s.gapBeforeSafe(all))
}

// gapBeforeSafe returns the time between the last frame of the plant and the first safe one.
func (s *session) gapBeforeSafe(all []frame) time.Duration {
	before, safe := s.bus.split(all)
	if len(before) == 0 || len(safe) == 0 {
		s.Fatalf("%d frames of the plant, %d safe ones", len(before), len(safe))
	}
	return safe[0].at.Sub(before[len(before)-1].at)
}

func lateStopSilence(a *attempt) {
	s := late(a, "stop", "policy: safe", "policy: silence")
	s.ends(1, "run: a tick was missed (stop), after ")
	all, r := s.bus.end(), s.read()
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0, "%d safe frames, want silence", len(safe))
	longest, _ := pause(all)
	a.must(longest < 175*time.Millisecond, "a frame came %v after the one before", longest)
	a.checkLedger(r, unsent)
}

func lateSafe(a *attempt) {
	s := late(a, "safe")
	s.ends(1, "run: a tick was missed (safe); in the safe state since ")
	all, r := s.bus.end(), s.read()
	a.must(r.Ticks == 400 && r.SimTime == 2, "%d ticks, %g s; want 400, 2 s", r.Ticks, r.SimTime)
	a.must(r.Safe == "a tick was missed (safe)" && r.SafeSince > 0 && !r.Clean, "safe state %q since %g s", r.Safe, r.SafeSince)
	gap := s.gapBeforeSafe(all)
	a.inTime(gap > 175*time.Millisecond, "no frame for %v before the first safe one; want 200 ms", gap)
	_, safe := s.bus.split(all)
	a.inTime(len(of(safe, speeds)) > 200, "%d safe frames until the end, want all of the 260 ticks", len(of(safe, speeds)))
	s.bus.counted(all, r)
	a.checkLedger(r, unsent)
	a.onTime(all, 400)
}

func lateSkip(a *attempt) {
	s := late(a, "skip 1000")
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0 && r.Safe == "" && r.Clean, "%d safe frames, %q", len(safe), r.Safe)
	a.must(r.Ticks == 400 && r.SimTime == 2, "%d ticks, %g s; want 400, 2 s", r.Ticks, r.SimTime)
	a.must(len(all) == int(r.TxFrames) && r.TxFrames+r.TxLost+r.TxDropped-r.TxAgain == 800, "%d frames came, %d were sent, %d lost, %d dropped, %d of them tried again; want 800 in all",
		len(all), r.TxFrames, r.TxLost, r.TxDropped, r.TxAgain)
	a.must(r.TxLost >= 70, "%d frames lost, want about 80", r.TxLost)
	longest, after := pause(all)
	a.must(longest > 175*time.Millisecond && after >= 100, "the longest gap is %v, before frame %d; want 200 ms", longest, after)
	s.bus.counted(all, r)
	a.checkLedger(r, unsent)
	a.onTime(all, 400)
}

func lateSkipExceeded(a *attempt) {
	s := late(a, "skip 10")
	s.ends(1, "run: more ticks were missed at once than the policy allows (skip 10); in the safe state since ")
	all, r := s.bus.end(), s.read()
	a.must(r.Ticks == 400 && r.SimTime == 2, "%d ticks, %g s; want 400, 2 s", r.Ticks, r.SimTime)
	a.inTime(s.gapBeforeSafe(all) > 175*time.Millisecond, "no frame for %v before the first safe one; want 200 ms", s.gapBeforeSafe(all))
	a.checkLedger(r, unsent)
	a.onTime(all, 400)
}

func lateCatchUp(a *attempt) {
	s := late(a, "catchup 1000")
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	a.must(r.Ticks == 400 && r.SimTime == 2 && r.Clean, "%d ticks, %g s; want 400, 2 s", r.Ticks, r.SimTime)
	a.must(r.TxLost == 0 && len(all) == int(r.TxFrames) && r.TxFrames+r.TxDropped-r.TxAgain == 800, "%d frames came, %d were sent, %d lost, %d dropped, %d of them tried again; want 800 in all",
		len(all), r.TxFrames, r.TxLost, r.TxDropped, r.TxAgain)
	longest, after := pause(all)
	a.must(longest > 175*time.Millisecond, "the longest gap is %v; want 200 ms", longest)
	burst := 0
	list := of(all, speeds)
	for burst < len(list)-after && list[after+burst].at.Sub(list[after].at) < 5*time.Millisecond {
		burst++
	}
	a.inTime(burst >= 10, "%d frames at once after the gap, want those of 40 ticks", burst)
	s.bus.counted(all, r)
	a.checkLedger(r, sentLate)
	a.onTime(all, 400)
}

func watchdog(a *attempt) {
	s := a.run(plan{change: []string{"# watchdog: 3 s", "watchdog: 300 ms"}})
	s.bus.ticking(50)
	a.signal(a.target(), 19)
	s.ends(1, " s (watchdog); the target process was killed, after ") // the report has the time
	all, r := s.bus.end(), s.read()
	s.bus.checkSafeEnd(all)
	s.bus.counted(all, r)
	_, safe := s.bus.split(all)
	a.must(r.SafeFrames == len(safe), "the report says %d safe frames, %d came", r.SafeFrames, len(safe))
	gap := s.gapBeforeSafe(all)
	a.must(gap > 280*time.Millisecond, "safe values %v after the last frame, want at least the watchdog time of 300 ms", gap)
	a.inTime(gap < 380*time.Millisecond, "safe values %v after the last frame, want 300 ms", gap)
	a.must(r.Unserved > 50 && r.Still > 0.29, "%d grid points not served in %g s; want 60 in 0.3 s", r.Unserved, r.Still)
}

func supervisorStalls(a *attempt) {
	s := a.run(plan{change: []string{"# watchdog: 3 s", "watchdog: 300 ms"}})
	s.bus.ticking(50)
	from := s.bus.ticks()
	a.halt(s.cmd.Process.Pid, time.Second)
	during := s.bus.ticks() - from
	s.bus.ticking(50)
	s.ctrlC()
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0 && r.Clean, "%d safe frames, %s", len(safe), r.Ended)
	a.must(during > 100, "%d ticks in the second without a supervisor", during)
	a.inTime(during >= 190, "%d ticks in the second without a supervisor", during)
	s.bus.counted(all, r)
}
