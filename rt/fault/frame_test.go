package fault

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"lockstep/io/can"
)

// A message sent on change has no cycle, so the number of frames in a delay of 100 ticks is not
// known in advance.
func TestDelayHoldsMaxHeldFramesAndDropsTheRest(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{{Kind: DelayFrame, Where: SentFrame, Message: 1, N: 100}}})
	var out []int64
	for k := int64(1); k <= 300; k++ {
		r.tick(k, float64(k))
		var f can.Frame
		for {
			i, again, ok := r.NextHeld(&f, 0, k)
			if !ok {
				break
			}
			if i != 1 || again != 0 || int64(f.Data[0]) != k-100 {
				t.Errorf("tick %d: frame %d of %d comes %d times more", k, f.Data[0], i, again)
			}
			out = append(out, k)
		}
		if k > 80 {
			continue
		}
		r.PrepareCounters(0, 1)
		f = can.Frame{ID: 0x201, Len: 2, Data: [64]byte{byte(k)}}
		if again, withheld := r.DisturbFrame(&f, 0, 1, k); again != 0 || !withheld {
			t.Errorf("tick %d: sent at once", k)
		}
	}
	var want []int64
	for k := range int64(MaxHeld) {
		want = append(want, k+101)
	}
	if !slices.Equal(out, want) {
		t.Errorf("released at %v, want %v", out, want)
	}
	if s, n := r.State(0); s != Active || n != 80 {
		t.Errorf("%v, %d frames disturbed; want active, 80", s, n)
	}
}

func TestFramesOfTwoDelaysAreReleasedWhenDue(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{
		{Kind: DelayFrame, Where: SentFrame, Message: 1, N: 20, Duration: 1, Frames: true}, {Kind: DelayFrame, Where: SentFrame, Message: 1, N: 2},
	}})
	var out [][2]int64
	for k := int64(1); k <= 40; k++ {
		r.tick(k, 0)
		f := can.Frame{}
		for {
			if _, _, ok := r.NextHeld(&f, 0, k); !ok {
				break
			}
			out = append(out, [2]int64{int64(f.Data[0]), k})
		}
		if k <= 3 {
			r.PrepareCounters(0, 1)
			f = can.Frame{ID: 0x201, Len: 2, Data: [64]byte{byte(k)}}
			r.DisturbFrame(&f, 0, 1, k)
		}
	}
	if want := [][2]int64{{2, 4}, {3, 5}, {1, 23}}; !slices.Equal(out, want) {
		t.Errorf("frames at ticks %v, want %v", out, want)
	}
}

// A new fault drops the frames that its slot still holds.
func TestNewFaultInASlotDropsTheFramesHeldThere(t *testing.T) {
	r := newRig(t, Plan{Faults: []Fault{{Kind: DelayFrame, Where: SentFrame, N: 5}}})
	r.tick(1, 0)
	f := can.Frame{ID: 0x200, Len: 8}
	r.PrepareCounters(0, 0)
	r.DisturbFrame(&f, 0, 0, 1)
	r.tick(2, 0, Command{Op: Put, Fault: Fault{Kind: Drop, Where: SentFrame}})
	if r.HasHeld(0, 100) {
		t.Error("a frame of the replaced fault is still held")
	}
	if _, _, ok := r.NextHeld(&f, 0, 100); ok {
		t.Error("a frame of the replaced fault was released")
	}
}

// Commands in shared memory may hold any bytes.
func TestRandomCommandsDoNotBreakTheSet(t *testing.T) {
	r := newRig(t, Plan{})
	rnd := rand.New(rand.NewPCG(1, 2))
	whole := func() int64 {
		return []int64{0, 1, 2, -1, 5, MaxHeld, MaxDelay, math.MaxInt64, math.MinInt64, rnd.Int64N(9)}[rnd.IntN(10)]
	}
	number := func() float64 { return []float64{0, 1, -1, math.NaN(), math.Inf(1), 1e308, 0.5}[rnd.IntN(7)] }
	condition := func() Condition {
		return Condition{rnd.IntN(8) == 0, rnd.IntN(2) == 0, rnd.IntN(2) == 0, int(whole()), number()}
	}
	accepted, f := 0, can.Frame{}
	var at can.Stamp
	for k := int64(1); k <= 20_000; k++ {
		c := Command{Op(rnd.IntN(6)), int(whole()), Fault{Kind(rnd.IntN(int(kinds) + 2)), Where(rnd.IntN(int(wheres) + 2)), int(whole()), int(whole()), int(whole()), int(whole()),
			number(), number(), whole(), rnd.Uint64(), Trigger{whole(), [2]Condition{condition(), condition()}}, whole(), rnd.IntN(2) == 0}, int(whole()), number(), rnd.IntN(2) == 0, rnd.Uint64()}
		if r.Check(&c) == nil {
			accepted++
		}
		r.tick(k, float64(k%50), c)
		for _, ok := r.NextDelayed(0, &f, &at); ok; _, ok = r.NextDelayed(0, &f, &at) {
		}
		f = can.Frame{ID: 0x100, Len: 8}
		r.FilterReceived(0, &f, at)
		for _, _, ok := r.NextHeld(&f, 0, k); ok; _, _, ok = r.NextHeld(&f, 0, k) {
		}
		for i := range r.m.Tx {
			r.m.Due(i, k, r.y, true)
			r.PrepareCounters(0, i)
			if !r.m.Encode(&f, i, k, r.y, true) {
				r.RestoreCounters(0, i)
				continue
			}
			if again, _ := r.DisturbFrame(&f, 0, i, k); again < 0 || again > MaxBurst || f.Len > 8 {
				t.Fatalf("%+v: sent %d times more with %d bytes", c, again, f.Len)
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("%d commands were accepted, want 1000 or more", accepted)
	}
}

// A message of CAN FD may arrive as a classic frame.
func TestChangedLengthFitsTheFormatOfTheFrame(t *testing.T) {
	for flags, want := range map[uint8]uint8{0: 8, can.FlagBRS: 8, can.FlagFDF: 12, can.FlagLong: 12} {
		f := can.Frame{Len: 8, Flags: flags}
		for i := range f.Data {
			f.Data[i] = 0xFF
		}
		setLength(&f, 12)
		for i, v := range f.Data {
			if data := i < 8; f.Len != want || data != (v == 0xFF) {
				t.Fatalf("flags %d: %d bytes, byte %d is %#x; want %d bytes, 8 of them data", flags, f.Len, i, v, want)
			}
		}
	}
}
