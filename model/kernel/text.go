package kernel

import "embed"

// Text is the source of this package, from which package codegen/specialise makes the kernel of one
// plant.
//
//go:embed balance.go calls.go clearance.go command.go confined.go downstream.go elementary.go eventcheck.go face.go kernel.go law.go
//go:embed instant.go locate.go lockset.go matrix.go modes.go parallel.go partition.go partitionstep.go pressed.go prepare.go
//go:embed pulses.go quiet.go region.go resolve.go root.go sample.go sequence.go source.go sparse.go
//go:embed snapshot.go sparselaw.go sparselock.go sparseprepare.go sparsesubstep.go speed.go state.go
//go:embed step.go stepover.go substep.go takeover.go wave.go
var Text embed.FS
