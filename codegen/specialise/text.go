package specialise

import "embed"

// Text is the source of the specialiser. A change of it may change the Go of a kernel.
//
//go:embed assign.go builtin.go call.go eval.go exec.go fold.go inline.go load.go loops.go memory.go modes.go
//go:embed names.go output.go passes.go place.go programs.go spec.go specialise.go splice.go stack.go state.go stmt.go
//go:embed table.go value.go
var Text embed.FS
