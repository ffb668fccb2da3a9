// Package plantfile owns the language of plant files: Load makes the network of a plant of
// one. It does not know the element types, which are passed to it (model/library lists
// them), and does not make matrices of the network: model/assemble does.
//
// Reading order: load.go (Load; Draft: parsed, not read yet; inputs, the partition), scope.go
// (names, assemblies), elements.go (entries), connect.go (nodes), waveforms.go and shapes.go (values
// over time), exert.go and torques.go (what elements exert), outputs.go, pulses.go.
//
// Values are SI inside; a file may write other units, which are checked and converted when it is
// read. An error names its place in the file: FILE:LINE:COL.
//
// The language is described in model/PLANT.md, which `lockstep help plant` prints. Its tables of
// element types are written from what package element declares (go test ./model -run Guide -update).
package plantfile
