package bench

import _ "embed"

// Guide is the guide to bench files, which `lockstep help bench` prints.
//
//go:embed BENCH.md
var Guide []byte
