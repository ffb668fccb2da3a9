// Package scenario owns what happens in a run and what is expected of it. It has the scenario
// files, the faults and live changes that files and commands name, and the judge of the
// expectations. The language is described in SCENARIO.md.
//
// The package disturbs nothing (rt/fault) and runs nothing. A Judge is fed with the entries of the
// ring; the recorder reads them (rt/recorder).
//
// JUnit XML stands here, beside the judge whose verdict it prints. A report (rt/report) has the
// same verdict as findings.
//
// Reading order: scenario.go (Scenario), entry.go (an entry of its lists, as written), fault.go (the
// kinds of faults), argument.go (what a kind takes), fault_bind.go (the place of a fault in a bench),
// reading.go (values, units and conditions), expect.go (expectations), judge.go (Judge), run.go (a
// scenario of one run, its verdict and JUnit XML), command.go (live changes), every_fault.go (one
// fault of every kind), guide.go (SCENARIO.md).
package scenario
