package model

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var text embed.FS

// Text is the source of this package: what the kernel's source refers to.
func Text() fs.FS { return text }
