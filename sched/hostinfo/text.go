package hostinfo

import "embed"

// Text is the source of this package, of which generated targets are built.
//
//go:embed cpus.go files.go fingerprint.go host.go thread.go
var Text embed.FS
