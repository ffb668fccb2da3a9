package c99

import "embed"

// Text is the source of the translator. A change of it may change the C of a kernel.
//
//go:embed call.go expr.go files.go flow.go help.go int.go lines.go load.go names.go order.go
//go:embed stmt.go translate.go types.go
var Text embed.FS
