package sigmap

import (
	"embed"
	"io/fs"
)

//go:embed map.go field.go decode.go encode.go course.go errors.go split.go protect.go protect_check.go
var sourceText embed.FS

// Text is the source of what a tick needs of this package, of which generated targets are
// built. How signals are bound is no part of that.
func Text() fs.FS { return sourceText }
