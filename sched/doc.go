// Package sched owns time: the grid, the tickers that walk along it, and the histogram of how late
// they were. It sets up the thread that ticks and the host around it: CPU, policy, memory, sleep
// states, timer threads. It does not know what a tick does.
//
// What a tick calls (Ticker.Wait, Now, Usage.Read, Histogram.Record) allocates nothing and cannot
// be preempted by the Go scheduler (nosplit).
//
// Inside this package an instant is an int64 of nanoseconds on CLOCK_MONOTONIC and a duration is
// an int64 of nanoseconds. Instants come from the index of the grid point and are never
// accumulated.
//
// Reading order: grid.go (Grid, Ticker), timer.go (Timer, the ticker of a run), virtual.go
// (Virtual, the ticker of a simulation), thread.go (Thread: Enter), memory.go (locked memory),
// host.go (sleep states, timer threads), probe.go and missing.go (what the host refuses), cpus.go
// (threads that keep off the loop's CPU), claim.go (names that reserve a CPU), histogram.go and
// histogram_json.go (latencies), usage.go (what the kernel counts).
package sched
