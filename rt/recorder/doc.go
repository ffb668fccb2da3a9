// Package recorder owns the record of a run while it is written. A Recorder reads the ring of the
// status block, passes entries to the judge of a scenario, and writes ticks, frames and events.
//
// The package does not know the file format (io/record), judge (scenario.Judge) or decide when a
// run ends. It delays no other part: entries that a slow or full disk cannot take are missing in
// the record, and counted.
//
// The player of a log is here because it is the counterpart of the recorder: it sends the received
// frames of a record or a log on a bus, with the frames of io/record.
//
// Reading order: recorder.go (Recorder), header.go (the data that a replay needs), eventlog.go
// (EventLog, the names of live changes and faults), switch.go (Switch, the start or end of a record while
// the run lasts), monitor.go (frames of other nodes), player.go (Player, a log in place of a bus).
//
// # Monitored frames
//
// While a run is recorded, each bus that is an interface of this host has one more socket. It
// receives the frames that the filters of the target's socket reject. They are in the record,
// marked, from grid point 0 until the target has ended.
//
// The monitor leaves out frames from this host that the target has reported as sent. It keeps the
// same identifier from another node or another program. Frames that the monitor cannot take in time
// are counted, in the record and in the report.
package recorder
