package fault

import (
	"embed"
	"io/fs"
)

//go:embed check.go doc.go fault.go frame.go set.go value.go
var sourceText embed.FS

// Text is the source of this package, of which generated targets are built.
func Text() fs.FS { return sourceText }
