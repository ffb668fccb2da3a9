// Package supervisor owns a run in real time. It prepares a bench, starts the target process,
// watches it until its end, and reports. A supervisor that has ended is replaced by Attach.
//
// The package does not tick: the target process does (rt/target, package rt). It writes no
// record (rt/recorder), reads no scenario (rt/scenario), answers no request (rt/control), and
// leaves processes, reservations and other host matters to rt/host.
//
// Everything that can fail, allocate, parse or look up a name happens in the supervisor, before
// the start. Session.Prepare makes the Handover and opens the buses; Session.StartAndWatch starts the
// target process, which is this binary executed again or a generated executable. The target
// decodes the Handover, enters its thread and ticks; it parses nothing and opens nothing.
//
// Reading order: run.go (Run, Session), before.go (buses before the start, what the host refuses),
// supervise.go (start, watch, Close, the target process with the table kernel), guard.go (safe
// values when the target dies or hangs), busstate.go (states of the buses), claim.go (J1939
// addresses), status.go (the status line), notify.go (service manager), outcome.go (the report),
// attach.go (Attach).
//
// # What the processes share
//
//	descriptor 3   the Handover, encoding/gob in a sealed memfd
//	descriptor 4   the status block (rt.StatusBlock), written by the target
//	descriptor 5.. one bus socket each, opened and bound by the supervisor; after them the
//	               sockets of the reservations, which the target only keeps open
//	standard output of the target: what the host refused it, as JSON, before the first tick
//
// # How a run ends
//
// The target ends by itself after rt.Config.Ticks, at the supervisor's request
// (StatusBlock.Stop), at SIGTERM, and when its policy says so. It outlives the supervisor: at each tick it asks the
// kernel whether the supervisor process (StatusBlock.Supervisor) has ended, and then follows the bench.
// Attach puts another supervisor in its place. The supervisor waits for the end of the loop's
// thread, which the kernel itself reports in the status block (StatusBlock.WaitThreadExit).
//
// # States of the buses
//
// The supervisor follows the state of each bus that is an interface of this host. It reads the
// error frames of the controller on a socket of its own, and asks the kernel. The states are
// error-active, error-warning, error-passive, bus-off, down and gone. The status line shows the
// present state; the report and the record have each change with its time. Of each bus 1280
// error frames per second are read, the rest is counted.
//
// An interface that is made again is bound again, under the target's own socket. Error
// frames on that socket tell the target when its controller goes off the bus and comes back. It
// then follows the bench (end: bus_off), with or without a supervisor. The plant keeps its time
// whatever the bus does.
package supervisor
