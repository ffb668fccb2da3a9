package network

import "embed"

// Text is the source of this package's state logic; generated targets are built from it.
//
//go:embed doc.go machine.go nm.go plan.go state.go supply.go
var Text embed.FS
