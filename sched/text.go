package sched

import (
	"embed"
	"io/fs"
)

//go:embed *.go
var sourceText embed.FS

// Text is the source of this package, of which generated targets are built; its tests are
// no part of that.
func Text() fs.FS { return sourceText }
