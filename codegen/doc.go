// Package codegen owns what lockstep gen offers: the kernel of one plant as source in Go, in C, or
// in C inside an FMU. It also owns the hash by which such a kernel is known. What is written, and
// how it is used, is described in GENERATE.md.
//
// The package checks a job and calls the packages below it: specialise makes Go of the source of
// package kernel, c99 makes C of that Go, fmu writes the files around the C. Package signals writes
// the code of a bench's signals and needs nothing of this package. Package rt/gen writes files and
// builds executables.
//
// Reading order: job.go (Job, HashOf; Go, C, FMU: the calls of the packages below).
//
// # Version
//
// A target executable is known by its mark (package rt/gen): HashOf and the hash of the runtime.
// Both cover the source of the tick and the source of this generator. Code of another version is
// therefore refused, although most changes of the generator keep the bits: the tests compare the
// bits of one version only.
package codegen
