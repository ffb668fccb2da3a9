package checkpoint

import "embed"

// Text is the source of this package; generated targets are built from it.
//
//go:embed checkpoint.go
var Text embed.FS
