//go:build !long

package c99_test

// breadth selects the slow cases; only hil_test/long runs them.
const breadth = false
