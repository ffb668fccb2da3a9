//go:build long

package codegen

// breadth selects the slow cases: more plants.
const breadth = true
