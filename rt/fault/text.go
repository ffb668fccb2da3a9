package fault

import "embed"

// Text is the source of this package, of which generated targets are built.
//
//go:embed check.go doc.go fault.go frame.go set.go value.go
var Text embed.FS
