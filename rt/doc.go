// Package rt owns the loop: receive, step, send on the grid, the policy for missed ticks, and the
// status block (Page) that another process reads. It does not open, parse, name or print anything:
// all of that is done before the first tick, elsewhere.
//
// Reading order: loop.go (Tick), receive.go, send.go, safe.go (safe state, ends of a run),
// disturb.go (faults and live changes), calls.go (indirect calls). run.go ticks until the run is
// over, config.go is what a run is told. The other process reads page.go (Page), ledger.go (late
// ticks), ring.go (what is recorded) and life.go (the end of the thread), and posts to mail.go.
// wire.go has the time of frames on the wire.
package rt
