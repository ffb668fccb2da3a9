package fmu

import (
	"embed"
	"io/fs"
)

// slaveText is the C that an FMU has around its plant, and what writes the rest of it.
//
//go:embed csource
//go:embed build.go describe.go fmu.go
var slaveText embed.FS

// Text is the source of an FMU beside its kernel, and of this package. A change of it may change
// what the state of an FMU means.
func Text() fs.FS { return slaveText }
