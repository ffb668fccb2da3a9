// Package cost holds what a tick costs: as a ratio against C programs built in the same
// run, over the size of a plant, and in machine code that neither allocates nor locks nor
// grows the stack. It asserts no absolute time.
package cost
