package proof

import (
	"os"
	"testing"

	"lockstep/hil_test/lab"
)

func TestMain(m *testing.M) {
	if os.Getenv(unitVar) != "" {
		os.Exit(proofUnit(os.Args[1:]))
	}
	lab.Main(m)
}
