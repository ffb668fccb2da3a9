package sweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/bench"
)

// tuned creates a folder with abs-bench, whose unit names its parameters, and a sweep of it.
func tuned(t *testing.T, unit, sweep string) string {
	t.Helper()
	file := folder(t, sweep)
	_, text, err := bench.ReadAny("abs-bench")
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Replace(string(text), "control_unit: abs", "control_unit: "+unit, 1)
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "mine.yaml"), []byte(named), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

const stops = `sweep: stops
bench: BENCH
scenario: abs-dry
parameters:
  slip: {of: ADDRESS, values: [VALUES]}
results:
  s: {final: s}
`

func TestSweepVariesParametersOfTheControlUnit(t *testing.T) {
	text := strings.NewReplacer("BENCH", "mine.yaml", "ADDRESS", "bench.control_unit.slip", "VALUES", "0.12, 0.04, 2").Replace(stops)
	o := do(t, load(t, tuned(t, "{name: abs, slip: 0.1}", text)), t.TempDir(), 2, Shard{0, 1, ""})
	text = strings.NewReplacer("BENCH", "abs-bench", "ADDRESS", "scenario.road.fl", "VALUES", "1").Replace(stops)
	plain := do(t, load(t, folder(t, text)), t.TempDir(), 1, Shard{0, 1, ""})
	text = strings.NewReplacer("BENCH", "abs-bench", "ADDRESS", "bench.control_unit.slip", "VALUES", "0.04").Replace(stops)
	embedded := do(t, load(t, folder(t, text)), t.TempDir(), 1, Shard{0, 1, ""})
	s, want := o.get(t, "s"), plain.get(t, "s")[0]
	if got := embedded.get(t, "s")[0]; got != s[1] {
		t.Errorf("a slip of 0.04 stops in %v m where the bench names it, in %v m where it does not", s[1], got)
	}
	if s[0] != want {
		t.Errorf("with its own slip the unit stops in %v m, without a word in %v m", s[0], want)
	}
	if !(s[1] > s[0]+1) {
		t.Errorf("with a third of the slip it stops in %g m after %g m", s[1], s[0])
	}
	if failed := o.records[2][len(o.records[2])-1]; failed.IsNull() || !strings.Contains(failed.String(), "mine.yaml:16:15: bench: control_unit: slip of abs: 2 ") {
		t.Errorf("a slip of 2: %v", failed)
	}
}
