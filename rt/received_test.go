package rt

import (
	"encoding/binary"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/messages"
	"lockstep/io/sigmap"
	"lockstep/model/units"
	"lockstep/rt/fault"
)

// ordered receives the speed u in bytes 0 and 1 of Order, if byte 2 is 7; a counter in the lower half of
// 6 and the checksum crc8 in 7.
func ordered(t testing.TB) *sigmap.Map {
	t.Helper()
	db := &messages.Database{File: "received_test.dbc", Messages: []messages.Message{{Name: "Order", ID: 0x120, Len: 8, Signals: []messages.Signal{
		{Name: "u", Len: 16, Signed: true, Factor: 0.01, Min: -100, Max: 100, Unit: "m/s", MuxedBy: "page", Ranges: [][2]uint64{{7, 7}}},
		{Name: "page", Start: 16, Len: 8, Factor: 1, Multiplexor: true},
		{Name: "n", Start: 48, Len: 4, Factor: 1}, {Name: "crc", Start: 56, Len: 8, Factor: 1},
	}}}}
	m, err := sigmap.Bind(db, sigmap.Spec{
		Receive: []sigmap.Link{{Message: "Order", Signal: "u", Port: "u"}},
		Receptions: []sigmap.Reception{{Message: "Order", CycleNs: int64(period), Protect: []sigmap.ProtectionSpec{
			{Profile: "crc8", Poly: 0x1D, Init: 0xFF, XorOut: 0xFF, Counter: []string{"n"}, Checksum: []string{"crc"}},
		}, Invalid: []sigmap.InvalidSpec{{Signal: "u", Values: []string{"0xFFFF"}}}}},
		PeriodNs: int64(period),
	}, []units.Port{{Name: "u", Unit: "m/s", Min: -100, Max: 100}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// order sends u, m/s, with counter n and a right checksum.
func (b *bench) order(t testing.TB, n int, u float64) {
	f := can.Frame{ID: 0x120, Len: 8}
	binary.LittleEndian.PutUint16(f.Data[:], uint16(int16(u*100)))
	f.Data[2], f.Data[6] = 7, byte(n%16)
	f.Data[7] = crc8(f.Data[:])
	if !b.unit.Send(&f) {
		t.Fatal("the bus takes no frame")
	}
}

// Each frame carries its tick as u. The faults act on the frames of ticks 20 to 24 of 40; the plant
// integrates the u that it gets. The frames that reach the plant are checked as a control unit does.
func TestPlantSeesEachFaultOfReceivedFrames(t *testing.T) {
	own := func(int) float64 { return -1 } // u of the frame
	kept := func(int) float64 { return 19 }
	for _, c := range []struct {
		name   string
		fault  fault.Fault
		u      func(k int) float64 // u of the step at tick 20 to 24; negative: that of the frame
		counts sigmap.Counts       // without Frames
		seen   [5]int              // of the frames passed in place of others: frames, wrong, short, repeated, lost
	}{
		{"none", fault.Fault{Where: fault.Bus, Kind: fault.BusOff, Start: fault.Trigger{Tick: 99}}, own, sigmap.Counts{OK: 40}, [5]int{}},
		{"drop", fault.Fault{Kind: fault.Drop}, kept, sigmap.Counts{OK: 34, Sequence: 1, NoNew: 4}, [5]int{}},
		{"frozen counter", fault.Fault{Kind: fault.FreezeCounter}, kept, sigmap.Counts{OK: 34, Repeated: 5, Sequence: 1}, [5]int{5, 0, 0, 4, 0}},
		{"checksum of one value", fault.Fault{Kind: fault.ChecksumValue, N: 0x5A}, kept, sigmap.Counts{OK: 34, Errors: 5, Sequence: 1}, [5]int{5, 5, 0, 0, 0}},
		{"frozen checksum", fault.Fault{Kind: fault.ChecksumFrozen}, kept, sigmap.Counts{OK: 34, Errors: 5, Sequence: 1}, [5]int{5, 5, 0, 0, 0}},
		{"random checksum", fault.Fault{Kind: fault.ChecksumRandom, Seed: 3}, kept, sigmap.Counts{OK: 34, Errors: 5, Sequence: 1}, [5]int{5, 5, 0, 0, 0}},
		{"checksum and 255", fault.Fault{Kind: fault.ChecksumOffset, N: 255}, kept, sigmap.Counts{OK: 34, Errors: 5, Sequence: 1}, [5]int{5, 5, 0, 0, 0}},
		{"short", fault.Fault{Kind: fault.WrongLength, N: 5}, kept, sigmap.Counts{OK: 34, Errors: 5, Length: 5, Sequence: 1}, [5]int{5, 0, 5, 0, 0}},
		{"delayed", fault.Fault{Kind: fault.DelayFrame, N: 1}, func(k int) float64 { return float64(k - 1) }, sigmap.Counts{OK: 40}, [5]int{5, 0, 0, 0, 0}},
		{"twice", fault.Fault{Kind: fault.Duplicate}, own, sigmap.Counts{OK: 40, Repeated: 5}, [5]int{5, 0, 0, 0, 0}},
		{"four times", fault.Fault{Kind: fault.Burst, N: 3}, own, sigmap.Counts{OK: 40, Repeated: 15}, [5]int{15, 0, 0, 10, 0}},
		{"stuck", fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Stuck, A: 70}, func(int) float64 { return 70 }, sigmap.Counts{OK: 40}, [5]int{5, 0, 0, 0, 0}},
		{"held", fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Hold}, func(int) float64 { return 20 }, sigmap.Counts{OK: 40}, [5]int{4, 0, 0, 0, 0}},
		{"doubled", fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Gain, A: 2}, func(k int) float64 { return 2 * float64(k) }, sigmap.Counts{OK: 40}, [5]int{5, 0, 0, 0, 0}},
		{"late value", fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Delay, N: 2}, func(k int) float64 { return float64(k - 2) }, sigmap.Counts{OK: 40}, [5]int{5, 0, 0, 0, 0}},
		{"beyond the range", fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Stuck, A: 150}, kept, sigmap.Counts{OK: 40, Range: 5}, [5]int{5, 0, 0, 0, 0}},
		{"no value", fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Open}, kept, sigmap.Counts{OK: 40, Invalid: 5}, [5]int{5, 0, 0, 0, 0}},
	} {
		f := c.fault
		if f.Where != fault.Bus {
			f.Start, f.Duration, f.Frames = fault.Trigger{Tick: 20}, 5, true
			if f.Where == 0 {
				f.Where = fault.ReceivedFrame
			}
		}
		b := newOrdered(t, f)
		b.page.OpenRing()
		x := 0.0
		for k := 1; k <= 40; k++ {
			b.order(t, k, float64(k))
			b.turn(1)
			want := float64(k)
			switch during := k >= 20 && k < 25; {
			case during && c.u(k) >= 0:
				want = c.u(k)
			case k == 25 && c.counts.Sequence > 0: // five counters are missing
				want = 19
			}
			if x += want * period.Seconds(); !scalar.EqualWithinAbs(b.plant.x, x, near) {
				t.Fatalf("%s: x = %g m after tick %d, want %g m", c.name, b.plant.x, k, x)
			}
		}
		got := b.page.Rx[0].Counts()
		if c.counts.Frames = got.Frames; got != c.counts {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.counts)
		}
		s, withheld := &unitSide{last: -1}, 0
		for e := (Entry{}); b.page.NextEntry(&e); {
			switch {
			case e.Kind == KindFrame && e.Copy:
				s.hear(int(e.Tick), &e.Frame)
			case e.Kind == KindFrame && e.Withheld:
				withheld++
				if e.Frame.Data[7] != crc8(e.Frame.Data[:]) || int(binary.LittleEndian.Uint16(e.Frame.Data[:])) != 100*int(e.Tick) {
					t.Errorf("%s: the frame of the bus is recorded as % X", c.name, e.Frame.Data[:8])
				}
			}
		}
		if seen := [5]int{s.frames, s.wrong, s.short, s.repeated, s.lost}; seen != c.seen {
			t.Errorf("%s: frames, wrong, short, repeated, lost are %v, want %v", c.name, seen, c.seen)
		}
		if state, n := b.page.FaultState(0); f.Where != fault.Bus && (state != fault.Over || n != 5) {
			t.Errorf("%s: %v after %d frames, want over after 5", c.name, state, n)
		}
	}
}

func newOrdered(t testing.TB, faults ...fault.Fault) *bench {
	t.Helper()
	b := newGuarded(t, Overrun{}, nil, func(c *Config, _ *integrator) { c.Faults = fault.Plan{} })
	cfg := b.cfg
	cfg.Faults = fault.Plan{Faults: faults, Ranges: [][2]float64{{-100, 100}}}
	var err error
	if b.Loop, err = New(cfg, b.plant, b.buses, []*sigmap.Map{ordered(t)}, b.ticker, b.page); err != nil {
		t.Fatal(err)
	}
	return b
}

// A wrong checksum of the control unit stays wrong when a signal is replaced: the fault does not
// hide an error of the bus. A frame without the signal stays as it is.
func TestReplacedSignalHidesNoOtherError(t *testing.T) {
	b := newOrdered(t, fault.Fault{Where: fault.ReceivedSignal, Kind: fault.Stuck, A: 70})
	send := func(n int, change func(f *can.Frame)) float64 {
		f := can.Frame{ID: 0x120, Len: 8, Data: [64]byte{0x10, 0x01, 7, 3, 4, 5, byte(n)}}
		f.Data[7] = crc8(f.Data[:])
		change(&f)
		b.unit.Send(&f)
		b.turn(1)
		return b.U[0]
	}
	for _, c := range []struct {
		name   string
		change func(f *can.Frame)
		u      float64
		errors uint64
	}{
		{"intact", func(*can.Frame) {}, 70, 0},
		{"wrong checksum", func(f *can.Frame) { f.Data[7] ^= 0x21; b.U[0] = 1 }, 1, 1},
		{"wrong data", func(f *can.Frame) { f.Data[3]++; b.U[0] = 2 }, 2, 2},
		{"another page", func(f *can.Frame) { f.Data[2] = 8; f.Data[7] = crc8(f.Data[:]); b.U[0] = 3 }, 3, 2},
		{"short", func(f *can.Frame) { f.Len = 4; b.U[0] = 4 }, 4, 3},
	} {
		n := int(b.page.Ticks.Load())
		if got := send(n, c.change); got != c.u || b.page.Rx[0].Counts().Errors != c.errors {
			t.Errorf("%s: u is %v with %d errors, want %v with %d", c.name, got, b.page.Rx[0].Counts().Errors, c.u, c.errors)
		}
	}
	if _, n := b.page.FaultState(0); n != 3 {
		t.Errorf("%d frames were changed, want 3", n)
	}
}

// A delayed frame keeps what the faults of its own tick made of it.
func TestFaultsOfReceivedFramesCombine(t *testing.T) {
	on := func(w fault.Where, k fault.Kind, n int64, a float64) fault.Fault {
		return fault.Fault{Where: w, Kind: k, N: n, A: a, Start: fault.Trigger{Tick: 3}, Duration: 1, Frames: true}
	}
	b := newOrdered(t, on(fault.ReceivedFrame, fault.DelayFrame, 1, 0), on(fault.ReceivedSignal, fault.Offset, 0, 20),
		on(fault.ReceivedFrame, fault.Duplicate, 0, 0), on(fault.ReceivedFrame, fault.DelayFrame, 1, 0), on(fault.ReceivedSignal, fault.Gain, 0, 2))
	b.page.OpenRing()
	for k := 1; k <= 6; k++ {
		b.order(t, k, float64(k))
		b.turn(1)
	}
	var got []int
	for e := (Entry{}); b.page.NextEntry(&e); {
		if e.Kind == KindFrame && e.Copy {
			got = append(got, int(e.Tick), int(binary.LittleEndian.Uint16(e.Frame.Data[:])))
		}
	}
	if want := []int{5, 4600, 5, 4600}; !slices.Equal(got, want) { // (3 + 20)·2 m/s
		t.Errorf("ticks and values of the copies are %v, want %v", got, want)
	}
}

func TestTickWithFaultsOfReceivedFramesDoesNotAllocate(t *testing.T) {
	var list []fault.Fault
	for k := fault.Stuck; k <= fault.Short; k++ {
		list = append(list, fault.Fault{Where: fault.ReceivedSignal, Kind: k, A: 0.5, B: 0.1, N: 1})
	}
	for k := fault.FreezeCounter; k <= fault.Burst; k++ {
		list = append(list, fault.Fault{Where: fault.ReceivedFrame, Kind: k, N: 2})
	}
	b := newOrdered(t, list...)
	b.page.OpenRing()
	n := 0
	if a := testing.AllocsPerRun(200, func() {
		n++
		b.order(t, n, 3)
		b.turn(1)
		b.page.OpenRing()
	}); a != 0 {
		t.Errorf("%g allocations a tick", a)
	}
	for slot := range list {
		if s, n := b.page.FaultState(slot); s != fault.Active || n < 200 {
			t.Errorf("fault %d is %v after %d frames: this proves little", slot, s, n)
		}
	}
}
