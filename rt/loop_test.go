package rt

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/io/sigmap"
	"lockstep/rt/fault"
	"lockstep/rt/network"
	"lockstep/sched"
)

// near is wide enough for the sum of some thousand steps of 5 ms, each rounded
// to 1 part in 10^16, of values up to 100.
const near = 1e-10

// span returns the whole numbers from a to b.
func span(a, b int) (list []int) {
	for i := a; i <= b; i++ {
		list = append(list, i)
	}
	return list
}

func TestFrameReceivedBeforeATickIsAnsweredInThatTick(t *testing.T) {
	b := newBench(t, Overrun{})
	want := 0.0
	for _, u := range []float64{1, -2.5, 40, 0} {
		b.command(t, u)
		b.turn(1)
		want += u * period.Seconds()
		got := b.received()
		if len(got.x) != 1 || !scalar.EqualWithinAbs(got.x[0], want, 0.5e-6) {
			t.Errorf("after u = %g m/s the frame says x = %v m, want %g m", u, got.x, want)
		}
	}
}

func TestLastCommandIsHeld(t *testing.T) {
	b := newBench(t, Overrun{})
	b.command(t, 10)
	b.turn(50)
	if want := 10 * 50 * period.Seconds(); !scalar.EqualWithinAbs(b.plant.x, want, near) {
		t.Errorf("x = %g m after 50 ticks, want %g m", b.plant.x, want)
	}
	if got := b.page.LastRx[0].Load(); got != 1 {
		t.Errorf("the command last came at tick %d, want 1", got)
	}
	b.command(t, 10)
	b.turn(1)
	if got := b.page.LastRx[0].Load(); got != 51 {
		t.Errorf("the command last came at tick %d, want 51", got)
	}
}

func TestFramesKeepTheirCycleAndTheirCountersHaveNoGap(t *testing.T) {
	b := newBench(t, Overrun{})
	b.turn(20)
	got := b.received()
	if !slices.Equal(got.steps, span(1, 20)) {
		t.Errorf("State was sent at ticks %v, want 1 to 20", got.steps)
	}
	if !slices.Equal(got.slow, []int{1, 5, 9, 13, 17}) {
		t.Errorf("Slow was sent at ticks %v, want 1, 5, 9, 13, 17", got.slow)
	}
	for i, c := range got.count {
		if c != i%16 {
			t.Errorf("counter %d is %d, want %d", i, c, i%16)
		}
	}
	if b.page.TxFrames.Load() != 25 || b.page.Ticks.Load() != 20 || b.page.Missed.Load() != 0 {
		t.Errorf("%d frames in %d ticks, %d missed; want 25 in 20, 0", b.page.TxFrames.Load(), b.page.Ticks.Load(), b.page.Missed.Load())
	}
}

// Grid points 10 to 12 are lost, the wake-up comes at 13.
func TestEachOverrunPolicyHandlesMissedTicks(t *testing.T) {
	without := func(lo, hi int) []int { return append(span(1, lo-1), span(hi+1, 30)...) }
	for _, c := range []struct {
		o      Overrun
		reason Reason
		ticks  int
		steps  []int // of the State frames
		slow   []int
		txLost uint64
	}{
		{Overrun{Stop, 0}, MissedTick, 9, span(1, 9), []int{1, 5, 9}, 3},
		{Overrun{Safe, 0}, Done, 30, span(1, 9), []int{1, 5, 9}, 0},
		{Overrun{Skip, 2}, Done, 30, span(1, 9), []int{1, 5, 9}, 0},
		{Overrun{Skip, 3}, Done, 30, without(10, 12), []int{1, 5, 9, 13, 17, 21, 25, 29}, 3},
		{Overrun{CatchUp, 2}, Done, 30, span(1, 9), []int{1, 5, 9}, 0},
		{Overrun{CatchUp, 3}, Done, 30, span(1, 30), []int{1, 5, 9, 13, 17, 21, 25, 29}, 0},
	} {
		b := newBench(t, c.o, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Start = 30, []float64{2} })
		b.ticker.Miss(10, 3)
		b.turn(1000)
		p := b.page
		if Reason(p.Reason.Load()) != c.reason {
			t.Errorf("%v: the run ended: %v; want: %v", c.o, Reason(p.Reason.Load()), c.reason)
		}
		if p.Ticks.Load() != uint64(c.ticks) || p.Missed.Load() != 3 || p.TxLost.Load() != c.txLost {
			t.Errorf("%v: %d ticks, %d missed, %d frames lost; want %d, 3, %d", c.o, p.Ticks.Load(), p.Missed.Load(), p.TxLost.Load(), c.ticks, c.txLost)
		}
		got := b.received()
		if !slices.Equal(got.steps, c.steps) || !slices.Equal(got.slow, c.slow) {
			t.Errorf("%v: State at ticks %v, Slow at %v; want %v and %v", c.o, got.steps, got.slow, c.steps, c.slow)
		}
		if want := 2 * period.Seconds() * float64(c.ticks); !scalar.EqualWithinAbs(b.plant.x, want, near) {
			t.Errorf("%v: x = %g m after %d ticks, want %g m: the plant is stepped over lost points", c.o, b.plant.x, c.ticks, want)
		}
		if p.SimNs.Load() != p.Ticks.Load()*uint64(period) {
			t.Errorf("%v: simulated time %d ns after %d ticks", c.o, p.SimNs.Load(), p.Ticks.Load())
		}
		if c.reason == Done && p.SimNs.Load() != uint64(b.ticker.Now()) {
			t.Errorf("%v: simulated time %d ns, clock %d ns", c.o, p.SimNs.Load(), b.ticker.Now())
		}
		if got, want := p.Late.Max(), int64(3*period); got != want {
			t.Errorf("%v: lateness %d ns, want %d ns: from the first point lost", c.o, got, want)
		}
		broken := map[Overrun]Reason{{Safe, 0}: MissedTick, {Skip, 2}: MissedLimit, {CatchUp, 2}: MissedLimit}[c.o]
		if got := Reason(p.SafeReason.Load()); got != broken || broken != 0 && p.SafeTick.Load() != 10 {
			t.Errorf("%v: safe state since tick %d: %v; want since 10: %v", c.o, p.SafeTick.Load(), got, broken)
		}
		if c.reason == Done && p.Late.N() != 30 {
			t.Errorf("%v: %d latenesses of 30 ticks, want one for each", c.o, p.Late.N())
		}
	}
}

func TestSimulatedTimeStaysOnTheGridUnderAnyMisses(t *testing.T) {
	for _, policy := range []Policy{Skip, CatchUp} {
		b := newBench(t, Overrun{policy, 7}, func(cfg *Config, _ *integrator) { cfg.Start = []float64{-3} })
		for k := int64(1); k < 500; k += 1 + k%11 {
			b.ticker.Miss(k, k%4)
		}
		for range 300 {
			b.turn(1)
			if now := uint64(b.ticker.Now()); b.page.SimNs.Load() != now {
				t.Fatalf("%v: simulated time %d ns, clock %d ns", Overrun{policy, 7}, b.page.SimNs.Load(), now)
			}
			b.received()
		}
		p := b.page
		if p.Missed.Load() == 0 || p.Late.N() < p.Ticks.Load() || p.Late.N() > p.Ticks.Load()+8 {
			t.Errorf("%d ticks, of them %d missed, with %d latenesses; want one for each tick and for those that ended the run", p.Ticks.Load(), p.Missed.Load(), p.Late.N())
		}
		if want := -3 * period.Seconds() * float64(p.Ticks.Load()); !scalar.EqualWithinAbs(b.plant.x, want, near) {
			t.Errorf("x = %g m, want %g m", b.plant.x, want)
		}
	}
}

func TestPointsAfterTheLastTickAreNotMissed(t *testing.T) {
	for _, policy := range []Policy{Stop, Skip, CatchUp} {
		o := Overrun{Policy: policy}
		if policy != Stop {
			o.Max = 1
		}
		b := newBench(t, o, func(cfg *Config, _ *integrator) { cfg.Ticks = 10 })
		b.ticker.Miss(10, 40)
		b.turn(100)
		if r := Reason(b.page.Reason.Load()); r != Done || b.page.Ticks.Load() != 10 || b.page.Missed.Load() != 0 {
			t.Errorf("%v: %v after %d ticks, %d missed; want done after 10, 0", o, r, b.page.Ticks.Load(), b.page.Missed.Load())
		}
	}
}

func TestNonFiniteStateEndsTheRunAndSendsNothing(t *testing.T) {
	for _, o := range []Overrun{{Stop, 0}, {Skip, 5}, {CatchUp, 5}} {
		b := newBench(t, o, func(_ *Config, p *integrator) { p.failsAt = 8 })
		if o.Policy != Stop {
			b.ticker.Miss(7, 3) // the state is lost at the second of four points
		}
		b.turn(100)
		p := b.page
		if r := Reason(p.Reason.Load()); r != NonFinite || p.BrokenState.Load() != 4 {
			t.Errorf("%v: %v, state %d; want %v, state 4", o, r, p.BrokenState.Load(), NonFinite)
		}
		want := span(1, 7)
		if o.Policy == Skip {
			want = span(1, 6)
		}
		if got := b.received(); !slices.Equal(got.steps, want) || slices.ContainsFunc(got.x, math.IsNaN) {
			t.Errorf("%v: State was sent at ticks %v, want %v", o, got.steps, want)
		}
		if p.Ticks.Load() != 8 {
			t.Errorf("%v: the run ended at tick %d, want 8", o, p.Ticks.Load())
		}
	}
}

func TestNaNIsNotSent(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, p *integrator) { p.failsAt, cfg.Watch = 8, unwatched() })
	b.turn(10)
	got := b.received()
	if !slices.Equal(got.steps, span(1, 7)) || !slices.Equal(got.slow, []int{1, 5, 9}) {
		t.Errorf("State was sent at ticks %v, Slow at %v, want 1 to 7 and 1, 5, 9", got.steps, got.slow)
	}
	if b.page.TxRefused.Load() != 3 || b.page.TxFrames.Load() != 10 {
		t.Errorf("%d frames refused, %d sent, want 3, 10", b.page.TxRefused.Load(), b.page.TxFrames.Load())
	}
}

func TestUnknownAndMalformedFramesAreCountedAndIgnored(t *testing.T) {
	b := newBench(t, Overrun{})
	b.command(t, 10)
	b.turn(1)
	before := b.plant.x
	for _, f := range []can.Frame{
		{ID: 0x7ff, Len: 8},           // unknown
		{ID: 0x110 | can.EFF, Len: 8}, // wrong format: extended
		{ID: 0x110 | can.RTR, Len: 4}, // wrong format: a request
		{ID: 0x110, Len: 4, Flags: can.FlagFDF, Data: [64]byte{0x00, 0x10}}, // wrong format: CAN FD
		{ID: 0x110, Len: 1, Data: [64]byte{0xff}},                           // short
		{ID: 0x110, Len: 4, Data: [64]byte{0xff, 0x7f}},                     // 327.67 m/s of 100
		{ID: 0x110, Len: 4, Data: [64]byte{0x00, 0x80}},                     // -327.68 m/s of -100
	} {
		if !b.unit.Send(&f) {
			t.Fatal("the unit cannot send")
		}
	}
	b.turn(1)
	p := b.page
	got := [...]uint64{p.RxFrames.Load(), p.RxUnknown.Load(), p.RxFormat.Load(), p.RxShort.Load(), p.RxRange.Load(), p.LastRx[0].Load()}
	if want := [...]uint64{8, 1, 3, 1, 2, 2}; got != want {
		t.Errorf("frames, unknown, of a wrong format, short, out of range, tick of the last one of full length: %v, want %v", got, want)
	}
	if want := before + 10*period.Seconds(); !scalar.EqualWithinAbs(b.plant.x, want, near) {
		t.Errorf("x = %g m, want %g m: the last valid command holds", b.plant.x, want)
	}
}

func TestFloodOfFramesIsReadInPartsAndInOrder(t *testing.T) {
	b := newBench(t, Overrun{})
	const commands, flood = 91, MaxRecv + 10 // the socket holds about 278
	for i := range commands {
		b.command(t, float64(i))
	}
	for range flood - commands {
		if !b.unit.Send(&can.Frame{ID: 0x123, Len: 8}) {
			t.Fatal("the unit cannot send")
		}
	}
	b.turn(1)
	if got := b.page.RxFrames.Load(); got != MaxRecv || b.page.RxBound.Load() != 1 {
		t.Errorf("the first tick read %d frames of %d and met the bound %d times, want %d, once", got, flood, b.page.RxBound.Load(), MaxRecv)
	}
	b.turn(1)
	if got := b.page.RxFrames.Load(); got != flood || b.page.RxUnknown.Load() != flood-commands {
		t.Errorf("two ticks read %d frames, %d unknown; want %d, %d", got, b.page.RxUnknown.Load(), flood, flood-commands)
	}
	if b.U[0] != 90 {
		t.Errorf("the last command is %g m/s, want 90 m/s", b.U[0])
	}
}

func TestFramesThatTheBusDoesNotTakeAreCounted(t *testing.T) {
	b := newBench(t, Overrun{})
	b.turn(1000) // without a reader at the other end
	p := b.page
	if due := uint64(1000 + 250); p.TxDropped.Load() == 0 || p.TxFrames.Load()+p.TxDropped.Load()-p.TxAgain.Load() != due {
		t.Errorf("%d frames sent, %d dropped, %d of them tried again; want some dropped and %d in all",
			p.TxFrames.Load(), p.TxDropped.Load(), p.TxAgain.Load(), due)
	}
	if n := p.TxDrops[0].Load() + p.TxDrops[1].Load(); n != p.TxDropped.Load() || p.TxDrops[1].Load() == 0 || p.TxAgain.Load() == 0 {
		t.Errorf("%d frames dropped, %d and %d by message, %d tried again", p.TxDropped.Load(), p.TxDrops[0].Load(), p.TxDrops[1].Load(), p.TxAgain.Load())
	}
	if p.BusDown.Load() != 0 {
		t.Errorf("%d ticks found the bus down: it is only full", p.BusDown.Load())
	}
	_ = b.unit.Close()
	b.turn(10)
	if p.Ticks.Load() != 1010 || p.Reason.Load() != 0 || p.BusDown.Load() != 10 {
		t.Errorf("after the unit has gone: tick %d, %v, %d ticks with the bus down; want 1010, no end, 10",
			p.Ticks.Load(), Reason(p.Reason.Load()), p.BusDown.Load())
	}
}

func TestStatusBlockShowsTheOutputsOfThePlant(t *testing.T) {
	b := newBench(t, Overrun{}, func(_ *Config, p *integrator) { p.lag = 0.004 })
	b.turn(4) // lag is 4 ms / k
	p := b.page
	if p.Events.Load() != 8 || p.Transitions.Load() != 12 {
		t.Errorf("events %d, transitions %d, want 8, 12", p.Events.Load(), p.Transitions.Load())
	}
	if !scalar.EqualWithinAbs(p.LagMax(), 0.004, 1e-15) {
		t.Errorf("largest lag %g s, want 0.004 s", p.LagMax())
	}
	y := make([]float64, MaxOutputs)
	if tick, ok := p.Outputs(y); !ok || tick != 4 || y[outSteps] != 4 || !scalar.EqualWithinAbs(y[outLag], 0.001, 1e-15) {
		t.Errorf("outputs of tick %d: %v, ok %t", tick, y[:outputs], ok)
	}
}

func TestNewRefusesMoreThanTheStatusBlockHolds(t *testing.T) {
	cfg := Config{Period: period, Start: []float64{0}, Watch: unwatched()}
	if _, err := New(cfg, &integrator{}, nil, nil, sched.NewVirtual(period), new(StatusBlock)); err != nil {
		t.Errorf("New: %v", err)
	}
	few := []*sigmap.Map{{}}
	for want, maps := range map[string][]*sigmap.Map{
		"rt: 257 messages are received, the status block has room for 256": {{Rx: make([]sigmap.Rx, MaxRx+1)}},
		"rt: 257 messages are sent, the status block has room for 256":     {{Tx: make([]sigmap.Tx, MaxTx+1)}},
		"rt: 17 buses, the status block has room for 16":                   slices.Repeat(few, MaxBuses+1),
	} {
		_, err := New(cfg, &integrator{}, make([]*can.Bus, len(maps)), maps, sched.NewVirtual(period), new(StatusBlock))
		if err == nil || err.Error() != want {
			t.Errorf("New: %v, want %s", err, want)
		}
	}
}

func TestTickDoesNotAllocate(t *testing.T) {
	frames := make([]can.Frame, 1024)
	ignition := []fault.Command{{Op: fault.SwitchIgnition}}
	for _, c := range []struct {
		name string
		o    Overrun
		miss int64 // lost at every wake-up
		each func(b *bench)
	}{
		{"frames both ways", Overrun{}, 0, func(b *bench) { b.command(t, 3); b.unit.Recv(frames) }},
		{"a flood", Overrun{}, 0, func(b *bench) {
			for range 300 {
				b.unit.Send(&can.Frame{ID: 0x123, Len: 8})
			}
			b.unit.Recv(frames)
		}},
		{"a full bus", Overrun{}, 0, func(b *bench) {}},
		{"skipped ticks", Overrun{Skip, 10}, 4, func(b *bench) { b.command(t, 3); b.unit.Recv(frames) }},
		{"late ticks", Overrun{CatchUp, 10}, 4, func(b *bench) { b.command(t, 3); b.unit.Recv(frames) }},
		{"a lost state", Overrun{}, 0, func(b *bench) { b.plant.x = math.NaN() }},
		{"arrivals and ramps", Overrun{}, 0, func(b *bench) {
			for i := range 6 {
				b.command(t, float64(b.k%50)+float64(i))
				b.stamps[0] = can.Stamp{}
			}
			b.unit.Recv(frames)
		}},
		{"ignition and network management", Overrun{}, 0, func(b *bench) {
			b.command(t, 3)
			b.unit.Recv(frames)
			ignition[0].Slot = int(b.page.Ticks.Load()/7) % network.States
			b.page.Post(1, ignition)
		}},
	} {
		b := newBench(t, c.o, func(cfg *Config, p *integrator) {
			if p.changes = make([]lineFrom, 0, 64); c.name == "arrivals and ramps" {
				cfg.Inputs = InputPlan{AtArrival: true, RampNs: []int64{7e6}}
			}
			if m := database(t); c.name == "ignition and network management" {
				node := network.NodePlan{From: make([]bool, len(m.Rx)), Awake: [network.States]bool{2: true, 3: true}, Cycle: 2, Timeout: 4, Wait: 2}
				cfg.Network = &network.Plan{Delays: make([][network.States]int64, len(m.Tx)), Nodes: []network.NodePlan{node}}
			}
		})
		n := testing.AllocsPerRun(500, func() {
			c.each(b)
			b.Tick(1 + c.miss)
		})
		if n != 0 {
			t.Errorf("%s: a tick allocates %v times", c.name, n)
		}
		if b.page.Ticks.Load() == 0 || b.page.Missed.Load() != uint64(c.miss)*b.page.Work.N() {
			t.Errorf("%s: %d ticks, %d missed in %d wake-ups", c.name, b.page.Ticks.Load(), b.page.Missed.Load(), b.page.Work.N())
		}
	}
}

func BenchmarkTick(b *testing.B) {
	be := newBench(b, Overrun{})
	frames := make([]can.Frame, 64)
	for b.Loop() {
		be.command(b, 1)
		be.Tick(1)
		be.unit.Recv(frames)
	}
}

func TestNoTickOfAVirtualRunIsLate(t *testing.T) {
	for _, virtual := range []bool{false, true} {
		b := newBench(t, Overrun{}, func(c *Config, _ *integrator) { c.Budget, c.Virtual = 1, virtual })
		b.turn(20)
		if late := b.page.LateCount(); (late == 0) != virtual {
			t.Errorf("virtual %t: %d late ticks of 20, each over a budget of 1 ns", virtual, late)
		}
	}
}

// A frame with the identifier of a sent message comes from another node: a bus does not return the
// loop's own frames.
func TestFramesOfAnotherNodeWithASentIdentifierAreCounted(t *testing.T) {
	b := newBench(t, Overrun{})
	b.turn(2)
	for _, id := range []uint32{0x201, 0x201, 0x202, 0x201 | can.EFF, 0x201 | can.RTR} {
		if !b.unit.Send(&can.Frame{ID: id, Len: 3}) {
			t.Fatal("the unit cannot send")
		}
	}
	b.turn(2)
	b.unit.Send(&can.Frame{ID: 0x201, Len: 8})
	b.turn(1)
	state, slow := &b.page.TxConflicts[0], &b.page.TxConflicts[1]
	got := [...]uint64{state.Frames.Load(), slow.Frames.Load(), slow.First.Load(), slow.Last.Load(), b.page.RxUnknown.Load(), b.page.RxFrames.Load()}
	if want := [...]uint64{0, 3, 3, 5, 3, 6}; got != want {
		t.Errorf("conflicts of State and Slow, first and last tick of Slow, unknown, frames: %v, want %v", got, want)
	}
}

// The supervisor sends the claims of a J1939 address from a socket of its own.
func TestAddressClaimsAreNoConflicts(t *testing.T) {
	m := &sigmap.Map{Tx: []sigmap.Tx{{ID: 0x18EEFF03 | can.EFF}, {ID: 0x0CF00403 | can.EFF}, {ID: 0xEE}}}
	got := sentIDs(m, 7)
	if want := []sentID{{0xEE, 9}, {0x0CF00403 | can.EFF, 8}}; !slices.Equal(got, want) {
		t.Errorf("%X, want %X", got, want)
	}
}
