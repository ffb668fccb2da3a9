// Package soak owns long proofs of a bench: the load beside a run, what must hold while it lasts,
// and the verdict. A soak is one run, or runs one after the other (legs) with scenarios and
// faults between the plain ones, and goes on after a cut.
//
// The package does not run a bench: each run is a supervisor.Session, which a soak observes
// (supervisor.Observer). It does not make the load either: its caller passes a function.
//
// Reading order: soak.go (Soak, the observer of one run), verdict.go (what must hold in one run),
// legs.go (a soak of legs), rotation.go (their order), tally.go (sums over legs), state.go (the
// state file), outage.go (legs that cannot begin), legrecords.go (records of legs).
package soak
