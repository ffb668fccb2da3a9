// Package scenario owns what happens in a run and what is expected of it: scenario files, the
// faults and live changes that they and commands name, and the judge of the expectations.
//
// The package disturbs nothing (rt/fault) and runs nothing. A Judge is fed with the entries of
// the ring; the recorder reads them (rt/recorder).
//
// Reading order: scenario.go (Scenario and the language of its file), fault.go, fault_value.go
// and fault_bind.go (a fault as written, its values, and its place in a bench), expect.go
// (expectations as written), judge.go (Judge), junit.go (verdict, JUnit XML), run.go (a scenario
// of one run), command.go (live changes), reading.go (values and conditions by name), gauge.go
// (units of numbers), every_fault.go (one fault of every kind).
package scenario
