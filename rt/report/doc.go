// Package report owns the report of a run or a simulation, as text and as JSON. It also reads the
// state of a live run from its status block.
//
// The package decides no verdict: rt/scenario and rt/soak do, and the report carries their results.
// It watches no process and no bus; the supervisor does, and fills the fields of a Report.
//
// Reading order: report.go (Report), view.go (View, a run by its plan and its status block;
// histograms), messages.go (received and dropped messages), bus.go (states of a bus), ledger.go
// (late ticks), verdict.go (findings and verdicts, segments of a soak).
package report
