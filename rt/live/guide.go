package live

import _ "embed"

// Guide is the guide to the live page, which `lockstep help live` prints.
//
//go:embed LIVE.md
var Guide []byte
