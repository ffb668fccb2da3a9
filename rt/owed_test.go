package rt

import (
	"math"
	"slices"
	"testing"
	"time"

	"lockstep/rt/fault"
)

// A stop of 100,000 points takes a hundred wake-ups to make up for. Only the first of them is late:
// the others come at their points while the plant is behind.
func TestPunctualWakeUpIsNotLateWhileThePlantIsBehind(t *testing.T) {
	b := newBench(t, Overrun{Skip, 10}, func(cfg *Config, _ *integrator) { cfg.Budget = time.Hour })
	b.page.OpenRing()
	b.turn(3)
	b.ticker.Miss(4, 100_000)
	b.turn(50)
	if b.page.Behind.Load() == 0 {
		t.Fatal("the plant is not behind")
	}
	if late := &b.page.Late; late.N() != 3+maxOverrun+1+49 || late.Quantile(0.045) != 0 || late.Max() != 100_000*int64(period) {
		t.Errorf("%d latenesses, a twentieth up to %d ns, max %d ns; want %d, 0, %d", late.N(), late.Quantile(0.045), late.Max(),
			3+maxOverrun+1+49, 100_000*int64(period))
	}
	if b.page.Missed.Load() != 100_000 || b.page.LateCount() != 1 {
		t.Errorf("%d points missed, %d late ticks; want 100000, 1", b.page.Missed.Load(), b.page.LateCount())
	}
	var ticks []int64
	for e := (Entry{}); b.page.NextEntry(&e); {
		if e.Kind == KindTiming {
			ticks = append(ticks, e.Tick)
		}
	}
	want := []int64{1, 2, 3, 4}
	for k := range int64(49) {
		want = append(want, 100_005+k)
	}
	if !slices.Equal(ticks, want) {
		t.Errorf("the timings are of ticks %d, want %d", ticks, want)
	}
}

// The run of 3000 ticks reaches its end within a stop of 5000: the points up to the end are stepped
// over in bounded parts, and no point after the end is missed.
func TestRunEndsAtItsLastTickWhileThePlantIsBehind(t *testing.T) {
	b := newBench(t, Overrun{Skip, 10}, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Safe = 3000, safeValues(Done) })
	b.ticker.Miss(4, 5000)
	b.turn(5)
	if r := Reason(b.page.Reason.Load()); r != NotEnded || b.page.Behind.Load() != 3000-3-2*(maxOverrun+1) {
		t.Errorf("after two wake-ups: %v, %d points behind, want %d", r, b.page.Behind.Load(), 3000-3-2*(maxOverrun+1))
	}
	b.turn(1)
	p := b.page
	if r := Reason(p.Reason.Load()); r != Done || p.Ticks.Load() != 3000 || p.Behind.Load() != 0 || b.plant.steps != 3000 {
		t.Errorf("%v at tick %d, %d points behind, %g steps; want done at 3000, 0, 3000", r, p.Ticks.Load(), p.Behind.Load(), b.plant.steps)
	}
	if p.Missed.Load() != 3000-4 || p.Late.N() != 3+maxOverrun+1 {
		t.Errorf("%d points missed, %d latenesses; want %d, %d", p.Missed.Load(), p.Late.N(), 3000-4, 3+maxOverrun+1)
	}
	if p.SafeTick.Load() != 4 {
		t.Errorf("safe since tick %d, want 4", p.SafeTick.Load())
	}
	b.received()
	b.turn(100)
	if n := len(b.received().steps); n != 6 {
		t.Errorf("the safe values follow the end %d times, want 6", n)
	}
}

// The cycle of the safe values, and the time that the loss of the supervisor is tolerated, follow the
// clock, however far the plant is behind.
func TestSafetyFollowsTheClockWhileThePlantIsBehind(t *testing.T) {
	const after = 20
	b := newBench(t, Overrun{Skip, 10}, func(cfg *Config, _ *integrator) {
		cfg.Supervisor, cfg.Safe = Loss{GoEnd, after * int64(period)}, safeValues(SupervisorGone)
	})
	first := sleeper(t)
	b.page.Supervisor.Store(identityOf(first))
	b.turn(3)
	b.ticker.Miss(4, 100_000)
	b.turn(1)
	_ = first.Process.Kill()
	_ = first.Wait()
	b.received()
	for i := range 1 + after + 6 {
		if ended := Reason(b.page.Reason.Load()) != NotEnded; ended != (i > after) {
			t.Errorf("%d points after the end of the supervisor, %d behind: ended %t", i, b.page.Behind.Load(), ended)
		}
		b.turn(1)
		got, now := b.received(), b.ticker.Now()/int64(period)
		slow := now%4 == 1 || i == after+1 // in its cycle, or at once after the end
		if !slices.Equal(got.steps, []int{77}) || (len(got.slow) == 1) != slow {
			t.Errorf("point %d: State %v, Slow %v; want the safe values, Slow: %t", now, got.steps, got.slow, slow)
		}
	}
	if b.page.Behind.Load() == 0 || !b.Over() {
		t.Errorf("%d points behind, over: %t", b.page.Behind.Load(), b.Over())
	}
}

// Points missed after the end count as time of the safe values; their frames are not sent later.
func TestSafeValuesEndAtTheirTimeWhenPointsAreMissed(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Safe = 10, safeValues(Done) })
	b.ticker.Miss(12, 2) // of 11 to 16
	b.turn(100)
	if got := b.received(); !slices.Equal(got.steps, append(span(1, 10), 77, 77, 77, 77)) || b.ticker.Now() != 16*int64(period) {
		t.Errorf("State says steps %v until %d ns, want 77 at 11, 14, 15, 16", got.steps, b.ticker.Now())
	}
}

// Under the policy stop the frames of missed points are counted, of a bounded number of points.
func TestFramesOfALongStopAreCountedInABoundedNumber(t *testing.T) {
	for missed, want := range map[int64]uint64{4: 4 + 1, 5000: maxOverrun + maxOverrun/4} {
		b := newBench(t, Overrun{})
		b.turn(1)
		b.ticker.Miss(2, missed) // Slow is due at 5, 9, ...
		b.turn(1)
		if b.page.TxLost.Load() != want || Reason(b.page.Reason.Load()) != MissedTick {
			t.Errorf("%d points missed: %d frames not sent, want %d; %v", missed, b.page.TxLost.Load(), want, Reason(b.page.Reason.Load()))
		}
	}
}

// The frame that the unit would have received last under the fault is refused: the count goes on
// from the frozen value, not from before it.
func TestFrameRefusedWhileItsCounterIsFrozenLeavesTheCount(t *testing.T) {
	for refused, want := range map[int][2]int{0: {5, 0}, 24: {4, 0}, 22: {4, 0}, 30: {5, 0}} { // repeated, lost
		b := newGuarded(t, Overrun{}, []fault.Fault{
			{Kind: fault.FreezeCounter, Where: fault.SentFrame, Start: fault.Trigger{Tick: 20}, Duration: 5},
		})
		b.plant.during = breakAt(b.plant, refused)
		s := b.drive(40)
		frames := 40
		if refused > 0 {
			frames--
		}
		if s.repeated != want[0] || s.lost != want[1] || s.frames != frames || b.page.TxRefused.Load() != uint64(40-frames) {
			t.Errorf("refused at %d: %d frames, %d repeated, %d lost, %d refused; want %d, %v", refused, s.frames, s.repeated, s.lost,
				b.page.TxRefused.Load(), frames, want)
		}
	}
}

// breakAt makes the state of p no number in one step.
func breakAt(p *integrator, at int) func(step int) {
	return func(step int) {
		switch step {
		case at:
			p.x = math.NaN()
		case at + 1:
			p.x = 0
		}
	}
}
