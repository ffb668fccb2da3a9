//go:build long

package accuracy

import (
	"path/filepath"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// The unit keeps the car stable in the sine with dwell of ECE R140. The same car with the same wheels and without yaw
// control spins.
func TestEscKeepsTheCarStableWhereItSpinsWithout(t *testing.T) {
	t.Parallel()
	with := lab.MustRun(t, "sim", "esc-bench", "-scenario", "esc-dwell")
	if !strings.Contains(with, "5 of 5 expectations held") {
		t.Errorf("with the unit:\n%s", with)
	}
	text := lab.MustRun(t, "plants", "esc-bench")
	without := strings.Replace(text, "control_unit: esc\n", "control_unit: {name: esc, enabled: 0}\n", 1)
	if without == text {
		t.Fatal("esc-bench has another control unit")
	}
	out, errors, code := lab.Run(t, "sim", writeFile(t, filepath.Join(t.TempDir(), "off.yaml"), without), "-scenario", "esc-dwell")
	if code != 1 || !strings.Contains(out, "broken the car does not turn round") || !strings.Contains(out, "broken 20 % after 1.75 s") {
		t.Errorf("without yaw control: exit code %d\n%s%s", code, out, errors)
	}
}
