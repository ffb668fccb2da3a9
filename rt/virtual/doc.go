// Package virtual owns runs in virtual time: a plant alone or a bench with its virtual control
// unit, as fast as it goes, in one process; and replays of records.
//
// The package uses no real-time thread, no interface of this host and no second process. The
// tick is that of package rt, so that a virtual run and a replay are the same bit for bit.
//
// Reading order: sim.go (Simulation), simbench.go (a bench in virtual time), csv.go (inputs from
// a file), progress.go (the line that shows progress), vary.go (Variation, for many runs of
// varied files), replay.go (Replay), replay_fault.go (faults of a replay).
package virtual
