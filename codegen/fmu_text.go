package codegen

import "embed"

// slaveText is the C that an FMU has around its plant.
//
//go:embed fmu/fmi-slave.h fmu/fmi2-slave.c fmu/fmi3-slave.c
var slaveText embed.FS
