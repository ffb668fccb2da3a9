package fmu

import "embed"

// slaveText is the C that an FMU has around its plant.
//
//go:embed csource
var slaveText embed.FS
