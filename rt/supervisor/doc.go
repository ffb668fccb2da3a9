// Package supervisor owns a run from its start to its report: it prepares the host, opens the
// buses, starts the target process, watches and shows the run, and ends it. It does not tick
// (rt, rt/target), read bench files (rt/bench) or judge a soak (rt/soak).
//
// Run opens the buses and starts the target process, the same binary executed again. The
// target decodes the Handover, enters its thread and ticks; it parses nothing and opens
// nothing.
//
// How a bus stands that is an interface of this host, the supervisor knows by the error
// frames of its controller, on a socket of its own, and by asking the kernel: error-active,
// error-warning, error-passive, bus-off, down, gone. It shows it, and the report and the
// record have each change with its time; of error frames it reads 1280 per second and bus,
// and counts the rest. An interface that is made again is bound again, under the target's
// own socket. The target hears on that socket when its controller goes off the bus, and when
// it is back, and does what the bench says (end: bus_off), with a supervisor or without; the
// plant keeps its time whatever the bus does.
//
// Where a run is recorded, the supervisor hears on such a bus, on one more socket, what the
// filters of the target's keep away: all of it is in the record, marked, from grid point 0
// until the target has ended. Of the frames that come back from this host it leaves out
// those that the target has said it sent; the same identifier from another node or another
// program is there. What it cannot take in time is counted, in the record and in the report.
//
// What the processes share:
//
//	descriptor 3   the Handover, encoding/gob in a sealed memfd
//	descriptor 4   the page of counters (rt.Page), written by the target
//	descriptor 5.. one bus socket each, opened and bound by the supervisor; after them what
//	               the run holds, which the target keeps and does not know of
//	standard output of the target: what the host refused it, as JSON, before the first tick
//
// Who sits outside speaks to the supervisor, at the socket of package control: see
// scenario.Commands for the lines that change a run, and control.Answer for what comes back. A
// change crosses the page (Page.Post) and takes effect at one tick.
//
// Several benches run on one host, each with a CPU and with interfaces of its own: a run
// holds them by names in the kernel (package host) as long as it or its orphaned target lives,
// and who wants the same is refused by the holder's name. They are one host's as far as a
// network namespace reaches: containers with networks of their own do not see each other's
// CPUs. Two runs may have one name; they are told apart by their processes.
//
// The target ends by itself after Config.Ticks, at the supervisor's word
// (Page.Stop), at SIGTERM and when its policy says so. It outlives the supervisor: at
// each tick it asks the kernel whether that process has ended (Page.Supervisor), and
// then does what the bench says; Attach puts another one in its place. The supervisor
// waits for the end of the loop's thread, of which the kernel itself tells on the page
// (Page.Died).
package supervisor
