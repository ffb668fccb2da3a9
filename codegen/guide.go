package codegen

import _ "embed"

// Guide is the text of `lockstep help generate`.
//
//go:embed GENERATE.md
var Guide []byte
