package diagnosis

import _ "embed"

// Guide is the guide to diagnosis, which `lockstep help` prints.
//
//go:embed DIAGNOSIS.md
var Guide []byte
