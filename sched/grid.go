package sched

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Grid is a grid of instants: point k is due at Start + k·Period.
type Grid struct {
	Start  int64 // ns on CLOCK_MONOTONIC: point 0, at which nothing is done
	Period int64 // ns; > 0
}

// Due returns the instant of grid point k, ns on CLOCK_MONOTONIC.
//
//go:nosplit
func (g Grid) Due(k int64) int64 { return g.Start + k*g.Period }

// Ticker walks along a grid. Timer does so in real time, Virtual at once.
type Ticker interface {
	// Start places the grid: point 1 is due one period from now.
	Start() error
	// Wait sleeps until the next grid point has passed and returns the number
	// of points passed since the last Wait: >= 1, more if some were missed; 0 if
	// the timer failed, and Err says how. It allocates nothing and cannot be
	// preempted by the Go scheduler.
	Wait() int64
	// Err says why Wait returned 0; nil as long as it did not.
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
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_REALTIME, uintptr(unsafe.Pointer(&ts)), 0) // cannot fail for this clock
	return int64(ts.Sec)*1e9 + int64(ts.Nsec)
}

// Now returns the instant, ns on CLOCK_MONOTONIC. It asks the kernel by a raw
// system call: the wrapper of the library would hand this thread's processor of
// the Go runtime over.
//
//go:nosplit
func Now() int64 {
	var ts unix.Timespec
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&ts)), 0) // cannot fail for this clock
	return int64(ts.Sec)*1e9 + int64(ts.Nsec)
}
