// Package codegen owns the generation of the kernel of one plant as source in Go, in C, or in C
// inside an FMU. It also owns the hash that identifies such a kernel. GENERATE.md describes the
// files and their use.
//
// The package checks a job and calls the packages below it: specialise makes Go of the source of
// package kernel, c99 makes C of that Go, fmu writes the files around the C. Package signals writes
// the code of a bench's signals and does not need this package. Package rt/gen writes files and
// builds executables.
//
// Reading order: job.go (Job, HashOf; Go, C, FMU: the calls of the packages below).
//
// # Version
//
// A mark identifies a target executable (package rt/gen): HashOf and the hash of the runtime.
// Both cover the source of the tick and the source of this generator. Code of another version is
// therefore refused, although most changes of the generator keep the bits: the tests compare the
// bits of one version only.
package codegen
