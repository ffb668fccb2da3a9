package sched

import "golang.org/x/sys/unix"

// Grid is a grid of instants: point k is due at Start + k·Period.
type Grid struct {
	Start  int64 // ns on CLOCK_MONOTONIC: point 0, at which nothing is done
	Period int64 // ns; > 0
}

// Due returns the instant of grid point k, ns on CLOCK_MONOTONIC.
func (g Grid) Due(k int64) int64 { return g.Start + k*g.Period }

// Ticker walks along a grid. Timerfd does so in real time, Virtual at once.
type Ticker interface {
	// Start places the grid: point 1 is due one period from now.
	Start() error
	// Wait sleeps until the next grid point has passed and returns the number
	// of points passed since the last Wait; >= 1, more if some were missed.
	Wait() (int64, error)
	// Now returns the instant, ns on the clock of Grid.
	Now() int64
	// Grid returns the grid that Start has placed.
	Grid() Grid
}

// Now returns the instant, ns on CLOCK_MONOTONIC.
func Now() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return ts.Nano()
}
