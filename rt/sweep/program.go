package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"lockstep/rt/bench"
)

// program says which program simulates, as far as bits depend on it: its version with the
// compiler's, and the architecture with its level, from which on products and sums are
// fused. Sources without a commit may be any: then it is the executable itself.
func program() (string, error) {
	words, known := []string{bench.Version(), runtime.GOARCH}, false
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "GOAMD64", "GOARM64":
				words = append(words, s.Value)
			case "vcs.modified":
				known = s.Value == "false"
			}
		}
	}
	if known {
		return strings.Join(words, " "), nil
	}
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return strings.Join(append(words, hex.EncodeToString(sum.Sum(nil))), " "), nil
}
