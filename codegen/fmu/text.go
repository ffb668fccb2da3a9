package fmu

import "embed"

// Text is the source of an FMU beside its kernel, and of this package. A change of it may change
// what the state of an FMU means.
//
//go:embed csource
//go:embed build.go describe.go fmu.go
var Text embed.FS
