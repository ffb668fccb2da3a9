//go:build !long

package codegen

// breadth selects the slow cases; only hil_test/long runs them.
const breadth = false
