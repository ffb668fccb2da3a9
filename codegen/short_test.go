//go:build !long

package codegen

// breadth is for hil_test/long.
const breadth = false
