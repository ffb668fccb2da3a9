// Package codegen owns the generation of the kernel of one plant as source in Go, in C, or in C
// inside an FMU. It also owns the hash that identifies such a kernel. GENERATE.md describes the
// files and their use.
//
// The package checks a job and calls the packages below it. Package specialise generates Go from
// the source of package kernel, c99 translates this Go to C, and fmu adds the other files of an
// FMU. Package signals generates the code of a bench's signals and is independent of this package.
//
// The package does not write to disk and compiles no Go: package rt/gen does both.
//
// Reading order: job.go (Job, HashOf; GenerateGo, GenerateC and GenerateFMU call the packages
// below).
//
// # Version
//
// The mark of a target executable (package rt/gen) has HashOf and the hash of the runtime. Both
// cover the source of the tick and the source of this generator. lockstep run therefore refuses
// code of another version. Most changes of the generator keep the bits, but the tests compare the
// bits of one version only.
package codegen
