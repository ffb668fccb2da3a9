package sigmap

import "embed"

// Text holds the source files that the tick needs; generated targets are built from them.
// The files that bind signals are not part of Text.
//
//go:embed map.go field.go decode.go encode.go excerpt.go waveform.go protect.go protect_check.go
var Text embed.FS
