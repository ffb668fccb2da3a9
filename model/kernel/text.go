package kernel

import (
	"embed"
	"io/fs"
)

//go:embed balance.go bounds.go calls.go elementary.go gap.go guard.go hunt.go kernel.go law.go
//go:embed leap.go lockset.go matrix.go modes.go moment.go net.go netlaw.go netlock.go netpiece.go
//go:embed netprep.go netspeed.go partition.go partitionpulses.go partitionstep.go piece.go
//go:embed prepare.go pulses.go region.go resolve.go root.go source.go steepness.go step.go
//go:embed suspect.go
var text embed.FS

// Text is the source of this package, from which package codegen makes the kernel of one
// plant.
func Text() fs.FS { return text }
