package accuracy

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

// brakeBench is a bench with a control unit that keeps wheels from locking.
type brakeBench struct {
	bench    string   // name or file
	frames   []string // frames that command the valves
	pressure string   // column of the requested brake pressure
	stop     string   // length of a run in which the vehicle stops on locked wheels
	ratio    float64  // upper bound of the stopping distance with the unit over that on locked wheels
}

// With its unit the car stops in a shorter distance than on locked wheels, on dry and wet roads and
// on ice, and no wheel locks. The distance on locked wheels that a scenario states is that of the
// same car without the frames of the unit.
func TestAbsBeatsLockedWheels(t *testing.T) {
	t.Parallel()
	b := brakeBench{bench: "abs-bench", frames: []string{"AbsFront", "AbsRear"}, pressure: "p_pedal[bar]", stop: "36 s", ratio: 0.96}
	for _, name := range []string{"abs-dry", "abs-wet", "abs-ice"} {
		t.Run(name, func(t *testing.T) { b.beatsLockedWheels(t, name) })
	}
}

// The unit still beats locked wheels without the pedal, without the edges, or with gaps of 20 ms in
// commands and speeds: it estimates the speed of the car from the wheels that it receives.
func TestAbsBeatsLockedWheelsWithLostFrames(t *testing.T) {
	t.Parallel()
	before, _, _ := strings.Cut(lab.MustRun(t, "plants", "abs-dry"), "\nexpect:\n")
	lost := ""
	for k := range 6 {
		for _, f := range []string{"AbsFront", "AbsRear", "WheelSpeeds", "PulsesFront", "PulsesRear"} {
			lost += fmt.Sprintf("  - {name: %s %d, frame: %s, drop: true, at: %g s, for: 4 frames}\n", f, k, f, 1.2+0.4*float64(k))
		}
	}
	b := brakeBench{bench: "abs-bench", pressure: "p_pedal[bar]"}
	for name, faults := range map[string]string{
		"no pedal": "  - {frame: Chassis, drop: true, at: 2 s}\n",
		"no edges": "  - {frame: PulsesFront, drop: true, at: 2 s}\n  - {frame: PulsesRear, drop: true, at: 2 s}\n",
		"gaps":     lost,
	} {
		end, _ := b.stopsAt(t, writeFile(t, filepath.Join(t.TempDir(), "lost.yaml"), before+"\nfaults:\n"+faults))
		if t.Logf("%s: at rest at %.1f m", name, end); !(end < 70) {
			t.Errorf("%s: at rest at %g m, on locked wheels at 71.1", name, end)
		}
	}
}

// With ice under the left wheels only, the unit brakes less, so that the car can be steered: the
// distance grows by less than 12 %, and no wheel locks.
func TestAbsOnASplitRoadStopsWithin112PercentOfLockedWheels(t *testing.T) {
	t.Parallel()
	b := brakeBench{bench: "abs-bench", frames: []string{"AbsFront", "AbsRear"}, pressure: "p_pedal[bar]", stop: "12 s"}
	before, _, cut := strings.Cut(lab.MustRun(t, "plants", "abs-split"), "\nfaults:\n")
	if !cut {
		t.Fatal("no faults in abs-split")
	}
	locks := "\nexpect:\n"
	for _, w := range []string{"fl", "fr", "rl", "rr"} {
		locks += "  - {value: " + w + ".disc.mode, above: 0.5, from: 1 s, to: 6 s}\n"
	}
	locked, pedal := b.stopsAt(t, b.withoutUnit(t, before))
	braked, _ := b.stopsAt(t, writeFile(t, filepath.Join(t.TempDir(), "split.yaml"), before+locks))
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", braked-pedal, locked-pedal)
	if !(braked-pedal < 1.12*(locked-pedal)) {
		t.Errorf("with the unit the car stops after %.2f m, on locked wheels after %.2f", braked-pedal, locked-pedal)
	}
}

// The rail car gains more: its law of adhesion has the maximum at zero slip and falls to 0.4 of it.
func TestWspBeatsLockedWheels(t *testing.T) {
	t.Parallel()
	b := brakeBench{bench: "wsp-bench", frames: []string{"DumpValves"}, pressure: "p_demand[bar]", stop: "80 s", ratio: 0.6}
	for _, name := range []string{"wsp-dry", "wsp-wet"} {
		t.Run(name, func(t *testing.T) { b.beatsLockedWheels(t, name) })
	}
}

var (
	statedDistance = regexp.MustCompile(`value: s, below: ([0-9.]+) m}`)
	duration       = regexp.MustCompile(`\nfor: .*`)
)

// beatsLockedWheels runs a scenario with the unit and, until the vehicle stops, without it.
func (b brakeBench) beatsLockedWheels(t *testing.T, name string) {
	text := lab.MustRun(t, "plants", name)
	found := statedDistance.FindStringSubmatch(text)
	before, _, cut := strings.Cut(text, "\nexpect:\n")
	if found == nil || !cut {
		t.Fatalf("no distance on locked wheels in\n%s", text)
	}
	stated, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	locked, pedal := b.stopsAt(t, b.withoutUnit(t, before))
	braked, _ := b.stopsAt(t, name)
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", braked-pedal, locked-pedal)
	if !(locked > stated-0.1 && locked < stated+0.1) {
		t.Errorf("on locked wheels the vehicle stops at %.2f m, want %.1f", locked, stated)
	}
	if !(braked-pedal < b.ratio*(locked-pedal)) {
		t.Errorf("with the unit the vehicle stops after %.2f m, on locked wheels after %.2f", braked-pedal, locked-pedal)
	}
}

// withoutUnit writes a scenario in which all frames of the unit are lost, and returns its path.
func (b brakeBench) withoutUnit(t *testing.T, text string) (file string) {
	t.Helper()
	text = duration.ReplaceAllString(text, "\nfor: "+b.stop) + "\nfaults:\n"
	for _, f := range b.frames {
		text += "  - {frame: " + f + ", drop: true, at: 0 s}\n"
	}
	return writeFile(t, filepath.Join(t.TempDir(), "locked.yaml"), text)
}

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// Polach's law, with his figures for wet rail, has its maximum at a small creep and less at rest
// and in a slide. The unit has to find the maximum, and gains less.
func TestWspBeatsLockedWheelsOnPolachsRail(t *testing.T) {
	t.Parallel()
	plain := "law: gyebroszki, mu0: 0.2, A: 0.4, v_star: 5 m/s,"
	polach := "law: polach, mu0: 0.3, A: 0.4, B: 0.2 s/m, k_A: 0.3, k_S: 0.1, C: 2e13 N/m3, a_ellipse: 6 mm, b_ellipse: 6 mm,"
	car, dir := lab.MustRun(t, "plants", "wsp-car"), t.TempDir()
	if !strings.Contains(car, plain) {
		t.Fatalf("no %q in\n%s", plain, car)
	}
	writeFile(t, filepath.Join(dir, "car.yaml"), strings.Replace(car, plain, polach, 1))
	writeFile(t, filepath.Join(dir, "wsp.dbc"), lab.MustRun(t, "plants", "wsp.dbc"))
	b := brakeBench{frames: []string{"DumpValves"}, pressure: "p_demand[bar]", stop: "24 s"}
	b.bench = writeFile(t, filepath.Join(dir, "bench.yaml"), strings.Replace(lab.MustRun(t, "plants", "wsp-bench"), "plant: wsp-car", "plant: car.yaml", 1))
	scenario := "scenario: polach\nfor: 17 s\n"
	braked, pedal := b.stopsAt(t, writeFile(t, filepath.Join(dir, "braked.yaml"), scenario))
	locked, _ := b.stopsAt(t, b.withoutUnit(t, scenario))
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", braked-pedal, locked-pedal)
	if !(braked-pedal < 0.8*(locked-pedal)) {
		t.Errorf("with the unit the car stops after %.2f m, on locked wheels after %.2f", braked-pedal, locked-pedal)
	}
}

// stopsAt runs a scenario, which must pass. It returns the position of the vehicle at the end and
// at the first brake request, m.
func (b brakeBench) stopsAt(t *testing.T, scenario string) (end, pedal float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.csv")
	lab.MustRun(t, "sim", b.bench, "-scenario", scenario, "-out", file)
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int {
		i := slices.Index(rows[0], name)
		if i < 0 {
			t.Fatalf("no column %s", name)
		}
		return i
	}
	s, p := column("s[m]"), column(b.pressure)
	value := func(row []string, i int) float64 {
		v, err := strconv.ParseFloat(row[i], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	down := slices.IndexFunc(rows[1:], func(row []string) bool { return value(row, p) > 0 })
	if down < 0 {
		t.Fatalf("%s is never above 0", b.pressure)
	}
	return value(rows[len(rows)-1], s), value(rows[1+down], s)
}
