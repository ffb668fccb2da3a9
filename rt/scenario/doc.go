// Package scenario owns the scenarios of a run: stimuli, faults and expectations. It reads scenario
// files, translates the faults and live changes that files and commands name, and judges the
// expectations. SCENARIO.md describes the language.
//
// The package disturbs nothing (rt/fault) and runs nothing. A Judge is fed with the entries of the
// ring; the recorder reads them (rt/recorder).
//
// JUnit XML is here because it prints the verdict of the judge. A report (rt/report) has the same
// verdict as findings.
//
// Reading order: scenario.go (Scenario), entry.go (an entry of its lists, as written), fault.go (the
// kinds of faults), argument.go (what a kind takes), fault_bind.go (the place of a fault in a bench),
// reading.go (values, units and conditions), expect.go (expectations), judge.go (Judge), run.go (a
// scenario of one run, its verdict and JUnit XML), command.go (live changes), every_fault.go (one
// fault of every kind), guide.go (SCENARIO.md).
package scenario
