package plants

import (
	"strings"
	"testing"
)

// automatic-car is automatic4 with more lines: a line of automatic4 that no longer reads as expected would be left
// out in silence.
func TestAutomaticCarHasAllOfAutomatic4AndItsHeat(t *testing.T) {
	car, err := Read("automatic-car")
	if err != nil {
		t.Fatal(err)
	}
	text := string(car)
	for part, want := range map[string]int{
		"heat_port: oil": 7, "T_oil: {unit: degC": 1, "ambient: {unit: degC": 1, "  oil: {type: heat_capacitor": 1,
		"  throttle: {unit: 1, min: 0, max: 1}\n": 1, "  lever: {unit: 1, min: 0, max: 3} ": 1,
		"  cooler: {type:": 1, "T_oil: {signal: oil": 1, "plant: automatic-car\n": 1, "plant: automatic4\n": 0,
	} {
		if got := strings.Count(text, part); got != want {
			t.Errorf("%d times %q, want %d", got, part, want)
		}
	}
	base, err := Read("automatic4")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(base), "\nparameters:\n")
	for line := range strings.Lines(body) {
		driver := strings.HasPrefix(line, "  throttle: {unit") || strings.HasPrefix(line, "  lever: {unit")
		if line = strings.TrimSuffix(strings.TrimSpace(line), "}"); !driver && !strings.Contains(text, line) {
			t.Errorf("the line %q is missing", line)
		}
	}
}
