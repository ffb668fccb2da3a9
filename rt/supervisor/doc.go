// Package supervisor owns a run in real time. It prepares a bench, starts the target process,
// supervises it until its end, and reports. Attach replaces a supervisor that has ended.
//
// The package does not tick: the target process does (rt/target, package rt). It writes no
// record (rt/recorder), reads no scenario (rt/scenario), answers no request (rt/control), and
// leaves processes, reservations and other host matters to rt/host.
//
// Everything that can fail, allocate, parse or look up a name happens in the supervisor, before
// the start. Session.Prepare makes the Handover and opens the buses. Session.StartAndWatch starts
// the target process, which is this binary executed again or a generated executable. The target
// decodes the Handover, enters its thread and ticks; it parses nothing and opens nothing.
//
// Reading order: run.go (Run, Session), before.go (checks before the start), supervise.go (start,
// watch, Close, the target process with the table kernel), unit.go (the control unit), watchdog.go
// (safe values when the target dies or hangs), guard.go (the watchdog as a process of its own),
// busstate.go (states of the buses), ports.go (the ports of the buses: J1939 addresses, and frames for
// package port), status.go (the status line), notify.go (service manager), outcome.go (the report),
// attach.go (Attach).
//
// # Files shared with the target
//
//	descriptor 3   the Handover, encoding/gob in a sealed memfd
//	descriptor 4   the status block (rt.StatusBlock), written by the target
//	descriptor 5.. one bus socket each, opened and bound by the supervisor; after them the
//	               sockets of the reservations, which the target only keeps open
//	standard output of the target: what the host refused it, as JSON, before the first tick
//
// # The guard
//
// Where the host grants real-time priority, the watchdog of the target is a third process, the guard:
// this binary executed again, with the first descriptors of the target. It sleeps in the kernel until
// the target ends or hangs, and then sends the safe values. Its priority is one below the loop's, it
// stays off the loop's CPU, and it never collects garbage. The kernel kills it if it runs for 0.2 s
// without sleeping (RLIMIT_RTTIME). It ends with the target or with its supervisor. If it ends before
// the target, the supervisor becomes the watchdog, and the report says so.
//
// # A program as the control unit
//
// The control unit of a bench is this binary executed again: a virtual control unit, or the relay of a
// program (rt/unitprogram). It owns the unit's ends of the pairs, so it outlives the supervisor with the
// target, and ends with the target.
//
// # How a run ends
//
// The target ends by itself after rt.Config.Ticks, at the supervisor's request (StatusBlock.Stop),
// at SIGTERM, and when its policy demands it. The target outlives the supervisor: at each tick it
// asks the kernel whether the supervisor process (StatusBlock.Supervisor) has ended. If so, the
// target does what the bench demands (end: supervisor_gone). Attach replaces the supervisor. The
// supervisor waits for the end of the loop's thread, which the kernel reports in the status block
// (StatusBlock.WaitThreadExit).
//
// # States of the buses
//
// The supervisor follows the state of each bus on an interface of this host. It reads the error
// frames of the controller on its own socket, and queries the kernel. The states are error-active,
// error-warning, error-passive, bus-off, down and gone. The status line shows the present state.
// The report and the record have each change with its time. The supervisor reads 1280 error frames
// of each bus per second and counts the rest.
//
// If an interface is created again, the supervisor binds the target's socket to it. The target
// receives bus-off and restart of its controller on that socket. It then does what the bench
// demands (end: bus_off), with or without a supervisor. The plant keeps its time in every state of
// the bus.
package supervisor
