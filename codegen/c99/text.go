package c99

import (
	"embed"
	"io/fs"
)

//go:embed assign.go call.go expr.go files.go flow.go help.go int.go lines.go load.go logic.go
//go:embed loop.go names.go order.go stmt.go table.go translate.go types.go
var text embed.FS

// Text is the source of the translator. A change of it may change the C of a kernel.
func Text() fs.FS { return text }
