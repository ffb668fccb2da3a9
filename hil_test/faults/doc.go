// Package faults owns the fault-injection suite. Each scenario breaks one thing of a run as it is
// used, two processes and a bus. It holds what must follow, on the bus, in the report and in the
// exit code. The list of scenarios is in suite_test.go.
//
// The test is the control unit: it holds the other end of the bus and sees every frame with its
// time of arrival. It decodes the frames by itself. The package does not test the commands of a
// user that inject faults (rt/scenario).
package faults
