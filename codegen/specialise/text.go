package specialise

import (
	"embed"
	"io/fs"
)

//go:embed assign.go builtin.go call.go directive.go eval.go exec.go extremes.go fold.go gather.go
//go:embed hoist.go kept.go load.go loops.go memory.go names.go output.go pass.go place.go spec.go
//go:embed specialise.go stack.go state.go stmt.go table.go unroll.go value.go variables.go words.go
var text embed.FS

// Text is the source of the specialiser. A change of it may change the Go of a kernel.
func Text() fs.FS { return text }
