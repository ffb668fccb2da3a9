//go:build long

package c99_test

// breadth selects the slow cases.
const breadth = true
