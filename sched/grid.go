package sched

import (
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Grid is a grid of instants: point k is due at Start + k·Period.
type Grid struct {
	Start  int64 // instant of point 0, at which no tick is due, ns on CLOCK_MONOTONIC
	Period int64 // ns; > 0
}

// Due returns the instant of grid point k, ns on CLOCK_MONOTONIC.
//
//go:nosplit
func (g Grid) Due(k int64) int64 { return g.Start + k*g.Period }

// Ticker follows a grid. Timer does so in real time, Virtual at once.
type Ticker interface {
	// Start places the grid: point 1 is due one period from now.
	Start() error
	// Wait sleeps until the next grid point has passed and returns the number
	// of points passed since the last Wait: >= 1, more if some were missed; 0 if
	// the timer failed: see Err. It allocates nothing and cannot be
	// preempted by the Go scheduler.
	Wait() int64
	// Err returns the error with which Wait returned 0, nil before.
	Err() error
	// Now returns the instant, ns on the clock of Grid.
	Now() int64
	// Grid returns the grid that Start has placed.
	Grid() Grid
}

// Realtime returns the instant on CLOCK_REALTIME, ns since 1970, as Now does.
//
//go:nosplit
func Realtime() int64 {
	var ts unix.Timespec
	// It cannot fail for this clock.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&ts)), 0)
	return int64(ts.Sec)*1e9 + int64(ts.Nsec)
}

// Now returns the instant, ns on CLOCK_MONOTONIC. It makes a raw system call: the
// wrapper of the library would give up the thread's processor of the Go runtime.
//
//go:nosplit
func Now() int64 {
	var ts unix.Timespec
	// It cannot fail for this clock.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0)
	return int64(ts.Sec)*1e9 + int64(ts.Nsec)
}

// Virtual is the Ticker of a simulation without a clock: Wait returns at once,
// and the instant is that of the last grid point passed. Point 0 is at 0 ns.
type Virtual struct {
	grid   Grid
	k      int64  // last grid point passed
	misses []miss // late wake-ups, by k
	next   int    // index in misses of the next one
}

// miss makes the wake-up of grid point k n points late.
type miss struct{ k, n int64 }

// NewVirtual returns a ticker of the given period.
func NewVirtual(period time.Duration) *Virtual {
	return &Virtual{grid: Grid{Period: int64(period)}}
}

// Miss makes the wake-up of grid point k come n points late: the Wait that
// would return 1 at k returns 1+n at k+n.
func (v *Virtual) Miss(k, n int64) {
	v.misses = append(v.misses, miss{k, n})
	slices.SortStableFunc(v.misses[v.next:], func(a, b miss) int { return int(a.k - b.k) })
}

// Start sets the ticker back to grid point 0; a miss that has taken effect is not
// repeated.
func (v *Virtual) Start() error {
	v.k = 0
	return nil
}

// Wait passes the next grid point and the points that Miss has added to it, and
// returns their number.
//
//go:nosplit
func (v *Virtual) Wait() int64 {
	n := int64(1)
	for v.next < len(v.misses) && v.misses[v.next].k <= v.k+n {
		n += v.misses[v.next].n
		v.next++
	}

	v.k += n
	return n
}

// Err returns nil: a virtual timer does not fail.
func (v *Virtual) Err() error { return nil }

// Now returns the instant of the last grid point passed, ns.
//
//go:nosplit
func (v *Virtual) Now() int64 { return v.grid.Due(v.k) }

// Grid returns the grid of the ticker.
//
//go:nosplit
func (v *Virtual) Grid() Grid { return v.grid }
