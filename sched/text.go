package sched

import (
	"embed"
	"io/fs"
)

//go:embed claim.go cpus.go doc.go grid.go histogram.go histogram_json.go host.go memory.go
//go:embed missing.go probe.go thread.go timer.go usage.go virtual.go
var sourceText embed.FS

// Text is the source of this package, of which generated targets are built.
func Text() fs.FS { return sourceText }
