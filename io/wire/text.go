package wire

import "embed"

// Text is the source of this package; generated targets are built from it.
//
//go:embed check.go edge.go layout.go messages.go
var Text embed.FS

// Guide is the guide to buses by wire, which `lockstep help wire` prints.
//
//go:embed WIRE.md
var Guide []byte
