package fmu

import "embed"

// Text is the source of this package and of the interfaces in an FMU. A change of it may change the
// meaning of an FMU's saved state.
//
//go:embed csource
//go:embed build.go describe.go fmu.go
var Text embed.FS
