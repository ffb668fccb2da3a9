// Package faults owns the fault-injection suite. Each scenario causes one fault in a run of two
// processes and a bus. It checks the consequences on the bus, in the report and in the exit code.
// suite_test.go lists the scenarios.
//
// The test is the control unit at the other end of the bus. It receives every frame with its time
// stamp and decodes the frames with its own code. The package does not test the faults of a
// scenario file (rt/scenario).
package faults
