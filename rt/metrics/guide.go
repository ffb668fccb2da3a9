package metrics

import _ "embed"

// Guide is the guide to the figures for Prometheus, which `lockstep help fleet` prints.
//
//go:embed FLEET.md
var Guide []byte
