package sweep

import "lockstep/rt/host"

// program says which program simulates, as far as bits depend on it: its version with the
// compiler's, and the architecture with its level, from which on products and sums are
// fused. Sources without a commit may be any: then it is the executable itself.
func program() (string, error) {
	words := host.Version() + " " + host.Arch()
	if changed, known := host.Changed(); known && !changed {
		return words, nil
	}
	sum, err := host.Executable()
	return words + " " + sum, err
}
