package model

import "embed"

// Text is the source of what the kernel's source refers to. How a plant is read and assembled is
// no part of that.
//
//go:embed system.go
var Text embed.FS
