package target

import (
	"embed"
	"io/fs"
)

//go:embed handover.go target.go
var sourceText embed.FS

// Text is the source of this package, of which generated targets are built.
func Text() fs.FS { return sourceText }
