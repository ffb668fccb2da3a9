package check

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model/kernel"
	"lockstep/model/library"
	"lockstep/model/plantfile"
	"lockstep/model/plants"
	"lockstep/rt/bench"
	"lockstep/rt/bench/benchtest"
	"lockstep/rt/scenario"
)

// checked returns the output of check for a plant, and its warnings.
func checked(t *testing.T, plant string, c Check) (out, warnings string) {
	t.Helper()
	p, err := plantfile.Load("t.yaml", []byte(plant), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	u, err := newCheckedPlant("t.yaml", p, kernel.Options{Period: c.Step})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	c.Out = &b
	c.Warn = func(text string) { warnings += text + "\n" }
	if err := c.plant(u); err != nil {
		t.Fatal(err)
	}
	return b.String(), warnings
}

// Rows (1, 0), (0, 1), (1, 1), (2, 0): the first and the last are dependent, and either of them
// with the second and the third.
func TestDependentFindsTheSmallestSets(t *testing.T) {
	w := [][2]float64{{1, 0}, {0, 1}, {1, 1}, {2, 0}}
	gram := make([]float64, 16)
	for i := range w {
		for j := range w {
			gram[4*i+j] = -(w[i][0]*w[j][0] + w[i][1]*w[j][1])
		}
	}
	sets, all := dependent(gram, 4)
	slices.Sort(sets)
	if want := []uint64{0b0111, 0b1001, 0b1110}; !slices.Equal(sets, want) || !all {
		t.Errorf("got %b, want %b", sets, want)
	}
}

// With 24 equal brakes on one shaft the search finds every pair and ends.
func TestSearchOfDependentSetsIsBounded(t *testing.T) {
	const mc = 24
	sets, all := dependent(slices.Repeat([]float64{-1}, mc*mc), mc)
	if len(sets) != mc*(mc-1)/2 || !all {
		t.Errorf("%d sets, want %d", len(sets), mc*(mc-1)/2)
	}
	gram := make([]float64, 60*60) // 59 independent rows and their sum: one set, too large to be found
	for i := range 59 {
		gram[61*i], gram[60*i+59], gram[60*59+i] = -1, -1, -1
	}
	gram[60*60-1] = -59
	// The search of all 2^60 sets would not end.
	if sets, all = dependent(gram, 60); len(sets) != 0 || all {
		t.Errorf("%d sets, all %v", len(sets), all)
	}
	gram[60*60-1] = -60 // now independent
	if sets, all = dependent(gram, 60); len(sets) != 0 || !all {
		t.Errorf("%d sets of independent elements, all %v", len(sets), all)
	}
}

// c = J·w² with w = 2·pi·50 Hz against ground, and damping ratio 0.1: d = 2·0.1·J·w.
const swinging = `plant: t
elements:
  ground: {type: fixed}
  body: {type: inertia, J: 1}
  shaft: {type: spring_damper, a: ground, b: body, c: 98696.04401089358, d: 62.83185307179586}
  free: {type: inertia, J: 1}
  drag: {type: damper, a: ground, b: free, d: 4}
outputs: {w: {speed: body}, phi: {angle: free}}
`

func TestCheckWritesFrequenciesAndTimeConstants(t *testing.T) {
	out, warnings := checked(t, swinging, Check{Step: time.Millisecond})
	for _, want := range []string{"50 Hz (damping ratio 0.1)", "time constants 0.25 s", "1 free motion", "fastest mode of any lock set 50 Hz (314.2 rad/s)",
		"1 substep per step of 1ms", "one substep up to 3.1ms", "worst tick"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if warnings != "" {
		t.Errorf("warned: %s", warnings)
	}
}

// Every value of the start has its unit and its origin.
func TestCheckPrintsTheStartWithItsOrigins(t *testing.T) {
	out, _ := checked(t, `plant: t
elements:
  m: {type: mass, m: 1, s_start: 300 mm}
  n: {type: mass, m: 1}
  k: {type: spring, a: m, b: n, c: 10, s_rel0: 0.1}
  brake: {type: brake_cylinder, demand: 1 bar, T_fill: 1 s, T_vent: 1 s, p_start: 0.5 bar}
  hold: {type: brake, flange: n, mu: 1, cgeo: 1, area: 1 cm2, pressure: brake}
  wall: {type: clearance, a: m, b: n, s_min: 0}
outputs: {s: {position: n}}
`, Check{Step: time.Millisecond})
	out = strings.Join(strings.Fields(out), " ")
	want := "start 7 m.s 0.3 m (s_start of m), m.v 0 m/s (default), n.s 0.4 m (springs relaxed), n.v 0 m/s (default), " +
		"k.twist 0 m (springs relaxed), brake.p 50000 Pa (p_start of brake), wall.play 0.1 m (springs relaxed)"
	if !strings.Contains(out, want) {
		t.Errorf("no %q in\n%s", want, out)
	}
}

func TestCheckWarnsOfACoarseStep(t *testing.T) {
	_, warnings := checked(t, swinging, Check{Step: 100 * time.Millisecond})
	for _, want := range []string{"coarse for the fastest mode of any lock set 50 Hz", "32 substeps per step; a step of 25ms takes 8",
		"cannot resolve the oscillation of 49.75 Hz; a step of 10ms can"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("%q is missing in\n%s", want, warnings)
		}
	}
}

// A step shorter than its worst tick is refused, and the error names a step that works.
func TestAStepShorterThanItsWorstTickIsRefused(t *testing.T) {
	text, err := plants.Read("powershift")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plantfile.Load("t.yaml", text, library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	u, err := newCheckedPlant("t.yaml", p, kernel.Options{Period: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	c := Check{Out: io.Discard, Warn: func(string) {}}
	if err = c.plant(u); err == nil {
		t.Fatal("a step of 1 µs is accepted")
	}
	form := regexp.MustCompile(`^t\.yaml: the worst tick takes \S+, longer than the step of 1µs \(.*\); on this host a step of (\S+) works$`)
	found := form.FindStringSubmatch(err.Error())
	if found == nil {
		t.Fatal(err)
	}
	if step, err := time.ParseDuration(found[1]); err != nil || step < 100*time.Microsecond {
		t.Errorf("a step of %s works, it says (%v)", found[1], err)
	}
}

func TestMatricesAreAlignedAndSplitAtTheWidth(t *testing.T) {
	var b bytes.Buffer
	cols := []string{"first", "second"}
	for range 12 {
		cols = append(cols, "a_long_name")
	}
	v := make([]float64, 2*len(cols))
	v[0], v[1], v[len(cols)] = 1.0/3, -12345.6, 1e-9
	matrix(&b, "A", []string{"x", "speed"}, cols, v)
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if len(lines) != 8 || !strings.Contains(lines[2], " 0.3333  -1.235e+04            .") || !strings.Contains(lines[3], " 1e-09           .") {
		t.Errorf("got %d lines:\n%s", len(lines), b.String())
	}
	for _, l := range lines {
		if len(l) > width(nil) {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
}

// A shaft has 80 parts with a brake on each; two brakes share a rigid part. The output describes
// the sparse steps in place of matrices per lock set.
func TestCheckReportsSparseSteps(t *testing.T) {
	var plant strings.Builder
	plant.WriteString("plant: t\nelements:\n")
	for i := range 80 {
		fmt.Fprintf(&plant, "  j%d: {type: inertia, J: 1, w_start: 5}\n  b%d: {type: brake, flange: j%d, mu: 1, cgeo: 1, fn: 1}\n", i, i, i)
		if i > 0 {
			fmt.Fprintf(&plant, "  s%d: {type: spring_damper, a: j%d, b: j%d, c: 100, d: 1}\n", i, i-1, i)
		}
	}
	plant.WriteString("  more: {type: brake, flange: j7, mu: 1, cgeo: 1, fn: 1}\noutputs:\n  w: {speed: j0}\n")
	out, _ := checked(t, plant.String(), Check{Step: 5 * time.Millisecond})
	for _, want := range []string{
		"stepped sparse: 554 of 25281 entries are not 0", "friction in 80 blocks of at most 2 elements",
		"smallest statically indeterminate sets: {b7, more}\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// A spring with four regions is on each side of a clutch. The output has the memory of the
// combinations, and no lock set with both stops of a clearance.
func TestCheckReportsTheMemoryOfRegions(t *testing.T) {
	const plant = `
plant: t
elements:
  a: {type: inertia, J: 1}
  b: {type: inertia, J: 1}
  k: {type: affine_spring, a: a, b: b, c: [1, 2, 3, 4], borders: [0.1, 0.2, 0.3]}
  d: {type: affine_damper, a: a, b: b, d: [1, 2], borders: [1]}
  c: {type: clutch, a: a, b: b, mu: 1, cgeo: 1, fn: 1}
  g: {type: clearance, a: a, b: b, phi_min: -1, phi_max: 1}
outputs:
  w: {speed: a}
`
	out, _ := checked(t, plant, Check{Step: 5 * time.Millisecond})
	for _, want := range []string{
		"regions      8  combinations of slopes: k in 7, d in 3\n",
		"modes       64  lock sets precomputed, 0.11 MB",
		"statically indeterminate in 16 of them",
		"smallest statically indeterminate sets: {c, g.min}, {c, g.max}\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	p, err := plantfile.Load("t.yaml", []byte(plant), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	u, err := newCheckedPlant("t.yaml", p, kernel.Options{Period: 5 * time.Millisecond, Memory: 1})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	u.modes(&b)
	if want := "8 combinations of regions times 2^3 lock sets do not fit in memory"; !strings.Contains(b.String(), want) {
		t.Errorf("%q is missing in %q", want, b.String())
	}
}

func TestScenarioIsDescribedAfterItsBench(t *testing.T) {
	const name, with = "powershift-bench", "powershift-clutch-sticks"
	b, err := bench.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	h, err := bench.Prepare(b)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(h, with)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&Check{Out: &out, Warn: func(string) {}, Scenario: with}).File(name); err != nil {
		t.Fatal(err)
	}
	if text := s.Describe(h); text == "" || !strings.HasSuffix(out.String(), "\n"+text) {
		t.Errorf("the output ends with %q, want %q", out.String()[max(0, out.Len()-len(text)):], text)
	}
}

// The demo tolerates 200 missed ticks of 5 ms; the stall of a host is 0.1 s with all real-time rights, else 2 s.
func TestCheckStatesAfterWhatTimeTheWatchdogEndsATarget(t *testing.T) {
	for change, want := range map[string]string{
		"# watchdog: 3 s ": "the watchdog ends the target after 1.105s with all real-time rights, after 3.005s at best effort, without one\n",
		"watchdog: 40 ms ": "the watchdog ends the target after 40ms without one\n",
	} {
		file := filepath.Join(t.TempDir(), "b.yaml")
		if err := os.WriteFile(file, []byte(benchtest.DemoText(t, "# watchdog: 3 s ", change)), 0o644); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := (&Check{Out: &out, Warn: func(string) {}}).File(file); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
