// Package report owns the report of a run or a simulation, as text and as JSON, and the state of a
// run in progress as its status block shows it.
//
// The package judges nothing: rt/scenario and rt/soak make the verdicts that a Report carries. It
// watches no process and no bus: the packages that do fill the fields of a Report.
//
// Reading order: report.go (Report), view.go (View, a run by its plan and its status block;
// histograms), messages.go (received and dropped messages), bus.go (states of a bus), ledger.go
// (late ticks), verdict.go (findings and verdicts, legs of a soak).
package report
