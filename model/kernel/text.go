package kernel

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var text embed.FS

// Text is the source of this package, from which package codegen makes the kernel of one
// plant.
func Text() fs.FS { return text }
