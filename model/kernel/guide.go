package kernel

import _ "embed"

// Method is the guide to the method of this package, which `lockstep help method` prints.
//
//go:embed METHOD.md
var Method []byte
