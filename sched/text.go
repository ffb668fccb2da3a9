package sched

import "embed"

// Text is the source of this package, of which generated targets are built.
//
//go:embed cpus.go doc.go grid.go histogram.go host.go memory.go
//go:embed probe.go process.go reservation.go thread.go timer.go unixdiag.go
var Text embed.FS
