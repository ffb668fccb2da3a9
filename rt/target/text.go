package target

import "embed"

// Text is the source of this package; generated targets are built from it.
//
//go:embed handover.go target.go
var Text embed.FS
