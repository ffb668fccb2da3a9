package rt

import (
	"math"
	"slices"
	"testing"

	"lockstep/io/can"
)

// The entries of the ring equal the steps of the plant and the frames that the unit received.
func TestRingHasEveryStepAndFrame(t *testing.T) {
	b := newBench(t, Overrun{Skip, 9})
	b.turn(3) // the ring is closed
	b.received()
	b.page.OpenRing()
	b.ticker.Miss(10, 2)
	ticks := 0
	var sent, unsent, read []int
	var e Entry
	for range 20 {
		b.command(t, 7)
		b.turn(1)
		for b.page.NextEntry(&e) {
			switch e.Kind {
			case KindStep:
				ticks++
				if e.Tick != int64(3+ticks) || len(e.U) != 1 || e.U[0] != 7 || len(e.Y) != outputs || e.Y[outSteps] != float64(e.Tick) {
					t.Fatalf("step %+v, want the one to tick %d with the command 7 m/s", e, 3+ticks)
				}
			case KindTiming:
				if want := map[bool]int64{true: 2}[e.Tick == 10]; e.Lost != want {
					t.Errorf("timing of tick %d: %d lost, want %d", e.Tick, e.Lost, want)
				}
			case KindFrame:
				switch {
				case e.Fate == Received && e.Frame.ID == 0x110 && e.Message == 0 && e.Frame.Len == 4:
					read = append(read, int(e.Tick))
				case e.Fate == Sent && e.Message == 0 && e.Frame.ID == 0x200 && e.Frame.Len == 8 && !e.Safe && e.Stamp.Soft > 0:
					sent = append(sent, int(e.Frame.Data[4])|int(e.Frame.Data[5])<<8)
				case e.Fate == Unsent && e.Message == 0 && e.Frame.Len == 0:
					unsent = append(unsent, int(e.Tick))
				case e.Message != 1:
					t.Errorf("frame %+v", e)
				}
			}
		}
	}
	if got := b.received(); ticks != 22 || !slices.Equal(sent, got.steps) || !slices.Equal(unsent, []int{10, 11}) {
		t.Errorf("%d steps, State at %v, not at %v; the unit received %v", ticks, sent, unsent, got.steps)
	}
	if len(read) != 20 || read[0] != 4 || read[19] != 25 {
		t.Errorf("commands read at ticks %v, want 20 from 4 to 25", read)
	}
	if b.page.LostEntries() != 0 {
		t.Errorf("%d entries lost", b.page.LostEntries())
	}
}

// A stopped reader loses whole entries, which are counted. Later entries are complete.
func TestFullRingDropsWholeEntries(t *testing.T) {
	r := &StatusBlock{}
	r.OpenRing()
	put := func(k int64) {
		y := []float64{float64(k), math.Inf(1), math.Copysign(0, -1)}
		r.ring.enterStep(k, y[:1], y)
	}
	var e Entry
	next, lost := int64(0), uint64(0)
	for k := range int64(750_000) {
		put(k)
		if k%250_000 != 249_999 {
			continue
		}
		before := lost
		lost = r.LostEntries()
		n := uint64(0)
		for ; r.NextEntry(&e); n++ {
			if e.Kind != KindStep || e.Tick < next || e.U[0] != float64(e.Tick) || e.Y[0] != e.U[0] ||
				!math.IsInf(e.Y[1], 1) || !math.Signbit(e.Y[2]) {
				t.Fatalf("entry %+v after tick %d", e, next-1)
			}
			next = e.Tick + 1
		}
		if n+lost-before != 250_000 || n != ringWords/6 && lost-before != 0 {
			t.Errorf("%d entries read, %d lost, want 250000 together", n, lost-before)
		}
	}
	if lost == 0 {
		t.Error("nothing was lost: the ring is larger than the test thinks")
	}
}

func TestRingDoesNotAllocate(t *testing.T) {
	p := &StatusBlock{}
	p.OpenRing()
	e := Entry{U: make([]float64, 0, 8), Y: make([]float64, 0, 8)}
	u, y, f, n := []float64{1}, []float64{2, 3}, &can.Frame{ID: 5, Len: 8}, &Entry{Fate: Sent}
	if got := testing.AllocsPerRun(100, func() {
		p.ring.enterStep(1, u, y)
		p.ring.enterFrame(n, f)
		p.ring.enterTiming(&LateTick{})
		for p.NextEntry(&e) {
		}
	}); got != 0 {
		t.Errorf("%g allocations", got)
	}
}
