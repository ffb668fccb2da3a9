package model

import (
	"embed"
	"io/fs"
)

//go:embed system.go
var text embed.FS

// Text is the source of what the kernel's source refers to. How a plant is read and assembled is
// no part of that.
func Text() fs.FS { return text }
