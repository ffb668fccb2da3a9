// Package specialise makes the Go package of one plant's kernel out of the source of package
// kernel, which the binary carries.
//
// It owns the text of the tick and no other: jobs, hashes and versions are package codegen's, C is
// package c99's. It reads no file.
//
// A generated kernel is the source of the tick specialised to one plant: all that the tables and
// kernel.New fix is folded in, what the plant lacks vanishes, slices become arrays, loops
// over elements straight lines. So the generated kernel does the operations of the table
// kernel on the same numbers in the same order, and both give the same bits.
//
// # Files, in reading order
//
//	output.go      Plant, Generate: the files of a kernel
//	load.go        the source of the tick, parsed and type-checked once
//	directive.go   //lockstep: directives of that source
//	spec.go        spec: rounds until nothing new is assigned; fn: a generated function
//	specialise.go  the function for what is known of a call's arguments
//
// Following the source (frame):
//
//	eval.go        expressions; frame: where the walk through a function stands
//	exec.go        statements, branches, attempts that may become too long
//	assign.go      assignments
//	call.go        calls: in place or as a function of their own
//	pass.go        calls of generated functions, what they take and give
//	builtin.go     conversions, built-in functions, the standard library
//	loops.go       loops, written out or kept
//	unroll.go      which loops gain by being written out
//	variables.go   variables where branches join
//
// What is known:
//
//	value.go       value: a number, a place, a slice, or text of the generated code
//	fold.go        arithmetic that keeps the bits
//	place.go       place: a cell of the kernel or its tables
//	memory.go      fields, elements and slices of places
//	table.go       constant tables, where the tick computes the index
//	kept.go        cells of the stack of programs
//
// The text:
//
//	stmt.go        stmt: statements of the generated code; what has no effect is left out
//	gather.go      sums that grow in a variable
//	hoist.go       what a loop does not change stands before it
//	extremes.go    min and max as comparisons
//	stack.go       what functions take of the stack
//	state.go       the fields of the generated Kernel
//	names.go       names of the plant's elements in comments
//	words.go       names and indices in a text
//	text.go        the source of this package, for its version
//
// # How the tick is specialised
//
// The source is followed as it would run (frame), with what is known at hand: numbers, and
// for the rest expressions of the generated code (value). A condition that is known takes
// one way; of another both are written, and what they agree on stays known. A loop is
// written out where its index says which element is meant and the result is short enough;
// a call of a helper of arrays or of a brief method is followed in place, others become
// functions for what is known of their arguments. What lies in the tables or the kernel is
// a place: a field of the generated Kernel where the tick assigns to it, else a number, or a
// table where the tick computes the index.
//
// What the tick assigns is not known before it has been followed. So it is followed in
// rounds (spec): the first takes it that every number of the kernel stays what New made it,
// the following that those do that no round before saw assigned another. The last finds
// nothing new, and leaves out what is assigned and never read.
//
// # Bits
//
// A sum is folded only where its bits stay: 0·x is left out of a sum that is not -0, 1·x is
// x. Where x is not finite this is not so: in the tick in which a plant leaves the range of
// float64, and from then on, modes, torques and the state that "fault" names may be others
// than those of the table kernel. Both stop in the same tick.
//
// # Stack and bounds
//
// Every function is marked nosplit like those of the tick (package kernel). Functions that
// may take much of the stack are called through the variable jump, behind which the linker
// counts anew (stack.go). An index that is not that of a loop is masked, its array as long
// as a power of two, so that the compiler leaves no check of bounds; of a slice that begins
// where the tick says the beginning is masked, once for all elements.
//
// # Speed
//
// The compiler stores what is assigned to the kernel where it is assigned, and loads it again:
// so the sums of a row, with a sparse matrix as straight lines, grow in a variable (gather.go).
// Where it is the tick that says which rows are meant, they do so in functions with the directive
// //lockstep:noalias (directive.go). Nor does the compiler take anything out of a loop: the masks of
// what a loop does not change stand before it (hoist.go).
// Its min and max are chains of a dozen instructions: comparisons that the processor foresees
// stand in their place. Lanes (simd/archsimd of Go 1.26) were tried where states stand side
// by side: the polynomial of 32 states takes 0.6 µs by Float64x4, as plain Go does, and such
// loops were 6 (automatic4) to 20 percent (rail17) of a tick; sparse rows have no lanes.
package specialise
