//go:build long

package interop

import (
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// The suite of TestPytestSuiteRunsInVirtualTimeAndOnThePair, with the unit in Python, on a CAN interface.
func TestLabPytestSuiteRunsOnVCAN(t *testing.T) { checkSuiteInLab(t, lab.VCAN) }

func TestLabPytestSuiteRunsOnPreemptRT(t *testing.T) { checkSuiteInLab(t, lab.PreemptRT) }

func checkSuiteInLab(t *testing.T, m lab.Machine) {
	if !lab.Inside(t, m, "/usr/bin/python3") {
		return
	}
	usePython(t, "pytest")
	file := benchOf(t, absolute(t, "../../deploy/python/examples/powershift.py"))
	out := pytest(t, t.TempDir(), false, absolute(t, "test_bench.py"), "--lockstep-bench", file,
		"--lockstep-flag=-besteffort", "--lockstep-flag=-bus", "--lockstep-flag=drive=vcan0")
	if !strings.Contains(out, "5 passed") {
		t.Error(out)
	}
}
