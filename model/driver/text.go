package driver

import "embed"

// Text is the source of this package; generated targets are built from it.
//
//go:embed driver.go lane.go
var Text embed.FS
