package sweep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

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

// The shift console holds the gearbox in first or second gear, and a fault takes the pressure of C5,
// which both gears need, out of the frames of the control unit. The unit sees no ratio of these gears and
// drives on in its limp-home gear, which does without C5.
func TestSweepVariesTheRestbusAndFaultsOfReceivedFrames(t *testing.T) {
	file := folder(t, `sweep: gears
bench: truck-bench
scenario: hill.yaml
parameters:
  gear: {of: scenario.TransRqestedGear, values: [1, 2]}
  gain: {of: "scenario.faults[0].gain", values: [1, 0]}
cases: grid
results:
  in: {final: w_turbine, unit: rad/s}
  out: {final: w_out, unit: rad/s}
`)
	scenario := "scenario: hill\nfor: 7 s\nstimuli: {throttle: 100 %, TransRqestedGear: 4}\nfaults: [{signal: ClutchPressures.pressure_C5, gain: 0.5}]\n"
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "hill.yaml"), []byte(scenario), 0o666); err != nil {
		t.Fatal(err)
	}
	o := do(t, load(t, file), t.TempDir(), 2, Shard{0, 1, ""})
	in, out := o.get(t, "in"), o.get(t, "out")
	for i, ratio := range []float64{2.86, 1, 1.62, 1} { // of input and output speed
		if !(out[i] > 1) || !scalar.EqualWithinRel(in[i]/out[i], ratio, 1e-2) {
			t.Errorf("case %d: ratio %g at %g rad/s, want %g", i, in[i]/out[i], out[i], ratio)
		}
	}
}
