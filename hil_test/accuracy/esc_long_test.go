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

// On split friction and in a turn the unit holds the car on its course, at the cost of less than a tenth of the distance
// on split friction. Without its frames the car turns round there, and slides straight on in the turn.
func TestEscHoldsTheCourseOfABrakedCar(t *testing.T) {
	t.Parallel()
	lost := "faults:\n"
	for _, f := range []string{"EscFront", "EscRear", "EscPump"} {
		lost += "  - {frame: " + f + ", drop: true, at: 0 s}\n"
	}
	for _, c := range []struct{ scenario, with, without string }{
		{"esc-split", "[{value: X, below: 140 m}, {value: psi, within: 6 deg, of: 0 deg}, {value: v, below: 0.2 m/s, from: 9 s}]",
			"[{value: X, above: 129 m, from: 9 s}, {value: psi, below: -150 deg, from: 4 s, to: 4.1 s}, {value: v, below: 0.2 m/s, from: 9 s}]"},
		{"esc-turn", "[{value: psi, above: 38 deg, from: 4.9 s}]", "[{value: psi, below: 28 deg}]"},
	} {
		text := duration.ReplaceAllString(lab.MustRun(t, "plants", c.scenario), "\nfor: 10 s")
		before, _, cut := strings.Cut(text, "\nexpect:\n")
		if !cut {
			t.Fatalf("no expectations in %s", c.scenario)
		}
		dir := t.TempDir()
		for name, scenario := range map[string]string{"with": before + "\nexpect: " + c.with, "without": before + "\n" + lost + "expect: " + c.without} {
			out, errors, code := lab.Run(t, "sim", "esc-bench", "-scenario", writeFile(t, filepath.Join(dir, name+".yaml"), scenario+"\n"))
			if code != 0 {
				t.Errorf("%s %s the unit: exit code %d\n%s%s", c.scenario, name, code, out, errors)
			}
		}
	}
}
