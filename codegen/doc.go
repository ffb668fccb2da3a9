// Package codegen owns what lockstep gen offers: the kernel of one plant as source in Go, in C, or
// in C inside an FMU, and the hash by which such a kernel is known.
//
// It checks a job and calls the rooms below it. How Go is made of the kernel's source is package
// specialise's, how C is made of that Go package c99's, what an FMU has around the C package fmu's.
// The signals of a bench are package signals', which needs nothing of this one. Package rt/gen
// writes files and builds executables.
//
// There is one text of the tick, the source of package kernel, which the binary carries.
// A generated kernel is this text specialised to one plant. It does the operations of the table
// kernel on the same numbers in the same order, so both give the same bits. C is that Go,
// statement by statement.
//
// # Version
//
// An executable is compared by HashOf and, with all else that a target is built of, by its
// mark (package gen): both cover the tables, the source of the tick and the text of this
// generator. So what another version wrote is refused, though most changes of a generator
// leave the bits: that they do is known of the version whose tests compared them, of no other.
// What the Go compiler makes of it counts as well: with another GOAMD64 it may fuse products
// and sums, and the target is refused.
package codegen
