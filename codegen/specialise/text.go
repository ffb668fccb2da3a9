package specialise

import "embed"

// Text is the source of the specialiser. A change of it may change the Go of a kernel.
//
//go:embed assign.go builtin.go call.go eval.go exec.go fold.go load.go loops.go memory.go modes.go names.go
//go:embed output.go passes.go place.go programs.go spec.go specialise.go stack.go state.go stmt.go table.go
//go:embed value.go
var Text embed.FS
