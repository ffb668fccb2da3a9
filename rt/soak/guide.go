package soak

import _ "embed"

// Guide is the guide to soaks, which `lockstep help` prints.
//
//go:embed SOAK.md
var Guide []byte
