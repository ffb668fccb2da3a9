// Package bench owns the bench file and the plan that is made of it. Load reads the file. Prepare
// assembles the plant, binds every signal to its port and returns a Handover: plain data, all that
// the target process needs. BENCH.md describes the language.
//
// The package does all parsing, look-ups and checks of a bench, before the start. Errors are
// "FILE:LINE:COL: bench: ...".
//
// The package does not run a bench: rt/supervisor does in real time, rt/virtual in virtual time. It
// does not tick (package rt), know the mathematics of a plant (model, model/kernel) or open a bus
// (io/can). Package rt/scenario holds the expectations of a run.
//
// Reading order: file.go (Bench, Load), control_unit.go (the control unit), plant.go (its plant, units
// of its databases), bus.go (buses, frames, messages), protect.go (protected groups, values over time),
// claim_file.go (J1939 addresses), safe.go (safe values, ends of a run), prepare.go (Handover),
// handover.go (how a Handover reaches the target, digests of the sources of a run), tableset.go (tables
// that take effect in a run, as differences), kind.go (kinds of files), result.go (files that a result must not replace), guide.go (BENCH.md).
package bench
