// Package rt owns the loop: receive, step and send on the grid, the policy for missed ticks, and
// the status block that other processes read. It does not open, parse, name or print anything:
// other packages do that before the first tick.
//
// Reading order: loop.go (Loop.Tick), receive.go, inputs.go (when received values act), send.go,
// safe.go (safe state, ends of a run), disturb.go (faults and live changes), calls.go (indirect calls),
// run.go (Loop.Run: from the first to the last tick), config.go (Config). The other process reads statusblock.go (StatusBlock),
// ledger.go (late ticks), ring.go (entries of a record) and life.go (end of the loop's thread), and
// posts commands in mail.go. wire.go estimates when a frame was on the bus, on the clock of the grid.
package rt
