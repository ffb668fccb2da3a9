package kernel

import "embed"

// Text is the source of this package, from which package codegen/specialise makes the kernel of one
// plant.
//
//go:embed balance.go calls.go clearance.go command.go elementary.go eventcheck.go kernel.go law.go locate.go
//go:embed lockset.go matrix.go modes.go partition.go partitionstep.go prepare.go pulses.go
//go:embed region.go resolve.go root.go source.go sparse.go sparselaw.go sparselock.go
//go:embed sparseprepare.go sparsesubstep.go speed.go state.go step.go stepover.go substep.go wave.go
var Text embed.FS
