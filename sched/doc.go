// Package sched owns time: the grid, the tickers that follow it, and the histogram of wake-up
// latencies. It sets up the thread that ticks and the host around it: CPU, policy, memory, sleep
// states, timer threads. It does not know what a tick does.
//
// The functions that a tick calls (Ticker.Wait, Now, Usage.Read, Histogram.Record,
// ProcessOpener.Open) allocate nothing and cannot be preempted by the Go scheduler (nosplit).
//
// Inside this package an instant is an int64 of nanoseconds on CLOCK_MONOTONIC and a duration is an
// int64 of nanoseconds. Instants come from the index of the grid point and are never accumulated.
//
// Reading order: grid.go (Grid, Ticker, Virtual: the ticker of a simulation), timer.go (Timer, the
// ticker of a run), thread.go (Thread: Enter; Usage: what the kernel counts), memory.go (locked
// memory), host.go (sleep states, timer threads), probe.go (what the host refuses), cpus.go
// (threads that keep off the loop's CPU), process.go (processes opened by id and start time),
// reservation.go (reservations of CPUs and interfaces), unixdiag.go (names that are bound, and their
// users), histogram.go (latencies).
package sched
