// Package codegen writes the kernel of one plant as source: Go, C, or C in an FMU.
//
// There is one text of the tick, the source of package kernel, which the binary carries.
// A generated kernel is this text specialised to one plant: all that the tables and
// kernel.New fix is folded in, what the plant lacks vanishes, slices become arrays, loops
// over elements straight lines. So the generated kernel does the operations of the table
// kernel on the same numbers in the same order, and both give the same bits. C is that Go,
// statement by statement.
package codegen
