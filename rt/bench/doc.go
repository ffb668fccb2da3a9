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
// (Page.Stop), when its policy says so, and with the supervisor: it asks the
// kernel for SIGKILL at its parent's death (PR_SET_PDEATHSIG), which costs
// nothing per tick. The request is made by the target itself, since an exec of a binary
// with file capabilities clears one made earlier, and the supervisor starts the
// target from a goroutine locked to its thread, since the kernel counts the death
// of that thread as the parent's.
package bench
