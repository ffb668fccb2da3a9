package rt

import (
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/rt/fault"
)

// Five frames are disturbed, those of ticks 20 to 24 of 60.
func TestUnitSeesEachFrameFaultForTheDeclaredNumberOfFrames(t *testing.T) {
	for _, c := range []struct {
		kind fault.Kind
		n    int64
		want [5]int // frames, wrong, short, repeated, lost
		more func(s *unitSide) bool
	}{
		{fault.None, 0, [5]int{60, 0, 0, 0, 0}, nil},
		{fault.Drop, 0, [5]int{55, 0, 0, 0, 5}, func(s *unitSide) bool { return s.steps[18] == 19 && s.steps[19] == 25 }},
		{fault.FreezeCounter, 0, [5]int{60, 0, 0, 5, 0}, nil}, // and then on from there
		{fault.ChecksumValue, 0x5A, [5]int{60, 5, 0, 0, 5}, func(s *unitSide) bool { return string(s.sums[19:24]) == "ZZZZZ" }},
		{fault.ChecksumFrozen, 0, [5]int{60, 5, 0, 0, 5}, func(s *unitSide) bool {
			return s.sums[18] == s.right[18] && string(s.sums[19:24]) == string(slices.Repeat(s.right[18:19], 5))
		}},
		{fault.ChecksumRandom, 0, [5]int{60, 5, 0, 0, 5}, nil},
		{fault.ChecksumOffset, 255, [5]int{60, 5, 0, 0, 5}, func(s *unitSide) bool { return s.sums[19] == s.right[19]-1 && s.sums[23] == s.right[23]-1 }},
		{fault.WrongLength, 5, [5]int{60, 0, 5, 0, 5}, nil},
		{fault.WrongLength, 0, [5]int{60, 0, 5, 0, 5}, nil},
		// Five are missing and come three ticks later in their order, each before the younger frame of its tick.
		{fault.DelayFrame, 3, [5]int{60, 0, 0, 0, -1}, func(s *unitSide) bool {
			return slices.Equal(s.steps[18:28], []int{19, 20, 21, 22, 25, 23, 26, 24, 27, 28}) && slices.Equal(s.tick[18:28], []int{19, 23, 24, 25, 25, 26, 26, 27, 27, 28})
		}},
		{fault.Duplicate, 0, [5]int{65, 0, 0, 5, 0}, func(s *unitSide) bool { return s.tick[19] == 20 && s.tick[20] == 20 }},
		{fault.Burst, 3, [5]int{75, 0, 0, 15, 0}, func(s *unitSide) bool { return s.tick[22] == 20 && s.steps[22] == 20 }},
	} {
		var faults []fault.Fault
		if c.kind != fault.None {
			faults = []fault.Fault{{Kind: c.kind, Where: fault.SentFrame, N: c.n, Duration: 5, Frames: true, Start: fault.Trigger{Tick: 20}}}
		}
		b := newGuarded(t, Overrun{}, faults)
		s := b.drive(60)
		got := [5]int{s.frames, s.wrong, s.short, s.repeated, s.lost}
		if c.want[4] < 0 { // out of order: the distance of counters says little
			got[4] = c.want[4]
		}
		if got != c.want {
			t.Errorf("kind %d, %d: frames, wrong, short, repeated, lost are %v, want %v", c.kind, c.n, got, c.want)
		}
		if c.more != nil && !c.more(s) {
			t.Errorf("kind %d, %d: steps %v at ticks %v, checksums % X, right % X", c.kind, c.n, s.steps[17:30], s.tick[17:30], s.sums[17:30], s.right[17:30])
		}
		if state, n := b.page.FaultState(0); c.kind != fault.None && (state != fault.Over || n != 5) {
			t.Errorf("kind %d: %v after %d frames, want over after 5", c.kind, state, n)
		}
		if tick, ok := b.page.FaultBegan(0); ok != (c.kind != fault.None) || ok && tick != 20 {
			t.Errorf("kind %d: began at tick %d, %t; want 20", c.kind, tick, ok)
		}
	}
}

// A delayed frame is sent as often as it would have been; one that is cut has nothing
// beyond its end, not even a wrong checksum.
func TestSeveralFrameFaultsOnOneMessageCombine(t *testing.T) {
	on := func(k fault.Kind, n int64) fault.Fault {
		return fault.Fault{Kind: k, N: n, Where: fault.SentFrame, Start: fault.Trigger{Tick: 3}, Duration: 1, Frames: true}
	}
	b := newGuarded(t, Overrun{}, []fault.Fault{on(fault.DelayFrame, 2), on(fault.Duplicate, 0), on(fault.Burst, 1)})
	s := b.drive(8)
	if !slices.Equal(s.steps, []int{1, 2, 4, 3, 3, 3, 5, 6, 7, 8}) || !slices.Equal(s.tick[3:7], []int{5, 5, 5, 5}) {
		t.Errorf("steps %v at ticks %v", s.steps, s.tick)
	}
	b = newGuarded(t, Overrun{}, []fault.Fault{on(fault.WrongLength, 4), on(fault.ChecksumOffset, 1), on(fault.Drop, 0), on(fault.Burst, 9)})
	b.page.OpenRing()
	if s = b.drive(4); s.frames != 3 || s.lost != 1 {
		t.Errorf("%d frames, %d lost; want 3, 1", s.frames, s.lost)
	}
	var made []can.Frame
	for e := (Entry{}); b.page.NextEntry(&e); {
		if e.Kind == KindFrame && e.Withheld {
			made = append(made, e.Frame)
		}
	}
	if len(made) != 1 || made[0].Len != 4 || made[0].Data[7] != 0 {
		t.Errorf("withheld: %v, want one of 4 bytes", made)
	}
}

func TestRandomChecksumIsNeverRightAndTakesEveryOtherValue(t *testing.T) {
	b := newGuarded(t, Overrun{}, []fault.Fault{{Kind: fault.ChecksumRandom, Where: fault.SentFrame, Seed: 3}})
	s := b.drive(10_000)
	seen := map[byte]int{}
	for i := range s.sums {
		seen[s.sums[i]-s.right[i]]++
	}
	if s.wrong != 10_000 || len(seen) != 255 || seen[0] != 0 {
		t.Errorf("%d of 10000 are wrong, by %d amounts, %d by 0", s.wrong, len(seen), seen[0])
	}
}

func TestBusOffFaultStopsFramesInBothDirections(t *testing.T) {
	b := newGuarded(t, Overrun{}, []fault.Fault{{Kind: fault.BusOff, Where: fault.Bus, Start: fault.Trigger{Tick: 11}, Duration: 10}})
	var frames [64]can.Frame
	for k := 1; k <= 30; k++ {
		b.command(t, float64(k))
		b.turn(1)
		off := k > 10 && k <= 20
		want := float64(k)
		if off {
			want = 10
		}
		if n := b.unit.Recv(frames[:]); n != map[bool]int{false: 1, true: 0}[off] || b.U[0] != want {
			t.Errorf("tick %d: %d frames out, the command is %v, want %v", k, n, b.U[0], want)
		}
	}
	if n := frames[0].Data[6] & 15; n != 29%16 {
		t.Errorf("the counter of the last frame is %d, want %d: it went on", n, 29%16)
	}
	if p := b.page; p.TxFrames.Load() != 20 || p.RxFrames.Load() != 30 || p.Rx[0].Counts().Frames != 20 {
		t.Errorf("%d sent, %d read, %d decoded; want 20, 30, 20", p.TxFrames.Load(), p.RxFrames.Load(), p.Rx[0].Counts().Frames)
	}
}

func TestFaultsDropOrDelayReceivedFrames(t *testing.T) {
	from := fault.Trigger{Tick: 10}
	for _, c := range []struct {
		f    fault.Fault
		want func(k int) float64
	}{
		{fault.Fault{Kind: fault.Drop, Start: from, Duration: 3, Frames: true}, func(k int) float64 {
			if k >= 10 && k < 13 {
				return 9
			}
			return float64(k)
		}},
		{fault.Fault{Kind: fault.DelayFrame, N: 4, Start: from, Duration: 10}, func(k int) float64 {
			switch {
			case k >= 10 && k < 14:
				return 9
			case k >= 14 && k < 20:
				return float64(k - 4)
			}
			return float64(k) // after 20 the late one comes first, then the one of now
		}},
	} {
		c.f.Where = fault.ReceivedFrame
		b := newGuarded(t, Overrun{}, []fault.Fault{c.f})
		for k := 1; k <= 30; k++ {
			b.command(t, float64(k))
			b.turn(1)
			if want := c.want(k); b.U[0] != want {
				t.Errorf("kind %d, tick %d: the command is %v, want %v", c.f.Kind, k, b.U[0], want)
			}
		}
		if age := b.page.Rx[0].AgeMax.Load(); age > 4*uint64(period) {
			t.Errorf("kind %d: the oldest frame was %d ns old, want at most 4 ticks", c.f.Kind, age)
		}
		if got, want := b.page.Rx[0].Counts().Frames, uint64(30); c.f.Kind == fault.DelayFrame && got != want {
			t.Errorf("%d frames are decoded, want %d", got, want)
		}
	}
}

// Five frames are received in each tick: a fault of two frames drops two, one of two ticks drops ten.
func TestFaultLastsForItsFramesOrItsTicksHoweverManyFramesATickHas(t *testing.T) {
	for frames, want := range map[bool]uint64{true: 18, false: 10} {
		b := newGuarded(t, Overrun{}, []fault.Fault{{Kind: fault.Drop, Where: fault.ReceivedFrame, Duration: 2, Frames: frames}})
		for range 4 {
			for range 5 {
				b.command(t, 1)
			}
			b.turn(1)
		}
		if got := b.page.Rx[0].Counts().Frames; got != want {
			t.Errorf("a duration in frames %t: %d frames are decoded, want %d", frames, got, want)
		}
	}
}

func TestDelayedFramesOfOneTickAreAllDecodedWhenTheyAreDue(t *testing.T) {
	b := newGuarded(t, Overrun{}, []fault.Fault{{Kind: fault.DelayFrame, N: 4, Where: fault.ReceivedFrame, Duration: 100}})
	for u := range 5 {
		b.command(t, float64(u+1))
	}
	for k := 1; k <= 8; k++ {
		b.turn(1)
		want, frames := 0.0, uint64(0)
		if k >= 5 {
			want, frames = 5, 5
		}
		if got := b.page.Rx[0].Counts().Frames; b.U[0] != want || got != frames {
			t.Errorf("tick %d: the command is %v after %d frames, want %v after %d", k, b.U[0], got, want, frames)
		}
	}
}

// Ticks 10 to 14 are lost; the fault is at 12 and 13.
func TestFaultsActAtTheirTickWhenItIsMissed(t *testing.T) {
	stuck := fault.Fault{Kind: fault.Stuck, A: 70, Start: fault.Trigger{Tick: 12}, Duration: 2}
	for _, o := range []Overrun{{Skip, 9}, {CatchUp, 9}} {
		b := newGuarded(t, o, []fault.Fault{stuck}, func(c *Config, _ *integrator) { c.Start = []float64{2} })
		b.ticker.Miss(10, 5)
		b.drive(15)
		if want := (2*18 + 70*2) * period.Seconds(); !scalar.EqualWithinAbs(b.plant.x, want, near) || b.page.Ticks.Load() != 20 {
			t.Errorf("%v: x = %g m after %d ticks, want %g m after 20", o, b.plant.x, b.page.Ticks.Load(), want)
		}
		if s, n := b.page.FaultState(0); s != fault.Over || n != 2 {
			t.Errorf("%v: %v after %d ticks", o, s, n)
		}
	}
	slow := fault.Fault{Kind: fault.DelayFrame, N: 4, Where: fault.ReceivedFrame}
	b := newGuarded(t, Overrun{Skip, 9}, []fault.Fault{slow})
	b.ticker.Miss(10, 5)
	b.page.OpenRing()
	for k := 1; k <= 15; k++ {
		if k == 8 {
			b.command(t, 2) // read at 8, decoded at 12
		}
		b.turn(1)
	}
	var came []int64
	for e := (Entry{}); b.page.NextEntry(&e); {
		if e.Kind == KindFrame && e.Fate == Received {
			came = append(came, e.Tick)
		}
	}
	if want := 2 * 9 * period.Seconds(); !scalar.EqualWithinAbs(b.plant.x, want, near) || !slices.Equal(came, []int64{8, 12}) {
		t.Errorf("x = %g m after %d ticks, want %g m after 20; the frame came at %v", b.plant.x, b.page.Ticks.Load(), want, came)
	}
	drop := fault.Fault{Kind: fault.Drop, Where: fault.SentFrame, Start: fault.Trigger{Tick: 12}, Duration: 2}
	b = newGuarded(t, Overrun{CatchUp, 9}, []fault.Fault{drop})
	b.ticker.Miss(10, 5)
	if got, want := b.drive(15).steps, append(span(1, 11), span(14, 20)...); !slices.Equal(got, want) {
		t.Errorf("sent late: %v, want %v", got, want)
	}
}

func TestSafeFramesCarryTheSafeValuesAndFrameFaultsStillAct(t *testing.T) {
	at := fault.Trigger{Tick: 5}
	b := newGuarded(t, Overrun{Safe, 0}, []fault.Fault{
		{Kind: fault.Stuck, A: 500, Where: fault.Signal, Field: 1, Start: at},
		{Kind: fault.Drop, Where: fault.SentFrame, Start: fault.Trigger{Tick: 20}, Duration: 4, Frames: true},
	}, func(c *Config, _ *integrator) { c.Safe, c.Ticks = safeValues(Done), 30 })
	b.ticker.Miss(11, 1) // 11 is lost
	s := b.drive(100)
	var want []int
	want = append(append(append(want, span(1, 4)...), slices.Repeat([]int{500}, 6)...), slices.Repeat([]int{77}, 19-4+6)...)
	if !slices.Equal(s.steps, want) || s.lost != 4 {
		t.Errorf("steps %v, %d lost; want %v, 4 lost", s.steps, s.lost, want)
	}
}

func TestFaultsEndWithTheRun(t *testing.T) {
	b := newGuarded(t, Overrun{}, []fault.Fault{{Kind: fault.BusOff, Where: fault.Bus, Start: fault.Trigger{Tick: 4}},
		{Kind: fault.DelayFrame, N: 2, Where: fault.SentFrame, Start: fault.Trigger{Tick: 3}}}, func(c *Config, _ *integrator) { c.Safe, c.Ticks = safeValues(Done), 10 })
	for range 10 {
		b.turn(1)
	}
	b.command(t, 1)
	s := b.drive(50)
	if n := b.page.Rx[0].Counts().Frames; n != 1 {
		t.Errorf("%d frames are decoded after the end, want 1", n)
	}
	if got, want := s.steps, append(span(1, 2), slices.Repeat([]int{77}, 6)...); !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
}

// all is a fault of every kind and place of the guarded bench, without end.
func all() (list []fault.Fault) {
	for k := fault.Stuck; k <= fault.Short; k++ {
		list = append(list, fault.Fault{Kind: k, Where: fault.Signal, A: 0.5, B: 0.1, N: 1})
		if k != fault.Short { // it has no range
			list = append(list, fault.Fault{Kind: k, Where: fault.Input, A: 0.5, B: 0.1, N: 1})
		}
	}
	for k, n := range map[fault.Kind]int64{fault.FreezeCounter: 0, fault.ChecksumRandom: 0, fault.ChecksumFrozen: 0, fault.ChecksumOffset: 1,
		fault.ChecksumValue: 1, fault.WrongLength: 7, fault.Duplicate: 0, fault.Burst: 2, fault.DelayFrame: 5} {
		list = append(list, fault.Fault{Kind: k, Where: fault.SentFrame, N: n})
	}
	return append(list, fault.Fault{Kind: fault.DelayFrame, Where: fault.ReceivedFrame, N: 3})
}

func TestTickWithFaultsDoesNotAllocate(t *testing.T) {
	b := newGuarded(t, Overrun{}, all())
	b.page.OpenRing()
	var frames [256]can.Frame
	list := []fault.Command{{Slot: 50, Fault: fault.Fault{Kind: fault.Noise, A: 1, Duration: 3}}, {Op: fault.Clear, Slot: 51}}
	batch := uint64(0)
	if n := testing.AllocsPerRun(300, func() {
		batch++
		b.command(t, 3)
		b.page.Post(batch, list)
		b.turn(1)
		b.unit.Recv(frames[:])
		b.page.OpenRing()
	}); n != 0 {
		t.Errorf("%g allocations a tick", n)
	}
	active := 0
	for slot := range fault.Max {
		if s, n := b.page.FaultState(slot); s == fault.Active && n > 100 {
			active++
		}
	}
	if n, _ := b.page.Taken(); active != len(all()) || n != batch {
		t.Errorf("%d of %d faults are active, %d of %d batches taken: this proves little", active, len(all()), n, batch)
	}
}

// BenchmarkFaults is how many times longer a tick takes with as many faults as fit than
// without any, turn by turn: armed, with conditions that never hold, and active.
func BenchmarkFaults(b *testing.B) {
	never := fault.Trigger{When: [2]fault.Condition{{Set: true, Above: true, Limit: -1e9}, {Set: true, Output: true, Above: true, Limit: 1e9}}}
	for _, c := range []struct {
		name string
		f    fault.Fault
	}{
		{"armed", fault.Fault{Kind: fault.Offset, Start: never}}, {"offset", fault.Fault{Kind: fault.Offset}}, {"noise", fault.Fault{Kind: fault.Noise}},
		{"signal", fault.Fault{Kind: fault.Noise, Where: fault.Signal}}, {"checksum", fault.Fault{Kind: fault.ChecksumRandom, Where: fault.SentFrame}},
	} {
		b.Run(c.name, func(b *testing.B) {
			benches := [2]*bench{newGuarded(b, Overrun{}, nil), newGuarded(b, Overrun{}, slices.Repeat([]fault.Fault{c.f}, fault.Max))}
			var frames [64]can.Frame
			var took [2][]float64
			for b.Loop() {
				for i, be := range benches {
					be.command(b, 1)
					began := time.Now()
					be.Tick(1)
					took[i] = append(took[i], float64(time.Since(began)))
					be.unit.Recv(frames[:])
				}
			}
			for _, list := range took {
				slices.Sort(list)
			}
			without, with := took[0][len(took[0])/2], took[1][len(took[1])/2]
			b.ReportMetric(with/without, "ratio")
			b.ReportMetric(with-without, "ns/64-faults")
		})
	}
}
