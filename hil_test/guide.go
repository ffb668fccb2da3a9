package hiltest

import _ "embed"

// Labs is the guide to the labs, their scripts, and what each proves.
//
//go:embed LABS.md
var Labs []byte
