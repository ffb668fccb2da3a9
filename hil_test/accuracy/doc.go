// Package accuracy compares what plants do with independent solutions and with physics. It
// does not measure cost alone: see package cost.
package accuracy
