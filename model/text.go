package model

import "embed"

// Text holds the source of the types that the kernel uses; code generation reads it.
//
//go:embed system.go
var Text embed.FS
