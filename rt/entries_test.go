package rt

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/sched"
)

func TestEntryOfAFrameIsReadBackWithAllItsMarks(t *testing.T) {
	p := new(StatusBlock)
	p.OpenRing()
	n := 0
	for _, fate := range []Fate{Received, Sent, Dropped, Refused, Unsent} {
		for marks := range 8 {
			for _, message := range []int{-1, 0, MaxRx - 1} {
				n++
				want := Entry{
					Kind: KindFrame, Tick: int64(n), Fate: fate, Bus: n % MaxBuses, Message: message,
					Safe: marks&1 > 0, Withheld: marks&2 > 0, Copy: marks&4 > 0, Stamp: can.Stamp{Soft: 11, Hard: 12},
				}
				f := can.Frame{ID: uint32(n), Len: uint8(n % 65), Flags: can.FlagFDF}
				for i := range f.Len {
					f.Data[i] = byte(n) + i
				}
				before := sched.Realtime()
				p.ring.enterFrame(&want, &f)
				var got Entry
				if !p.NextEntry(&got) || p.NextEntry(&Entry{}) {
					t.Fatal("want one entry")
				}
				if fate != Received && (got.Stamp.Soft < before || got.Stamp.Soft > sched.Realtime() || got.Stamp.Hard != 0) {
					t.Errorf("%+v: stamped at %+v", want, got.Stamp)
				}
				if got.Frame != f || got.Kind != want.Kind || got.Tick != want.Tick || got.Fate != fate || got.Bus != want.Bus || got.Message != message ||
					got.Safe != want.Safe || got.Withheld != want.Withheld || got.Copy != want.Copy || got.Stamp != want.Stamp {
					t.Errorf("entered %+v, %v\nread    %+v", want, f, got)
				}
			}
		}
	}
}

// The time that a tick has spent lies within the call of Tick; the time between two ticks is in none.
func TestPhasesOfATickAddUpToItsDuration(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, p *integrator) {
		cfg.Budget = 1 // every tick is late
		p.during = func(int) { time.Sleep(time.Millisecond) }
	})
	b.page.OpenRing()
	var next uint64
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		n := b.ticker.Wait()
		begin := sched.Now()
		b.Tick(n)
		most := sched.Now() - begin
		var late LateTick
		b.page.ReadLedger(&next, func(e *LateTick) { late = *e })
		if sum := late.Spent[Receive] + late.Spent[Step] + late.Spent[Send]; sum > most || late.Spent[Step] < int64(time.Millisecond) {
			t.Errorf("a tick of %d ns has spent %d: %d", most, late.Spent, sum)
		}
		timings := 0
		for e := (Entry{}); b.page.NextEntry(&e); {
			if e.Kind != KindTiming {
				continue
			}
			timings++
			if e.Spent != late.Spent || e.Tick != late.Tick || e.At != late.At || e.Lost != late.Lost {
				t.Errorf("the timing %+v is not that of the ledger, %+v", e, late)
			}
		}
		if timings != 1 {
			t.Errorf("%d timings, want one", timings)
		}
	}
}

// onThreadThatEnds runs f on a thread that ends with it. The main thread, which never ends, stays locked
// meanwhile, so that another thread runs f.
func onThreadThatEnds(f func()) {
	runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	defer runtime.UnlockOSThread()
	done := make(chan bool)
	go func() {
		defer close(done)
		onThreadThatEnds(f)
	}()
	<-done
}

// The futex holds the thread's id and FUTEX_WAITERS, linux/futex.h: without it the kernel wakes nobody.
func TestEndOfAThreadWakesItsWaiter(t *testing.T) {
	f, p, err := CreateStatusBlock() // its memory outlives the thread
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	futex, waits := make(chan uint32), make(chan bool)
	go onThreadThatEnds(func() {
		if err := p.RegisterThreadExit(); err != nil {
			t.Error(err)
		}
		if life := p.exitFutex(); life != 0 && life != uint32(unix.Gettid())|1<<31 { // 0: this kernel has no such list
			t.Errorf("the futex of thread %d is %#x", unix.Gettid(), life)
		}
		futex <- p.exitFutex()
		<-waits
		time.Sleep(50 * time.Millisecond) // until the other waits
	})
	life := <-futex
	close(waits)
	if died, known := p.WaitThreadExit(time.Hour); known != (life != 0) || died != known {
		t.Errorf("died %t, known %t; the futex was %#x", died, known, life)
	}
}

func TestFramesOfATickAreEnteredAsReceivedOrSent(t *testing.T) {
	b := newBench(t, Overrun{})
	b.page.OpenRing()
	for range 3 {
		b.command(t, 1)
		b.turn(1)
	}
	n := map[Fate]int{}
	for e := (Entry{}); b.page.NextEntry(&e); {
		if e.Kind != KindFrame {
			continue
		}
		if n[e.Fate]++; (e.Frame.ID == 0x110) != (e.Fate == Received) || e.Fate > Sent {
			t.Errorf("tick %d: frame 0x%X has fate %d", e.Tick, e.Frame.ID, e.Fate)
		}
	}
	if n[Received] != 3 || n[Sent] < 3 {
		t.Errorf("%d frames received and %d sent; want 3, and 3 or more", n[Received], n[Sent])
	}
}

func TestEachStopRequestHasItsReason(t *testing.T) {
	for request, want := range map[uint64][2]Reason{ // end, safe state
		0: {}, StopPlanned: {Stopped}, StopShutdown: {Shutdown}, StopSafe: {NotEnded, AddressLost}, 99: {Stopped},
	} {
		b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Safe = safeValues() })
		b.turn(2)
		b.page.Stop.Store(request)
		b.turn(3)
		p := b.page
		if got := [2]Reason{Reason(p.Reason.Load()), Reason(p.SafeReason.Load())}; got != want {
			t.Errorf("request %d: %v, want %v", request, got, want)
		}
		if last := map[bool]uint64{true: 3, false: 5}[want[0] != NotEnded]; p.Ticks.Load() != last {
			t.Errorf("request %d at tick 3: the run is at tick %d, want %d", request, p.Ticks.Load(), last)
		}
	}
}

// What the buses have counted before the first tick is left out, except bus-off, which the report shows.
func TestCountsOfTheBusesAreAddedUpFromTheFirstTick(t *testing.T) {
	l, _ := newBuses(t, 2, nil)
	count := func(bus int, n uint64) {
		s := &l.buses[bus].Stats
		s.RxOverflow += n
		s.BadSize += 2 * n
		s.TxDropped += 3 * n
		s.Errors += 4 * n
		s.Offs += 5 * n
		l.maps[bus].Saturated += 6 * n
	}
	count(0, 1000)
	count(1, 500)
	l.drain()
	for i, bus := range []int{0, 1, 1} {
		count(bus, uint64(i+1)) // 1, 3, 6 in all
		l.Tick(1)
		p, n := l.status, uint64((i+1)*(i+2)/2)
		got := [6]uint64{p.RxOverflow.Load(), p.RxBadSize.Load(), p.TxDropped.Load(), p.BusErrors.Load(), p.BusOffs.Load(), p.Saturated.Load()}
		if want := [6]uint64{n, 2 * n, 3 * n, 4 * n, 7500 + 5*n, 9000 + 6*n}; got != want {
			t.Errorf("tick %d: overflow, bad size, dropped, errors, offs and saturated %d, want %d", i+1, got, want)
		}
	}
}

// A loop may have many supervisors in its life; it watches one.
func TestLoopHoldsOneDescriptorOfASupervisor(t *testing.T) {
	held := func() (n int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range list {
			if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(name, "pidfd") {
				n++
			}
		}
		return n
	}
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Supervisor = Loss{GoEnd, 0} })
	first, second := sleeper(t), sleeper(t)
	before := held()
	var want int
	for i, c := range []*exec.Cmd{first, second, first, nil, second, nil} {
		id := uint64(0)
		if c != nil {
			id = identityOf(c)
		}
		b.page.Supervisor.Store(id)
		b.turn(1)
		if i == 0 {
			want = held() - before // 0 on a kernel without pidfd
		}
		if n := held() - before; c != nil && n != want || c == nil && n != 0 {
			t.Errorf("supervisor %d: %d descriptors, want %d, and 0 without one", i+1, n, want)
		}
	}
	if want > 1 || Reason(b.page.Reason.Load()) != NotEnded {
		t.Errorf("%d descriptors; %v", want, Reason(b.page.Reason.Load()))
	}
}

func TestMessageSetHoldsEveryMessage(t *testing.T) {
	var set MessageSet
	for i := range MaxTx {
		set.add(i)
		for j := range MaxTx {
			if set.Has(j) != (j <= i) {
				t.Fatalf("after messages 0 to %d the set holds %d: %t", i, j, !(j <= i))
			}
		}
	}
}

func TestIdentityIsSplitIntoItsParts(t *testing.T) {
	for _, c := range []struct {
		pid   int
		began uint32
	}{{1, 0}, {4194304, 1}, {7, 1<<32 - 1}, {1<<31 - 1, 12345}} {
		if pid, began := SplitIdentity(Identity(c.pid, c.began)); pid != c.pid || began != c.began {
			t.Errorf("process %d of %d becomes %d of %d", c.pid, c.began, pid, began)
		}
	}
}

// A fault withholds a frame of the bench and one of another message: both are recorded, neither is decoded.
func TestWithheldFrameIsRecordedWithItsMessage(t *testing.T) {
	b := newBench(t, Overrun{})
	b.page.OpenRing()
	for id, message := range map[uint32]int{0x110: 0, 0x7ff: -1} {
		b.Loop.frames[0] = can.Frame{ID: id, Len: 4, Data: [64]byte{100}}
		b.decodeFrame(0, 0, 1, false, true)
		var e Entry
		if !b.page.NextEntry(&e) || e.Kind != KindFrame || e.Fate != Received || !e.Withheld || e.Message != message || e.Frame.ID != id {
			t.Errorf("frame %X: %+v, want message %d, withheld", id, e, message)
		}
	}
	if b.U[0] != 0 || b.page.Rx[0].Counts().Frames != 0 || b.page.RxUnknown.Load() != 0 {
		t.Errorf("a withheld frame is decoded: u %g, %d frames, %d unknown", b.U[0], b.page.Rx[0].Counts().Frames, b.page.RxUnknown.Load())
	}
}

// The clock of the stamps was set back between two frames: the time between them counts as 0.
func TestTimeBetweenFramesIsNotNegative(t *testing.T) {
	var w RxWords
	var a arrival
	for _, at := range []int64{100, 160, 90, 130} {
		w.recordArrival(&a, at, true)
	}
	if w.Cycles.Load() != 3 || w.CycleMin.Load() != 0 || w.CycleMax.Load() != 60 || w.CycleSum.Load() != 100 {
		t.Errorf("%d times of %d to %d ns, %d together; want 3 of 0 to 60, 100", w.Cycles.Load(), w.CycleMin.Load(), w.CycleMax.Load(), w.CycleSum.Load())
	}
}

func TestWarmUpLeavesNoOutputs(t *testing.T) {
	b := newBench(t, Overrun{}, func(cfg *Config, _ *integrator) { cfg.Start, cfg.Warmup = []float64{4}, 50 })
	b.warmUp()
	for i, y := range b.Y {
		if y != 0 {
			t.Errorf("output %d is %g before the first step", i, y)
		}
	}
	if b.plant.resets != 1 || b.plant.steps != 0 || b.U[0] != 4 {
		t.Errorf("%d resets, %g steps, u %g; want 1, 0, 4", b.plant.resets, b.plant.steps, b.U[0])
	}
}
