package rt

import (
	"math"
	"slices"
	"testing"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
)

// watched is the Command of database with a timeout of 4 ticks and what follows it.
func watched(action sigmap.Action) func(m *sigmap.Map) {
	return func(m *sigmap.Map) {
		rx := &m.Rx[0]
		rx.CycleTicks, rx.NextMiss, rx.TimeoutTicks = 2, 4, 4
		rx.OnTimeout.Action = action
		if action == sigmap.Substitute {
			rx.OnTimeout.Values = []sigmap.SubstituteValue{{Index: 0, Value: -3}}
		}
	}
}

func TestLateMessageIsReportedAndHandledAtItsTick(t *testing.T) {
	for _, c := range []struct {
		action sigmap.Action
		u      float64
		reason Reason
	}{{sigmap.Hold, 5, NotEnded}, {sigmap.Substitute, -3, NotEnded}, {sigmap.SafeState, 5, MessageLate}} {
		b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Safe = testSafeValues() })
		watched(c.action)(b.maps[0])
		w := &b.page.Rx[0]
		for k := 1; k <= 20; k++ {
			if k <= 10 && k%2 == 0 {
				b.command(t, 5)
			}
			b.turn(1)
			if late := k > 14; w.Load().Late != late || k > 1 && b.U[0] != map[bool]float64{false: 5, true: c.u}[late] {
				t.Fatalf("%v, tick %d: late %v, u %g", c.action, k, w.Load().Late, b.U[0])
			}
		}
		if got := Reason(b.page.SafeReason.Load()); got != c.reason || got != NotEnded && b.page.SafeTick.Load() != 15 {
			t.Errorf("%v: safe state for %v from tick %d on", c.action, got, b.page.SafeTick.Load())
		}
		if n := w.Counts().Timeouts; n != 1 || w.Counts().Frames != 5 || w.CycleMin.Load() != 2*uint64(period) || w.CycleMax.Load() != 2*uint64(period) || w.Cycles.Load() != 4 {
			t.Errorf("%v: %d timeouts, %d frames, %d cycles of %d to %d ns", c.action, n, w.Counts().Frames, w.Cycles.Load(), w.CycleMin.Load(), w.CycleMax.Load())
		}
		if age := w.AgeMax.Load(); age != 10*uint64(period) {
			t.Errorf("%v: the age is at most %d ns", c.action, age)
		}
		states := b.received().steps
		if want := span(1, 14); c.reason != NotEnded && (!slices.Equal(states[:14], want) || states[14] != 77) {
			t.Errorf("the bus carried %v, want the safe values from tick 15 on", states)
		}
	}
}

// A frame that came during the gap is as good as new after it.
func TestMissedPointsMakeNoMessageLate(t *testing.T) {
	b := newBench(t, Overrun{Skip, 100})
	watched(sigmap.Substitute)(b.maps[0])
	b.command(t, 5)
	b.turn(1)
	b.command(t, 6)
	b.ticker.Miss(2, 50)
	b.turn(1)
	if w := &b.page.Rx[0]; w.Counts().Timeouts != 0 || b.U[0] != 6 || b.page.Ticks.Load() != 52 {
		t.Errorf("%d timeouts, u %g after %d ticks", w.Counts().Timeouts, b.U[0], b.page.Ticks.Load())
	}
}

func TestFrameTheBusDidNotTakeIsRetriedOnceBeforeAllOthers(t *testing.T) {
	b := newBench(t, Overrun{})
	tx := b.maps[0].Tx
	tx[0].CycleTicks, tx[0].PhaseTicks = 4, 2 // State at 2, 6, ...; Slow at 1, 5, ...
	fill := func() (n int) {
		for b.buses[0].Send(&can.Frame{ID: 0x7FF}) {
			n++
		}
		return n
	}
	var frames [1024]can.Frame
	b.turn(1)
	fill()
	b.turn(1) // 2: State is not taken
	b.unit.Recv(frames[:])
	b.turn(1) // 3: it is tried again
	n := b.unit.Recv(frames[:])
	if n != 1 || frames[0].ID != 0x200 || frames[0].Data[4] != 3 {
		t.Fatalf("%d frames, the first 0x%X of step %d; want State of step 3", n, frames[0].ID, frames[0].Data[4])
	}
	b.turn(1) // 4: nothing
	if n := b.unit.Recv(frames[:]); n != 0 {
		t.Errorf("%d frames at tick 4", n)
	}
	fill()
	b.turn(2) // 5: Slow and 6: Slow again and State are not taken
	b.unit.Recv(frames[:])
	b.turn(1) // 7: State alone: Slow has had its second chance
	if n = b.unit.Recv(frames[:]); n != 1 || frames[0].ID != 0x200 || frames[0].Data[4] != 7 {
		t.Errorf("%d frames, the first 0x%X of step %d; want State of step 7", n, frames[0].ID, frames[0].Data[4])
	}
	p := b.page
	if p.TxDrops[0].Load() != 2 || p.TxDrops[1].Load() != 2 || p.TxAgain.Load() != 3 {
		t.Errorf("dropped %d State, %d Slow, %d tried again; want 2, 2, 3", p.TxDrops[0].Load(), p.TxDrops[1].Load(), p.TxAgain.Load())
	}
}

func TestFrameSentOnChangeIsRetriedUntilTheBusTakesIt(t *testing.T) {
	b := newBench(t, Overrun{})
	tx := b.maps[0].Tx
	tx[0].CycleTicks, tx[0].PhaseTicks = 1000, 999
	tx[1].Send, tx[1].CycleTicks, tx[1].PhaseTicks, tx[1].GapTicks = sigmap.OnChange, 1, 0, 100
	for b.buses[0].Send(&can.Frame{ID: 0x7FF}) {
	}
	b.turn(5)
	var frames [1024]can.Frame
	b.unit.Recv(frames[:])
	b.turn(4)
	if n := b.unit.Recv(frames[:]); n != 1 || frames[0].ID != 0x201 || frames[0].Data[0] != 6 || b.page.TxDrops[1].Load() != 5 {
		t.Errorf("%d frames, the first 0x%X of step %d, %d dropped; want Slow of step 6 after 5", n, frames[0].ID, frames[0].Data[0], b.page.TxDrops[1].Load())
	}
}

func TestTickWithProtectionDoesNotAllocate(t *testing.T) {
	msg := messages.Message{Name: "Command", Len: 4, Signals: []messages.Signal{{Name: "sum", Start: 24, Len: 8, Factor: 1}, {Name: "n", Start: 16, Len: 4, Factor: 1}}}
	spec := sigmap.ProtectionSpec{Profile: "crc8", Poly: 0x2F, Counter: []string{"n"}, Checksum: []string{"sum"}}
	p, err := sigmap.NewProtection(spec, &msg)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, Overrun{})
	watched(sigmap.Substitute)(b.maps[0])
	b.maps[0].Rx[0].Protect = []sigmap.Protection{p}
	send := p
	var frames [64]can.Frame
	var f can.Frame
	k := 0
	if n := testing.AllocsPerRun(300, func() {
		f = can.Frame{ID: 0x110, Len: 4}
		send.Protect(&f.Data, 4, 0x110)
		if k++; k%7 == 0 {
			f.Data[0] ^= 1
		}
		if k%50 < 40 {
			b.unit.Send(&f)
		}
		b.turn(1)
		b.unit.Recv(frames[:])
	}); n != 0 {
		t.Errorf("%g allocations a tick", n)
	}
	w := &b.page.Rx[0]
	if w.Counts().OK == 0 || w.Counts().Errors == 0 || w.Counts().Timeouts == 0 || math.IsNaN(b.U[0]) {
		t.Errorf("%d good, %d wrong, %d timeouts: this proves little", w.Counts().OK, w.Counts().Errors, w.Counts().Timeouts)
	}
}
