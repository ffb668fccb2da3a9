package sweep

import "lockstep/rt/bench"

// program says which program simulates, as far as bits depend on it: its version with the
// compiler's, and the architecture with its level, from which on products and sums are
// fused. Sources without a commit may be any: then it is the executable itself.
func program() (string, error) {
	words := bench.Version() + " " + bench.Arch()
	if changed, known := bench.Changed(); known && !changed {
		return words, nil
	}
	sum, err := bench.Executable()
	return words + " " + sum, err
}
