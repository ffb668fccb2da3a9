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

// usage holds the resources used by the process so far.
type usage struct {
	allocs, gcCycles         uint64
	minorFaults, majorFaults int64
	thread                   sched.Usage // of the loop's own thread
}

// maxDrain bounds how often drain reads MaxRecv stale frames from a bus: 16,384 frames are more
// than a receive buffer of the usual size holds.
const maxDrain = 64

// stackSize is the stack of the loop's goroutine before the first tick, bytes. A step needs far
// less, so the stack never grows in the run.
const stackSize = 64 << 10

// Run prepares, ticks until the run is over and stores what the process used between the first and
// the last tick. StatusBlock.Reason says why the run ended; the error is that of a failed ticker.
// The garbage collector is off during the run.
func (l *Loop) Run() error {
	if err := l.faults.CheckStates(); err != nil {
		return err
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // waits for a running collection
	l.warmUp()
	l.drain()
	l.status.Process.Store(uint64(os.Getpid()))
	l.status.Thread.Store(uint64(unix.Gettid()))
	for i, b := range l.buses {
		l.status.BusFD[i].Store(uint64(b.Fd()))
	}
	l.supervisor.takeOver(l.status.Supervisor.Load()) // the first tick need not open it
	l.status.State.Store(uint64(Running))
	l.start = l.usage()
	err := l.ticker.Start()
	l.grid = l.ticker.Grid()
	l.status.StartNs.Store(uint64(l.grid.Start))
	if err == nil && !l.loop() {
		err = l.ticker.Err()
	}
	l.finish()
	if err != nil {
		return fmt.Errorf("rt: tick %d: %w", l.k+1, err)
	}
	return nil
}

// loop ticks until the run and its shutdown are over; false: the ticker failed.
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

// LastInputs returns the inputs of the last step, with all faults, stimuli and commands applied.
func (l *Loop) LastInputs() []float64 { return l.faults.LastInputs() }

// Reached returns the last grid point stepped to.
func (l *Loop) Reached() int64 { return l.k }

// Over reports whether the run has ended and the safe values that follow its end are out.
//
//go:nosplit
func (l *Loop) Over() bool { return l.reason != NotEnded && l.shutdownTicks <= 0 }

// warmUp touches the plant's code and data and the stack of the loop, so the first ticks take no
// page faults.
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

// drain discards the frames received before the first tick and stores the buses' counts as the
// baseline.
func (l *Loop) drain() {
	for b, bus := range l.buses {
		for range maxDrain {
			n := bus.Recv(l.frames[:])
			l.status.RxStale.Add(uint64(n))
			if n == 0 {
				break
			}
		}

		bus.CountDrops()
		l.baseline[b] = bus.Stats
	}
}

// usage reads the counters. The runtime's are read twice: the first reading may count its own
// allocations.
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

// finish ends the run and stores what the process used since the first tick, and the frames that
// the kernel dropped after the last one it delivered.
func (l *Loop) finish() {
	var thread sched.Usage
	thread.Read()
	minor, major := sched.Faults() // first: reading the runtime's counters may touch new pages
	runtime.ReadMemStats(&l.mem)
	p := l.status
	p.Allocs.Store(l.mem.Mallocs - l.start.allocs)
	p.GCCycles.Store(uint64(l.mem.NumGC) - l.start.gcCycles)
	p.MinorFaults.Store(uint64(minor - l.start.minorFaults))
	p.MajorFaults.Store(uint64(major - l.start.majorFaults))
	p.Voluntary.Store(uint64(thread.Voluntary - l.start.thread.Voluntary))
	p.Involuntary.Store(uint64(thread.Involuntary - l.start.thread.Involuntary))
	overflow := uint64(0)
	for b, bus := range l.buses {
		bus.CountDrops()
		overflow += bus.Stats.RxOverflow - l.baseline[b].RxOverflow
	}

	p.RxOverflow.Store(overflow)
	l.end(TimerFailed) // kept only if there is no reason yet
	p.State.Store(uint64(Ended))
}
