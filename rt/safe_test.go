package rt

import (
	"math"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/io/can"
	"lockstep/sched"
)

// safeValues returns the values sent in the safe state after ends for reasons: x = -7 m, 77 steps.
func safeValues(reasons ...Reason) SafeValues {
	f := SafeValues{Values: make([]float64, outputs), Ticks: 6}
	f.Values[outX], f.Values[outSteps] = -7, 77
	for _, r := range reasons {
		f.Ends |= 1 << r
	}
	return f
}

func TestSafeValuesAreSentAtOnceWhileThePlantFollowsTheClock(t *testing.T) {
	for _, o := range []Overrun{{Safe, 0}, {Skip, 2}, {CatchUp, 2}} {
		b := newBench(t, o, func(cfg *Config, _ *integrator) {
			cfg.Ticks, cfg.Start, cfg.Safe = 30, []float64{2}, safeValues(Done)
		})
		b.ticker.Miss(11, 3) // 11 to 13 are lost, the wake-up is at 14: no Slow is due there
		b.turn(11)
		got := b.received()
		if want := append(span(1, 10), 77); !slices.Equal(got.steps, want) {
			t.Errorf("%v: State says steps %v, want %v", o, got.steps, want)
		}
		if want := []int{1, 5, 9, 77}; !slices.Equal(got.slow, want) {
			t.Errorf("%v: Slow says %v, want %v: every frame at once", o, got.slow, want)
		}
		if x := got.x[len(got.x)-1]; x != -7 {
			t.Errorf("%v: x = %g m on the bus, want -7 m", o, x)
		}
		b.turn(1000)
		got = b.received()
		if len(got.steps) != 16+6 || slices.ContainsFunc(got.steps, func(n int) bool { return n != 77 }) {
			t.Errorf("%v: State says steps %v, want 77 at the ticks 15 to 30 and 6 times after", o, got.steps)
		}
		for i, c := range got.count {
			if c != (i+11)%16 {
				t.Errorf("%v: counter %d of the safe frames is %d, want %d: it goes on", o, i, c, (i+11)%16)
			}
		}
		if want := 2 * period.Seconds() * 30; !scalar.EqualWithinAbs(b.plant.x, want, near) || b.page.Ticks.Load() != 30 {
			t.Errorf("%v: x = %g m after %d ticks, want %g m after 30", o, b.plant.x, b.page.Ticks.Load(), want)
		}
	}
}

func TestSilentBusCarriesNoFramesNotEvenSafeValues(t *testing.T) {
	b := newBench(t, Overrun{Safe, 0}, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Safe = 30, safeValues(Done) })
	b.turn(10)
	if got := b.received(); !slices.Equal(got.steps, span(1, 10)) {
		t.Errorf("State says steps %v, want 1 to 10", got.steps)
	}
	b.page.Muted.Store(1)
	b.turn(1000)
	if got := b.received(); len(got.steps) != 0 || len(got.slow) != 0 || b.page.Ticks.Load() != 30 {
		t.Errorf("%d frames after %d ticks, want none after 30", len(got.steps)+len(got.slow), b.page.Ticks.Load())
	}
}

func TestSafeStateWithoutSafeValuesSendsNothing(t *testing.T) {
	b := newBench(t, Overrun{Safe, 0}, func(cfg *Config, _ *integrator) { cfg.Ticks = 30 })
	b.ticker.Miss(10, 1)
	b.turn(100)
	if got := b.received(); !slices.Equal(got.steps, span(1, 9)) || b.page.Ticks.Load() != 30 {
		t.Errorf("State at ticks %v of %d, want 1 to 9 of 30", got.steps, b.page.Ticks.Load())
	}
}

// What follows an end is declared for each reason.
func TestSafeValuesFollowTheDeclaredEndsOnly(t *testing.T) {
	ends := map[Reason]func(*bench){
		Done:       func(*bench) {},
		Stopped:    func(b *bench) { b.page.Stop.Store(StopPlanned) },
		Shutdown:   func(b *bench) { b.page.Stop.Store(StopShutdown) },
		MissedTick: func(b *bench) { b.ticker.Miss(9, 2) },
		NonFinite:  func(b *bench) { b.plant.failsAt = 9 },
		BusLost:    func(b *bench) { b.unit.Send(&can.Frame{ID: can.ERR | 0x40, Len: 8}) }, // CAN_ERR_BUSOFF
	}
	for reason, cause := range ends {
		for _, declared := range []bool{true, false} {
			b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) {
				cfg.Ticks, cfg.Bus.Action, cfg.Safe = 12, GoEnd, safeValues()
				cfg.Safe.Ends = 1 << reason
				if !declared {
					cfg.Safe.Ends = ^cfg.Safe.Ends
				}
			})
			b.turn(8)
			before := b.received()
			cause(b)
			b.turn(100)
			if got := Reason(b.page.Reason.Load()); got != reason {
				t.Errorf("the run ended: %v; want: %v", got, reason)
			}
			all := b.received()
			safe := slices.DeleteFunc(slices.Clone(all.steps), func(n int) bool { return n != 77 })
			// A broken plant is replaced in its own tick, the others speak until the end.
			want := map[bool]int{true: 6, false: 0}[declared]
			if reason == NonFinite && declared {
				want++
			}
			if len(safe) != want {
				t.Errorf("%v, declared %t: State says %v after the end, want 77 %d times", reason, declared, all.steps, want)
			}
			count := append(before.count, all.count...)
			for i, c := range count {
				if c != i%16 {
					t.Errorf("%v: counter %d is %d, want %d", reason, i, c, i%16)
				}
			}
			if declared && len(all.slow) < 2 {
				t.Errorf("%v: Slow says %v, want it at once and in its cycle of 4", reason, all.slow)
			}
			if slices.ContainsFunc(all.x, math.IsNaN) {
				t.Errorf("%v: x = %v on the bus", reason, all.x)
			}
		}
	}
}

// The frames of the last tick are the plant's, in their cycles: what goes out at once,
// due or not, are the safe values.
func TestSafeValuesFollowTheLastTickAtOnce(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Safe = 10, safeValues(Done) })
	b.turn(100)
	got := b.received()
	if want := append(span(1, 10), 77, 77, 77, 77, 77, 77); !slices.Equal(got.steps, want) {
		t.Errorf("State says steps %v, want %v", got.steps, want)
	}
	if want := []int{1, 5, 9, 77, 77}; !slices.Equal(got.slow, want) { // at 11, at once, and at 13
		t.Errorf("Slow says %v, want %v", got.slow, want)
	}
}

// After the end the frames of the unit and the frames that the bus refuses are counted as before.
func TestCountersContinueAfterTheEnd(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Ticks, cfg.Safe = 10, safeValues(Done) })
	b.turn(11)
	b.command(t, 1)
	b.turn(1)
	if n := b.page.RxFrames.Load(); n != 1 {
		t.Errorf("%d frames received after the end, want 1", n)
	}
	if err := b.unit.Close(); err != nil {
		t.Fatal(err)
	}
	b.turn(100)
	if n := b.page.TxDropped.Load(); n < 4 { // State at the ticks 13 to 16
		t.Errorf("%d frames dropped on a closed bus after the end, want 4 and more", n)
	}
	if b.page.BusDown.Load() == 0 {
		t.Error("no tick has found the bus down")
	}
}

// A host that was stopped for 25 s: no wake-up steps over more than it may.
func TestLongStopIsMadeUpForInBoundedSteps(t *testing.T) {
	b := newBench(t, Overrun{Skip, 10}, func(cfg *Config, _ *integrator) { cfg.Start = []float64{1} })
	b.turn(3)
	b.ticker.Miss(4, 5000)
	before := b.plant.steps
	for wakeUp := 1; ; wakeUp++ {
		b.turn(1)
		if n := b.plant.steps - before; !(n <= maxOverrun+1) {
			t.Fatalf("wake-up %d made %g steps, want at most %d", wakeUp, n, maxOverrun+1)
		}
		before = b.plant.steps
		if b.page.Behind.Load() == 0 {
			break
		}
		if wakeUp > 10 {
			t.Fatalf("still %d points behind the clock after %d wake-ups", b.page.Behind.Load(), wakeUp)
		}
		if b.page.SimNs.Load()+b.page.Behind.Load()*uint64(period) != uint64(b.ticker.Now()) {
			t.Fatalf("simulated time %d ns and %d points behind, clock %d ns", b.page.SimNs.Load(), b.page.Behind.Load(), b.ticker.Now())
		}
	}
	if b.page.SimNs.Load() != uint64(b.ticker.Now()) || Reason(b.page.SafeReason.Load()) != MissedLimit {
		t.Errorf("simulated time %d ns, clock %d ns, safe state: %v", b.page.SimNs.Load(), b.ticker.Now(), Reason(b.page.SafeReason.Load()))
	}
}

// The supervisor is a process; it ends while another takes its place or not.
func TestLossOfTheSupervisorTakesTheDeclaredAction(t *testing.T) {
	for _, c := range []struct {
		action  Action
		after   int // grid points
		attach  bool
		reason  Reason
		safe    Reason
		atLeast int // ticks
	}{
		{GoOn, 0, false, NotEnded, NotEnded, 60},
		{GoSafe, 10, false, NotEnded, SupervisorGone, 60},
		{GoEnd, 10, false, SupervisorGone, NotEnded, 20},
		{GoEnd, 0, false, SupervisorGone, NotEnded, 10},
		{GoEnd, 10, true, NotEnded, NotEnded, 60},
	} {
		b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) {
			cfg.Supervisor = Loss{c.action, int64(c.after) * int64(period)}
		})
		first, second := sleeper(t), sleeper(t)
		b.page.Supervisor.Store(identityOf(first))
		b.turn(9)
		_ = first.Process.Kill()
		_ = first.Wait()
		b.turn(5)
		if c.attach {
			b.page.Supervisor.Store(identityOf(second))
		}
		b.turn(46)
		if r, s := Reason(b.page.Reason.Load()), Reason(b.page.SafeReason.Load()); r != c.reason || s != c.safe {
			t.Errorf("%+v: ended: %v, safe state: %v", c, r, s)
		}
		if n := int(b.page.Ticks.Load()); n < c.atLeast || c.reason != NotEnded && n > c.atLeast {
			t.Errorf("%+v: %d ticks, want %d", c, n, c.atLeast)
		}
		if c.safe != NotEnded && b.page.SafeTick.Load() != uint64(10+c.after+1) {
			t.Errorf("%+v: safe since tick %d", c, b.page.SafeTick.Load())
		}
	}
}

// A process that has the id of the supervisor and started at another time is not the supervisor: it has
// ended.
func TestLaterProcessWithTheIDOfTheSupervisorIsNotTheSupervisor(t *testing.T) {
	for _, differs := range []uint64{1 << 32, 0} {
		b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Supervisor = Loss{GoEnd, 5 * int64(period)} })
		later := sleeper(t)
		b.page.Supervisor.Store(identityOf(later) + differs)
		b.turn(30)
		if ended := Reason(b.page.Reason.Load()) == SupervisorGone; ended != (differs != 0) {
			t.Errorf("start time differs by %d: ended %t, at tick %d", differs>>32, ended, b.page.Ticks.Load())
		}
	}
}

// The first tick need not open the supervisor.
func TestSupervisorIsWatchedBeforeTheFirstTick(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Ticks = 1 })
	who := identityOf(sleeper(t))
	b.page.Supervisor.Store(who)
	b.Loop.ticker = startHook{b.ticker, func() {
		if b.supervisor.who != who {
			t.Errorf("%x is watched, want %x", b.supervisor.who, who)
		}
	}}
	if err := b.Run(); err != nil || b.page.Ticks.Load() != 1 {
		t.Errorf("%d ticks, %v", b.page.Ticks.Load(), err)
	}
}

// startHook is a ticker that calls a function when it starts.
type startHook struct {
	sched.Ticker
	starting func()
}

func (h startHook) Start() error {
	h.starting()
	return h.Ticker.Start()
}

// identityOf returns the Identity of a process.
func identityOf(cmd *exec.Cmd) uint64 {
	var o sched.ProcessOpener
	fd, began, errno := o.Open(cmd.Process.Pid, 0)
	if errno == 0 {
		unix.Close(fd)
	}
	return Identity(cmd.Process.Pid, began)
}

// sleeper starts a process that does nothing.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func TestLedgerHasTickLatencyAndFrames(t *testing.T) {
	b := newBench(t, Overrun{Skip, 9}, func(cfg *Config, _ *integrator) {
		cfg.Budget = time.Hour // a busy host makes no further tick late
	})
	b.ticker.Miss(8, 3) // State is lost at 8, 9 and 10, Slow at 9
	b.turn(20)
	var e LateTick
	if b.page.LateCount() != 1 || !b.page.ledger.read(0, &e) || b.page.ledger.read(1, &e) {
		t.Fatalf("%d entries, want 1", b.page.LateCount())
	}
	b.page.ledger.read(0, &e)
	if e.Tick != 8 || e.Lost != 3 || e.LateNs != int64(3*period) || e.At != int64(11*period) || e.Phase() != WakeUp {
		t.Errorf("entry %+v, phase %v; want tick 8, 3 lost, 15 ms late in the wake-up", e, e.Phase())
	}
	if !e.Unsent.Has(0) || !e.Unsent.Has(1) || !e.Sent.Has(0) || e.Sent.Has(1) {
		t.Errorf("unsent %v, sent late %v; want State and Slow, and State", e.Unsent, e.Sent)
	}
}

// A step that takes longer than the budget, and longer than the period.
func TestLedgerNamesThePhaseThatTookTheTime(t *testing.T) {
	runtime.LockOSThread() // whose switches are counted
	defer runtime.UnlockOSThread()
	b := newBench(t, Overrun{Skip, 9}, func(cfg *Config, p *integrator) {
		cfg.Budget = time.Millisecond
		p.during = func(step int) {
			if step == 6 {
				for range 8 { // the thread sleeps itself, also where a busy host has held it up
					_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &unix.Timespec{Nsec: 1e6}, nil)
				}
			}
		}
	})
	b.turn(6) // virtual time: the wake-ups are punctual
	var e LateTick
	at := b.page.LateCount() - 1
	if at == ^uint64(0) || !b.page.ledger.read(at, &e) || e.Tick != 6 || e.Lost != 0 || e.Phase() != Step || e.Spent[Step] < 8e6 {
		t.Errorf("entry %d: %+v, want tick 6 with 8 ms in stepping", at, e)
	}
	if e.Voluntary < 1 {
		t.Errorf("%d voluntary switches, want that of the sleep", e.Voluntary)
	}
	b.turn(1)
	if b.page.LateCount() > at+1 && b.page.ledger.read(at+1, &e) && e.Spent[Before] != 0 {
		t.Errorf("entry %+v: under virtual time the tick before has ended in time", e)
	}
}

func TestLedgerOverwritesTheOldestEntriesOnly(t *testing.T) {
	b := newBench(t, Overrun{Skip, 9})
	for k := range int64(3 * ledgerSize) {
		b.ticker.Miss(2*k+2, 1)
	}
	for range 3 * ledgerSize {
		b.turn(1)
		b.received()
	}
	n := b.page.LateCount()
	var e LateTick
	if n < 2*ledgerSize || b.page.ledger.read(n-ledgerSize, &e) || !b.page.ledger.read(n-ledgerSize+1, &e) || !b.page.ledger.read(n-1, &e) {
		t.Fatalf("of %d entries want the last %d to be there, no more", n, ledgerSize-1)
	}
	last := e.Tick
	if b.page.ledger.read(n-2, &e); !(e.Tick < last) {
		t.Errorf("entry %d is of tick %d, the next of %d", n-2, e.Tick, last)
	}
}
