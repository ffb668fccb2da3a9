// Package report owns what a run or a simulation says at its end, as text and as JSON, and what
// can be said of it while it lasts from its status block alone.
//
// The package judges nothing: verdicts are made by rt/scenario and rt/soak and are carried here.
// It watches no process and no bus; who does fills the fields of a Report.
//
// Reading order: report.go (Report), view.go (View, a run by its plan and its status block;
// histograms), messages.go (received and dropped messages), bus.go (states of a bus), ledger.go
// (late ticks), verdict.go (findings and verdicts, segments of a soak).
package report
