package fault

import "embed"

// Text is the source of this package; generated targets are built from it.
//
//go:embed check.go cycle.go doc.go fault.go frame.go lane.go received.go set.go value.go
var Text embed.FS
