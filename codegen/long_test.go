//go:build long

package codegen

// breadth has the tests go through plants that take too long for every day.
const breadth = true
