package sweep

import _ "embed"

// Guide is the guide to sweeps, which `lockstep help` prints.
//
//go:embed SWEEP.md
var Guide []byte
