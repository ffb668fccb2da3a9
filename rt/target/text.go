package target

import "embed"

// Text is the source of this package, of which generated targets are built.
//
//go:embed handover.go target.go
var Text embed.FS
