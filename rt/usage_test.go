package rt

import (
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/sched"
)

// Resources that one call of use takes at least.
const (
	usedPages  = 100
	usedSleeps = 20
	usedAllocs = 1000
)

// heap keeps the allocations of use on the heap.
var heap []*[64]byte

// use sleeps, loses its CPU to another thread, writes to fresh pages, allocates and collects garbage.
func use(t *testing.T) {
	writeFresh(t, usedPages)
	for range usedSleeps {
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &unix.Timespec{Nsec: 1e5}, nil)
	}
	heap = nil
	for range usedAllocs {
		heap = append(heap, new([64]byte))
	}
	runtime.GC()
	loseCPU(t)
}

// loseCPU runs beside another thread on one CPU until the kernel has preempted the calling thread.
func loseCPU(t *testing.T) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	one.Set(sched.Allowed()[0])
	var before, now sched.Usage
	before.Read()
	var stop atomic.Bool
	ended := make(chan bool)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_ = unix.SchedSetaffinity(0, &one)
		for !stop.Load() {
		}
		_ = unix.SchedSetaffinity(0, &all)
		close(ended)
	}()
	_ = unix.SchedSetaffinity(0, &one)
	for begin := time.Now(); now.Involuntary <= before.Involuntary; now.Read() {
		if time.Since(begin) > time.Minute {
			t.Error("two threads on one CPU, and none was preempted")
			break
		}
	}
	_ = unix.SchedSetaffinity(0, &all)
	stop.Store(true)
	<-ended
}

// What the process uses before the run and after it does not count.
func TestUsageOfARunIsThatOfItsTicks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b := newBench(t, Overrun{}, func(cfg *Config, p *integrator) {
		cfg.Ticks, cfg.Budget = 8, 1 // every tick is late
		p.during = func(step int) {
			if step == 4 {
				use(t)
			}
		}
	})
	use(t)
	read := func() [6]uint64 { // in the order of got below
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		var u sched.Usage
		u.Read()
		minor, major := sched.Faults()
		return [6]uint64{uint64(minor), uint64(major), uint64(u.Voluntary), uint64(u.Involuntary), m.Mallocs, uint64(m.NumGC)}
	}
	before := read()
	if err := b.Run(); err != nil {
		t.Fatal(err)
	}
	after, p := read(), b.page
	if n := p.RxOverflow.Load(); n != 0 {
		t.Errorf("%d frames are lost without a frame", n)
	}
	use(t)
	got := [6]uint64{p.MinorFaults.Load(), p.MajorFaults.Load(), p.Voluntary.Load(), p.Involuntary.Load(), p.Allocs.Load(), p.GCCycles.Load()}
	least := [6]uint64{usedPages, 0, usedSleeps / 2, 1, usedAllocs, 1} // a signal may cut a sleep short
	for i, what := range [6]string{"minor page faults", "major page faults", "voluntary switches", "involuntary switches", "allocations", "collections"} {
		if most := after[i] - before[i]; got[i] < least[i] || got[i] > most {
			t.Errorf("%d %s, want %d to %d", got[i], what, least[i], most)
		}
	}
	var next uint64
	b.page.ReadLedger(&next, func(e *LateTick) {
		if e.Tick == 4 != (e.Voluntary >= usedSleeps/2) || e.Tick == 4 && (e.Minor < usedPages || e.Involuntary < 1) {
			t.Errorf("tick %d: %d minor page faults, %d voluntary and %d involuntary switches; tick 4 has slept", e.Tick, e.Minor, e.Voluntary, e.Involuntary)
		}
		if e.Voluntary < 0 || uint64(e.Voluntary) > p.Voluntary.Load() || e.Involuntary < 0 || uint64(e.Involuntary) > p.Involuntary.Load() ||
			e.Minor < 0 || uint64(e.Minor) > p.MinorFaults.Load() || e.Major < 0 || uint64(e.Major) > p.MajorFaults.Load() {
			t.Errorf("tick %d has used more than the whole run: %+v", e.Tick, e)
		}
	})
}

func TestRunCollectsNoGarbageAndRestoresTheSettings(t *testing.T) {
	percent, limit := debug.SetGCPercent(77), debug.SetMemoryLimit(1<<40)
	var inRun [2]int64
	b := newBench(t, Overrun{}, func(cfg *Config, p *integrator) {
		cfg.Ticks = 2
		p.during = func(int) { inRun = [2]int64{int64(debug.SetGCPercent(-1)), debug.SetMemoryLimit(-1)} }
	})
	err := b.Run()
	after := [2]int64{int64(debug.SetGCPercent(percent)), debug.SetMemoryLimit(limit)}
	if err != nil {
		t.Fatal(err)
	}
	if want := [2]int64{-1, 1<<63 - 1}; inRun != want {
		t.Errorf("in the run, GC percent and memory limit are %d, want %d", inRun, want)
	}
	if want := [2]int64{77, 1 << 40}; after != want {
		t.Errorf("after the run, GC percent and memory limit are %d, want %d", after, want)
	}
}

// deep uses 60 kB of stack.
//
//go:noinline
func deep(k int) byte {
	var a [60 << 10]byte
	for i := range a {
		a[i] = byte(i + k)
	}
	return a[k]
}

// A stack that grows is copied: its variables get other addresses.
func TestStepFindsItsStackReady(t *testing.T) {
	moved, done := 0, make(chan error)
	b := newBench(t, Overrun{}, func(cfg *Config, p *integrator) {
		cfg.Ticks = 3
		p.during = func(step int) {
			var local byte
			before := uintptr(unsafe.Pointer(&local))
			deep(step)
			if uintptr(unsafe.Pointer(&local)) != before {
				moved++
			}
		}
	})
	go func() { done <- b.Run() }() // a new goroutine has a small stack
	if err := <-done; err != nil || moved != 0 {
		t.Errorf("the stack has grown in %d of 3 steps, %v", moved, err)
	}
}

// The response counts from the kernel's stamp until the frames of the tick are out.
func TestResponseIsMeasuredFromTheStampOfEachDecodedFrame(t *testing.T) {
	const age = int64(30 * time.Millisecond)
	b := newBench(t, Overrun{})
	receive := func(id uint32, length int, stamp int64) {
		b.Loop.frames[0], b.Loop.stamps[0] = can.Frame{ID: id, Len: uint8(length)}, can.Stamp{Soft: stamp}
		b.decodeFrame(0, 0, 1, false, false)
	}
	before := sched.Realtime()
	receive(0x110, 4, before-age)
	receive(0x110, 4, before-3*age)
	receive(0x110, 4, 0)            // without a stamp
	receive(0x7ff, 4, before-9*age) // not of the bench
	receive(0x110, 3, before-9*age) // short
	b.send(1, false)                // a missed point: no frame is out
	if n := b.page.Response.N(); n != 0 {
		t.Errorf("%d responses before a frame is out", n)
	}
	b.send(1, true)
	late := sched.Realtime() - before
	h := &b.page.Response
	if h.N() != 2 || h.Quantile(0.4) < age || h.Quantile(0.4) > (age+late)*65/64 || h.Max() < 3*age || h.Max() > 3*age+late {
		t.Errorf("%d responses, the shorter %d ns, the longer %d ns; want 2 of %d and %d, up to %d more", h.N(), h.Quantile(0.4), h.Max(), age, 3*age, late)
	}
	if b.send(2, true); h.N() != 2 {
		t.Errorf("%d responses to 2 frames", h.N())
	}
	for range MaxRecv + 5 { // of several buses
		receive(0x110, 4, before)
	}
	if b.send(3, true); h.N() != 2+MaxRecv {
		t.Errorf("%d responses, want 2 and the first %d", h.N(), MaxRecv)
	}
}

func TestEntriesOfFramesNameTheirBus(t *testing.T) {
	l, units := newBuses(t, MaxBuses, nil)
	l.status.OpenRing()
	for bus, unit := range units {
		unit.Send(&can.Frame{ID: 0x110, Len: 4, Data: [64]byte{0, 0, byte(bus)}})
	}
	l.Tick(1)
	received, sent := make([]int, MaxBuses), make([]int, MaxBuses)
	for e := (Entry{}); l.status.NextEntry(&e); {
		switch {
		case e.Kind != KindFrame:
		case e.Fate == Received && int(e.Frame.Data[2]) == e.Bus:
			received[e.Bus]++
		case e.Fate == Sent:
			sent[e.Bus]++
		}
	}
	if want := slices.Repeat([]int{1}, MaxBuses); !slices.Equal(received, want) || sent[0] == 0 || !slices.Equal(sent, slices.Repeat(sent[:1], MaxBuses)) {
		t.Errorf("received by bus %v, sent %v; want 1 each, and as many of each bus", received, sent)
	}
}

// Each tick that finds a bus down counts once, whatever the number of failed calls.
func TestTickWithABusDownCountsOnce(t *testing.T) {
	l, _ := newBuses(t, 2, nil)
	for i, c := range []struct{ calls, want uint64 }{{0, 0}, {3, 1}, {0, 1}, {0, 1}, {1, 2}, {0, 2}} {
		l.buses[i%2].Stats.Down += c.calls
		if l.Tick(1); l.status.BusDown.Load() != c.want {
			t.Errorf("tick %d: %d ticks with a bus down, want %d", i+1, l.status.BusDown.Load(), c.want)
		}
	}
}

// The clocks may part by 1/4096 of the time passed: 1 ms in 4.096 s. A difference that grows by 10 ms
// more means that a clock was set.
func TestDelayOfAStampIsRemovedUpToTheDriftOfTheClocks(t *testing.T) {
	const start, passed, drift = int64(1.7e18), int64(4.096e9), int64(1e6)
	for late, want := range map[int64]int64{-5e6: -5e6, 0: 0, 1e6: 1e6, 1e6 + 1: drift, 5e6: drift, 11e6 - 1: drift, 11e6: 11e6, 50e6: 50e6} {
		var c wireClock
		c.busTime(&can.Stamp{Soft: start, Hard: 7})
		for range 2 { // at the second frame no more time has passed
			got := c.busTime(&can.Stamp{Soft: start + passed, Hard: passed + 7 - late})
			if got != start+passed-late+want {
				t.Errorf("a stamp %d ns late: %d ns are taken for the clock, want %d", late, got-(start+passed-late), want)
			}
		}
	}
}

// The numbers are those of the type Overrun and of the guide.
func TestWakeUpMakesUpFor1000MissedPoints(t *testing.T) {
	for missed, behind := range map[int64]uint64{999: 0, 1000: 0, 1001: 1, 5000: 4000} {
		b := newBench(t, Overrun{Skip, 1000})
		b.turn(3)
		b.ticker.Miss(4, missed)
		b.turn(1)
		if p := b.page; p.Behind.Load() != behind || p.Late.N() != 3+uint64(min(missed, 1000))+1 || (p.SafeReason.Load() != 0) != (missed > 1000) {
			t.Errorf("%d points missed: %d behind, %d latenesses, safe state: %v; want %d behind", missed, p.Behind.Load(), p.Late.N(),
				Reason(p.SafeReason.Load()), behind)
		}
	}
}
