package codegen

import "embed"

// ownText is the source of the generator, with the C that an FMU has around its plant.
//
//go:embed *.go c99/*.go specialise/*.go signals/*.go fmu/*.go fmu/csource
var ownText embed.FS
