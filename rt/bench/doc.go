// Package bench owns a test bench: its file, the supervisor that prepares and
// watches a run, and the hand-over to the process that ticks. It does not tick
// (package rt), know the mathematics of a plant (model, model/kernel) or speak to
// a bus (io/can).
//
// Everything that can fail, allocate, parse or look up a name happens in the
// supervisor, before the start: Load reads the file, Prepare turns it into a
// Handover of plain data, and Run opens the buses and starts the target process,
// the same binary executed again. The target decodes the Handover, enters its
// thread and ticks; it parses nothing and opens nothing.
//
// What the processes share:
//
//	descriptor 3   the Handover, encoding/gob in a sealed memfd
//	descriptor 4   the page of counters (rt.Page), written by the target
//	descriptor 5.. one bus socket each, opened and bound by the supervisor
//	standard output of the target: what the host refused it, as JSON, before the first tick
//
// The target ends by itself after Config.Ticks, at the supervisor's word
// (Page.Stop), at SIGTERM and when its policy says so. It outlives the supervisor: at
// each tick it asks the kernel whether that process has ended (Page.Supervisor), and
// then does what the bench says; Attach puts another one in its place. The supervisor
// waits for the end of the loop's thread, of which the kernel itself tells on the page
// (Page.Died).
package bench
