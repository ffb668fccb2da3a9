package kernel

import (
	"embed"
	"io/fs"
)

//go:embed balance.go bounds.go calls.go elementary.go errors.go gap.go guard.go hunt.go kernel.go
//go:embed law.go leap.go lockset.go matrix.go modes.go moment.go net.go netlaw.go netlock.go
//go:embed netpiece.go netprep.go netspeed.go partition.go partitionpulses.go partitionstep.go
//go:embed piece.go prepare.go pulses.go region.go resolve.go root.go source.go steepness.go step.go
//go:embed suspect.go
var text embed.FS

// Text is the source of this package, from which package codegen makes the kernel of one
// plant.
func Text() fs.FS { return text }
