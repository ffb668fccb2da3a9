package codegen

import "embed"

// ownText is the source of this package; the packages below have their own.
//
//go:embed job.go
var ownText embed.FS
