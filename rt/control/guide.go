package control

import _ "embed"

// Guide is the guide to the door of a run, which `lockstep help control` prints.
//
//go:embed CONTROL.md
var Guide []byte
