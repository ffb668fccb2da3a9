package model

import _ "embed"

// Guide is the guide to plant files, which `lockstep help plant` prints.
//
//go:embed PLANT.md
var Guide []byte
