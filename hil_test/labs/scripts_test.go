package labs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

func TestLabScriptPassesOutputStatusFolderAndEnvironment(t *testing.T) {
	t.Parallel()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range lab.All {
		t.Run(m.Script, func(t *testing.T) {
			m.Require(t)
			code, stdout, stderr := m.RunScript(t, []string{"LAB_TEST=a 'b' $c"},
				"bash", "-c", `pwd; echo "$LAB_TEST"; echo "$1"; cat; echo error >&2; exit 7`, "-", `an "argument" $x`)
			if want := m.HostFiles + here + "\na 'b' $c\nan \"argument\" $x\n"; code != 7 || stdout != want || stderr != "error\n" {
				t.Errorf("exit %d, stdout %q, stderr %q; want 7, %q and %q", code, stdout, stderr, want, "error\n")
			}
		})
	}
}

func TestLabScriptHasTwoBusesForCANFD(t *testing.T) {
	t.Parallel()
	lab.RequireVCAN(t, "candump", "cansend")
	_, stdout, _ := lab.VCAN.RunScript(t, nil, "bash", "-c", `
		candump -L -n 2 -T 60000 vcan0 vcan1 &
		# The list also has a bus without a listener: "(vcan1: no entry)".
		until grep -q '^ *vcan0 ' /proc/net/can/rcvlist_all && grep -q '^ *vcan1 ' /proc/net/can/rcvlist_all; do sleep 0.1; done
		cansend vcan0 123#1122; cansend vcan1 00000123##11122334455; wait`)
	for _, want := range []string{"vcan0 123#1122\n", "vcan1 00000123##5"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("candump did not see %q:\n%s", want, stdout)
		}
	}
}

func TestLabScriptEndsACommandAfterTheTimeLimitAndCleansUp(t *testing.T) {
	t.Parallel()
	for _, m := range lab.All {
		t.Run(m.Script, func(t *testing.T) {
			m.Require(t)
			dir := t.TempDir()
			code, _, stderr := m.RunScript(t, []string{"LAB_TIMEOUT=4", "TMPDIR=" + dir}, "sleep", "1000")
			if code != 124 || !strings.Contains(stderr, "LAB_TIMEOUT") {
				t.Errorf("exit %d, stderr %q; want 124 and the reason", code, stderr)
			}
			if left, _ := filepath.Glob(dir + "/*"); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestScriptNamesTheMissingPackage(t *testing.T) {
	for m, want := range map[string]string{
		"vcan":       "vcan: linux.uml is missing: apt-get install user-mode-linux\n",
		"preempt_rt": "preempt_rt: qemu-system-x86_64 is missing: apt-get install qemu-system-x86\n",
	} {
		code, _, stderr := lab.Machine{Script: m}.RunScript(t, []string{"PATH=/nowhere"}, "true")
		if code != 3 || stderr != want {
			t.Errorf("exit %d, stderr %q; want 3 and %q", code, stderr, want)
		}
	}
}
