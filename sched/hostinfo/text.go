package hostinfo

import "embed"

// Text holds the source of this package, from which generated targets are built.
//
//go:embed cpus.go files.go fingerprint.go host.go thread.go
var Text embed.FS
