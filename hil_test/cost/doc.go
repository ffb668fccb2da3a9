// Package cost owns the tests of what a tick costs. The cost is a ratio against C programs built
// in the same run, and a function of the size of a plant. The machine code of a tick neither
// allocates nor locks nor grows the stack. The package asserts no absolute time.
package cost
