package can

import "embed"

// Text holds the source files of this package; generated targets are built from them.
//
//go:embed bus.go dial.go errors.go frame.go link.go missing.go monitor.go wire.go
var Text embed.FS
