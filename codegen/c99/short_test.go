//go:build !long

package c99_test

// breadth is for hil_test/long.
const breadth = false
