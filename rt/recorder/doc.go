// Package recorder owns the record of a run while it is written. A Recorder reads the ring of
// the status block, feeds the judge of a scenario, and writes ticks, frames and events.
//
// The package does not know the form of the file (io/record), judge (scenario.Judge) or decide
// when a run ends. It delays nobody: what a slow or full disk costs is missing in the record, and
// counted.
//
// Reading order: recorder.go (Recorder), header.go (what a record needs to run again),
// eventlog.go (EventLog, the names of live changes and faults), monitor.go (frames beside those
// of the bench), player.go (Player, a log in the place of a bus).
//
// # Frames beside those of the bench
//
// Where a run is recorded, each bus that is an interface of this host has one more socket. It
// receives what the filters of the target's socket keep away. All of it is in the record, marked,
// from grid point 0 until the target has ended.
//
// Of the frames that come back from this host, the monitor leaves out those that the target says
// it sent. The same identifier from another node or another program is kept. What the monitor
// cannot take in time is counted, in the record and in the report.
package recorder
