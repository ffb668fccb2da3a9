package scenario

import _ "embed"

// Guide is the guide to scenarios and live commands, which `lockstep help scenario` prints.
//
//go:embed SCENARIO.md
var Guide []byte
