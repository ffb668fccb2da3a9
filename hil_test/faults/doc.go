// Package faults is the fault-injection suite: each scenario breaks one thing of a
// run as it is used, two processes and a bus, and holds what must follow, on the bus,
// in the report and in the exit code. The list of scenarios is in suite_test.go.
//
// The test is the control unit: it holds the other end of the bus and sees every
// frame with its time of arrival. It decodes the frames by itself.
package faults
