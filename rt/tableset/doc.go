// Package tableset owns the memory through which a supervisor hands prepared kernels to its target while
// the target ticks.
//
// The memory has room for two sets of kernels, of one kernel for each phase of the run. It is created before the first tick, its size is sealed, and the
// target maps it and touches all of it. A kernel is written as the target reads it: with pointers that
// are addresses of the target. So a change-over moves no table.
//
// Reading order: memory.go (Memory), image.go (a kernel and all that it points to, as one block of bytes).
package tableset
