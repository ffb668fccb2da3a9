package labs

import (
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

func TestLabOwnSocketWorksOnARealStack(t *testing.T) {
	testInLab(t, "../../io/can", "")
}

func TestLabUnitOpensARealBus(t *testing.T) {
	testInLab(t, "../../rt/ecu", "Open")
}

// The tests of package sched run in the lab with all rights, an isolated CPU and a PREEMPT_RT
// kernel, so none of them is skipped.
func TestLabPreemptRTSchedulerTestsPass(t *testing.T) {
	lab.PreemptRT.Require(t)
	out := lab.PreemptRT.Run(t, "../../sched", packageTests(t, "../../sched"), "-test.v", "-test.timeout=200s")
	if names := lab.Skipped(out); names != nil {
		t.Errorf("skipped in the lab: %v; want no skipped test there", names)
	}
}

// packageTests builds the tests of a package that are to run in a lab.
func packageTests(t *testing.T, folder string) string {
	t.Helper()
	path := filepath.Join(lab.Scratch, filepath.Base(folder)+".test")
	if err := lab.Build("test", "-c", "-o", path, "./"+folder); err != nil {
		t.Fatal(err)
	}
	// results.py counts these tests as passed.
	t.Logf("in the lab run the tests of lockstep/%s", filepath.Join("hil_test/labs", folder))
	return path
}

// testInLab runs the tests of a package inside the lab, in the folder of the package. Tests that
// are skipped there must pass on the same kernel without CAN.
func testInLab(t *testing.T, folder, tests string) {
	t.Helper()
	lab.RequireVCAN(t, "rmmod")
	t.Parallel()
	path := packageTests(t, folder)
	out := lab.VCAN.Run(t, folder, path, "-test.v", "-test.run="+tests, "-test.timeout=100s")
	names := lab.Skipped(out)
	if names == nil {
		return
	}
	out = lab.VCAN.Run(t, folder, "bash", "-c", withoutCAN+`; exec "$@"`, "-",
		path, "-test.v", "-test.run=^("+strings.Join(names, "|")+")$", "-test.timeout=100s")
	if again := lab.Skipped(out); again != nil {
		t.Errorf("skipped with CAN and without: %v", again)
	}
}

// withoutCAN removes CAN from the kernel of the lab.
const withoutCAN = "ip link del vcan0; ip link del vcan1; rmmod vcan can_gw can_raw can"
