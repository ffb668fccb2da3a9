// Package specialise owns the generation of one plant's kernel in Go from the source of package
// kernel, which the binary embeds.
//
// It generates the text of the tick only: package codegen owns jobs, hashes and versions, and
// package c99 translates to C. It reads no file at run time.
//
// A generated kernel is the source of the tick specialised to one plant. All values that the tables
// and kernel.New fix are constants, and features that the plant lacks are left out. Slices become
// arrays, and loops over elements are unrolled. The generated kernel does the operations of the
// table kernel on the same numbers in the same order, so both give the same bits.
//
// # Files, in reading order
//
//	output.go      Plant, Generate: the files of a kernel
//	load.go        the source of the tick, parsed and type-checked once, and its //lockstep: directives
//	spec.go        spec: passes until nothing new is assigned; fn: a generated function
//	specialise.go  the function for the known arguments of a call
//
// Following the source (frame):
//
//	eval.go        expressions; frame: a function of the source while it is followed
//	exec.go        statements, branches, attempts with a limit of statements
//	assign.go      assignments, and variables where branches join
//	call.go        calls: inlined or of a generated function, its arguments and results
//	builtin.go     conversions, built-in functions, the standard library, min and max as comparisons
//	loops.go       loops, unrolled if that is faster
//
// Known values:
//
//	value.go       value: a number, a place, a slice, or text of the generated code; constants
//	fold.go        arithmetic that keeps the bits
//	place.go       place: a cell of the kernel or its tables
//	memory.go      fields, elements and slices of places; cells of the stack of programs
//	table.go       constant tables, where the tick computes the index
//
// The text:
//
//	stmt.go        stmt: statements of the generated code, without those that have no effect; names in a text
//	passes.go      sums in local variables; masks hoisted out of loops; loops that clear or copy
//	modes.go       a function for each mode of the plant
//	programs.go    a function for each class of laws
//	inline.go      calls of the finished functions inlined: which ones
//	splice.go      the statements of a function in place of its call
//	stack.go       the stack of functions
//	state.go       the fields of the generated Kernel
//	names.go       names of the plant's elements in comments
//	text.go        the source of this package, for its version
//
// # How the tick is specialised
//
// The source is executed symbolically (frame). A value is a known number, or an expression of the
// generated code (value). A known condition selects one branch. For another condition both branches
// are written, and values on which they agree stay known. A loop is unrolled if its index selects
// an element and the result is short enough. A call of a helper for arrays or of a short method is
// inlined. Other calls become functions for the known values of their arguments. A cell of the
// tables or the kernel is a place. It becomes a field of the generated Kernel if the tick assigns
// to it, otherwise a number, or a table if the tick computes the index.
//
// The cells that the tick assigns are known only after its execution. So the tick is executed in
// passes (spec). The first pass assumes that every number of the kernel stays as New made it. Each
// later pass drops this for the numbers that a previous pass saw assigned another value. The last
// pass finds nothing new, and leaves out numbers that are assigned and never read.
//
// # Bits
//
// A sum is folded only if its bits do not change: 0·x is left out of a sum that is not -0, and 1·x
// is x. This does not hold where x is not finite: in the tick in which a plant leaves the range of
// float64, and after this tick. In these ticks the modes, the torques and the state named by
// "fault" may differ from those of the table kernel. Both kernels stop in the same tick.
//
// # Stack and bounds
//
// Every function is marked nosplit like those of the tick (package kernel). Functions that may use
// much stack are called through the variable jump, where the linker restarts its count (stack.go).
// An index other than a loop counter is masked, and the length of its array is a power of two, so
// that the compiler leaves out the bounds check. Where the tick computes the start of a slice, the
// start is masked once for all elements.
//
// # Speed
//
// The compiler stores an assignment to the kernel to memory at once and loads it again. So the sums
// of unrolled matrix rows grow in local variables (passes.go). If the tick computes the rows, this
// needs the directive //lockstep:noalias (load.go). The compiler hoists nothing out of a loop, so
// masks that a loop does not change are written before it (passes.go), and a function with a loop
// begins with _ = *k: the compiler would test k for nil in every iteration. A loop that clears or
// copies part of an array becomes a call of clear or copy, as in C. Both together take 14 percent
// of the instructions from a tick of dct7, and 15 from one of amt12. The compiler's min and
// max are chains of a dozen instructions; comparisons that the processor predicts replace them.
//
// The compiler inlines a function of up to 80 nodes of syntax, about eight statements. When the passes are over, calls
// of the functions with one call are inlined in the text (inline.go). A function that returns at several places becomes
// a block: each return sets the results and jumps to the end of the block. A tick of oscillator takes 9 percent less time
// in Go, one of buffers 21, one of car-abs 4. Functions with inlined calls have up to 350 statements: in a function of
// more than 5000 nodes the compiler inlines almost nothing, such as the helpers for min and max.
//
// A quiet tick is generated for each mode if a plant has at most 16 (modes.go, directive
// //lockstep:modes). Its matrices are then numbers, and the state at its end is in variables: C of
// coupled-clutches takes 17.3 ns in place of 24.4. Writing the outputs from these variables, not from
// the kernel, takes it to 15.7. Summing the state for its finite check in four sums side by side takes
// Go from 23.5 ns to 21.3, and checks without a call take it to 19.8.
//
// The instructions of a law become statements. Where the tick computes which law it evaluates, there is a function for
// each class of laws (programs.go, directive //lockstep:programs): a tick of car-abs in Go takes 0.4 times as many
// processor instructions as with one function that interprets all laws, a tick of rail17 0.8 times, of train3 0.75 times.
//
// A switch of the source becomes comparisons one after the other, which the Go compiler keeps and a C
// compiler makes a table. So the switch of model.Code has its most frequent cases first, for laws whose
// instructions the tick computes.
//
// SIMD (simd/archsimd of Go 1.26) was tried for states that are adjacent in memory. The polynomial
// of 32 states takes 0.6 µs with Float64x4 and also in plain Go. Such loops take 6 (automatic4) to
// 20 percent (rail17) of a tick. Sparse rows have no adjacent elements.
package specialise
