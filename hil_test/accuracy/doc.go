// Package accuracy owns the tests that compare plants with independent solutions and with physics, and those
// that drive whole cycles.
// It does not bound the cost of a tick: see package cost.
package accuracy
