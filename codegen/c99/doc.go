// Package c99 owns the translation of the Go of a kernel's tick to C99, statement by statement.
//
// It knows no plant: package codegen passes the Go files and the texts of the C files. It runs no
// compiler.
//
// The translator supports the Go that package specialise writes:
//
//   - numbers, bool, arrays of fixed length and structs
//   - constant tables
//   - functions and methods with scalars and pointers as parameters and scalars as results
//   - assignments of one value, if, break, continue, return
//   - blocks, and jumps to a label behind the block
//   - loops with a condition or over an integer
//   - clear and copy for parts of fixed length of arrays, and tests of a pointer for nil, which C leaves out
//   - functions of the standard library that are one instruction of the processor
//
// Integers are computed in 64 bits; narrower types only hold values. Other Go text is an error with
// its position.
//
// Where C leaves the behaviour open, the C text behaves like Go. Integers wrap around, and every
// shift and conversion has a value. Operands and calls are evaluated from left to right. -0 and NaN
// are kept.
//
// Pointers are followed through the whole text. The target of a pointer is const if nothing is
// written through it. A pointer is restrict if no other parameter of its function can share memory
// with it. A call that changes an operand of its statement becomes a statement of its own.
//
// # Files, in reading order
//
//	load.go        the Go of a tick, parsed and type-checked
//	translate.go   Translate: functions and the declarations that they need
//	files.go       Files: the header and the source of a kernel
//	stmt.go        statements, with assignments and declarations
//	expr.go        expressions, operators and comparisons
//	int.go         integer operations and the ranges of their values
//	call.go        calls, conversions, built-in functions
//	order.go       operands that depend on an order of evaluation
//	flow.go        data flow: functions that write memory, targets of pointers
//	types.go       types and constant tables
//	names.go       identifiers
//	help.go        helper functions in C
//	lines.go       lines of C, broken and indented
//	text.go        the source of this package, for its version
package c99
