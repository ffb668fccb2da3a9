package model

import "embed"

// Text holds the source file to which package kernel refers, for code generation. The source that
// reads and assembles a plant is not part of Text.
//
//go:embed system.go
var Text embed.FS
