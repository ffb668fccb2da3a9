package network

import _ "embed"

// Guide is the guide to ignition, network management and supply, which `lockstep help network` prints.
//
//go:embed NETWORK.md
var Guide []byte
