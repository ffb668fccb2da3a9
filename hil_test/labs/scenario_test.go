package labs

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
)

// The next frame of the unit is in time for one expectation and too late for another. Both report
// the same time, by the stamp of the kernel and not on the grid.
func TestLabAnswerOfAFrameIsTimedByTheKernelsStamp(t *testing.T) {
	if !lab.InVCAN(t) {
		return
	}
	dir := t.TempDir()
	scenario, junit := filepath.Join(dir, "s.yaml"), filepath.Join(dir, "j.xml")
	const text = `scenario: answers
expect:
  - {name: in time, answer: {frame: TCU_Pressure_1}, after: 1 s, within: 900 ms}
  - {name: too late, answer: {frame: TCU_Pressure_1}, after: 1 s, within: 1 ns}
`
	if err := os.WriteFile(scenario, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	lab.StartUnit(t, "vcan0")
	b := lab.StartDemoWith(t, 3*time.Second, nil, "run", "-bus", "vcan0", "-besteffort", "-scenario", scenario, "-junit", junit)
	if code := b.Wait(); code != 1 || !strings.Contains(b.Err.String(), "too late") {
		t.Errorf("exit %d, %s", code, b.Err.String())
	}
	seen := regexp.MustCompile(`(held|broken) +(in time|too late): .*saw an answer after ([0-9.]+) ms, read at tick ([0-9]+), timed by the kernel's stamp; cause at tick 200\n`).FindAllStringSubmatch(b.Out.String(), -1)
	if len(seen) != 2 || seen[0][1] != "held" || seen[1][1] != "broken" || seen[0][3] != seen[1][3] {
		t.Fatalf("%q of\n%s", seen, b.Out.String())
	}
	ms, err := strconv.ParseFloat(seen[0][3], 64)
	if err != nil || !(ms > 0 && ms < 900) {
		t.Errorf("answered after %s ms", seen[0][3])
	}
	if data, err := os.ReadFile(junit); err != nil || strings.Count(string(data), "<testcase ") != 2 || strings.Count(string(data), "<failure ") != 1 {
		t.Errorf("JUnit: %v\n%s", err, data)
	}
}
