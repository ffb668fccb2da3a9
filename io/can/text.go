package can

import (
	"embed"
	"io/fs"
)

//go:embed bus.go dial.go errors.go frame.go host.go link.go others.go
var sourceText embed.FS

// Text is the source of this package, of which generated targets are built.
func Text() fs.FS { return sourceText }
