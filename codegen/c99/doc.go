// Package c99 owns the translation of the Go of a kernel's tick to C99, statement by statement.
//
// It knows no plant: package codegen brings the Go source and the header comment of the C. It does
// not compile.
//
// It translates the Go that package specialise writes: numbers, bool, fixed arrays and structs; constant
// tables; functions and methods that get scalars and pointers and give scalars; assignments of one
// value, if, loops with a condition or over a number, break, continue, return; of the standard
// library the functions that are one instruction. Integers are computed in 64 bits; narrower ones only hold
// values. Everything else is refused with its place.
//
// Operations that Go defines and C does not keep the meaning of Go. Whole numbers wrap around, and any shift
// and conversion has a value. Operands and calls go from left to right, -0 and NaN stay what they are.
//
// Pointers are followed over the whole text. So a function gets const where nothing is written
// through a pointer, and restrict where none of its pointers can meet another. A call that changes
// what another operand reads stands alone, before the rest of its statement.
//
// # Files, in reading order
//
//	load.go        the Go of a tick, parsed and type-checked
//	translate.go   Translate: what is translated, in which order
//	files.go       Files: the header and the source of a kernel
//	stmt.go        statements, with assignments and declarations
//	expr.go        expressions, operators and comparisons; int.go ranges of whole numbers
//	call.go        calls, conversions, built-in functions
//	order.go       which operands depend on an order that C does not have
//	flow.go        what functions read and write, and where pointers point
//	types.go       types and constant tables; names.go names, help.go helpers in C
//	lines.go       lines of C, broken and indented
//	text.go        the source of this package, for its version
package c99
