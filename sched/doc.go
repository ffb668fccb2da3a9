// Package sched owns time: the grid, the tickers that walk along it, the
// set-up of the thread that ticks and of the host around it (its CPU, its policy,
// memory, sleep states, timer threads), and the histogram of how late it was. It
// does not know what a tick does.
//
// What a tick calls (Ticker.Wait, Now, Usage.Read, Histogram.Record) allocates
// nothing and cannot be preempted by the Go scheduler (nosplit).
//
// Inside this package an instant is an int64 of nanoseconds on CLOCK_MONOTONIC
// and a duration is an int64 of nanoseconds; instants come from the index of
// the grid point and are never accumulated.
package sched
