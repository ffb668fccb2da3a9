package hiltest

import _ "embed"

// Labs is the text of LABS.md, the guide to the labs and their scripts.
//
//go:embed LABS.md
var Labs []byte
