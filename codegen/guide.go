package codegen

import _ "embed"

// Guide is the guide to what lockstep gen writes, which `lockstep help` prints.
//
//go:embed GENERATE.md
var Guide []byte
