// Package scenario owns scenario files, live commands that change a run, and the judge of
// expectations. SCENARIO.md describes the language.
//
// The package applies no fault (rt/fault) and runs nothing. The recorder (rt/recorder) passes the
// entries of the ring to a Judge. The verdict goes into the report (rt/report) and to JUnit XML.
//
// Reading order: scenario.go (Scenario), entry.go (an entry of its lists), fault.go (kinds and
// targets of faults), argument.go (arguments of kinds), fault_bind.go (a fault resolved for a
// bench), reading.go (values, units and conditions), expect.go (expectations), judge.go (Judge),
// run.go (a scenario of one run, its verdict and JUnit XML), command.go (live changes),
// every_fault.go (one fault of every kind), guide.go (SCENARIO.md).
package scenario
