package rt

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// usage is what the process has used so far, by its own and the kernel's count.
type usage struct {
	allocs, gcCycles         uint64
	minorFaults, majorFaults int64
	thread                   sched.Usage // of the loop's own
}

// maxDrain bounds how often the drain reads MaxRecv stale frames from a bus:
// 16,384 frames are more than a receive buffer of the usual size holds.
const maxDrain = 64

// stackSize is the stack that the loop's goroutine has before the first tick,
// bytes: far more than a step needs, so that it never grows in the run.
const stackSize = 64 << 10

// Run prepares, ticks until the run is over and stores what the process has used
// between the first and the last tick. Page.Reason says why it is over; the
// error is that of a ticker that failed. The garbage collector is off meanwhile.
func (l *Loop) Run() error {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // waits for a collection that is under way
	l.warmUp()
	l.drain()
	l.page.Process.Store(uint64(os.Getpid()))
	l.page.Thread.Store(uint64(unix.Gettid()))
	for i, b := range l.buses {
		l.page.BusFD[i].Store(uint64(b.Fd()))
	}
	l.page.State.Store(uint64(Running))
	l.start = l.usage()
	err := l.ticker.Start()
	l.grid = l.ticker.Grid()
	l.page.StartNs.Store(uint64(l.grid.Start))
	if err == nil && !l.loop() {
		err = l.ticker.Err()
	}
	l.finish()
	if err != nil {
		return fmt.Errorf("rt: tick %d: %w", l.k+1, err)
	}
	return nil
}

// loop ticks until the run, and what follows it, is over; false: the ticker
// failed.
//
//go:nosplit
func (l *Loop) loop() bool {
	for !l.Over() {
		n := l.ticker.Wait()
		if n == 0 {
			return false
		}
		l.Tick(n)
	}
	return true
}

// Last are the inputs of the last step, with what faults, stimuli and commands made of
// them.
func (l *Loop) Last() []float64 { return l.faults.Last() }

// Over says that the run has ended, and what is sent after its end is out.
//
//go:nosplit
func (l *Loop) Over() bool { return l.reason != NotEnded && l.left <= 0 }

// warmUp touches the code and the data of the plant and the stack of the loop.
func (l *Loop) warmUp() {
	growStack()
	p, ok := l.plant.(interface{ Reset() })
	if !ok {
		return
	}
	for range l.cfg.Warmup {
		l.plant.Step(l.Y, l.U)
	}
	p.Reset()
	clear(l.Y)
}

// growStack makes the runtime give this goroutine a stack of stackSize.
//
//go:noinline
func growStack() byte {
	var a [stackSize]byte
	for i := range a {
		a[i] = byte(i)
	}
	return a[len(a)-1]
}

// drain throws away what has come in before the first tick and takes the counts
// of the buses as zero.
func (l *Loop) drain() {
	for b, bus := range l.buses {
		for range maxDrain {
			n := bus.Recv(l.frames[:])
			l.page.RxStale.Add(uint64(n))
			if n == 0 {
				break
			}
		}
		bus.Settle()
		l.base[b] = bus.Stats
	}
}

// usage reads the counters. The first reading of the runtime's is not kept: it
// may count what reading them needs.
func (l *Loop) usage() usage {
	var u usage
	runtime.ReadMemStats(&l.mem)
	runtime.ReadMemStats(&l.mem)
	u.allocs, u.gcCycles = l.mem.Mallocs, uint64(l.mem.NumGC)
	u.minorFaults, u.majorFaults = sched.Faults()
	u.thread.Read()
	l.times.before = u.thread
	return u
}

// finish stores the difference to the first tick, and the frames that the kernel
// dropped after the last one it delivered, and ends the run.
func (l *Loop) finish() {
	var thread sched.Usage
	thread.Read()
	minor, major := sched.Faults() // first: reading the runtime's counters may touch new pages
	runtime.ReadMemStats(&l.mem)
	p := l.page
	p.Allocs.Store(l.mem.Mallocs - l.start.allocs)
	p.GCCycles.Store(uint64(l.mem.NumGC) - l.start.gcCycles)
	p.MinorFaults.Store(uint64(minor - l.start.minorFaults))
	p.MajorFaults.Store(uint64(major - l.start.majorFaults))
	p.Voluntary.Store(uint64(thread.Voluntary - l.start.thread.Voluntary))
	p.Involuntary.Store(uint64(thread.Involuntary - l.start.thread.Involuntary))
	overflow := uint64(0)
	for b, bus := range l.buses {
		bus.Settle()
		overflow += bus.Stats.RxOverflow - l.base[b].RxOverflow
	}
	p.RxOverflow.Store(overflow)
	l.end(TimerFailed) // unless there is a reason already
	p.State.Store(uint64(Ended))
}
