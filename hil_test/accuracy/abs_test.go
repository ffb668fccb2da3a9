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

// brakeBench is a bench with a unit that keeps wheels from locking.
type brakeBench struct {
	bench  string   // its name or file
	frames []string // commands of the valves
	asks   string   // column of the pressure that the brake asks for
	stand  string   // by when the vehicle stands on locked wheels
	gain   float64  // largest way with the unit over that on locked wheels
}

// With its unit the car stops before it does on locked wheels, on dry and wet roads and on
// ice, and no wheel locks; what the scenarios say of locked wheels is what the same car
// does when nobody hears the unit.
func TestAbsBeatsLockedWheels(t *testing.T) {
	t.Parallel()
	b := brakeBench{bench: "abs-bench", frames: []string{"AbsFront", "AbsRear"}, asks: "p_pedal[Pa]", stand: "36 s", gain: 0.96}
	for _, name := range []string{"abs-dry", "abs-wet", "abs-ice"} {
		t.Run(name, func(t *testing.T) { b.beatsLockedWheels(t, name) })
	}
}

// A unit that lost what the driver does, its edges, or 20 ms of commands and speeds time and
// again still beats locked wheels: it has the speed of the car from whatever wheels it hears.
func TestAbsBeatsLockedWheelsWithLittleToGoBy(t *testing.T) {
	t.Parallel()
	before, _, _ := strings.Cut(lab.MustRun(t, "plants", "abs-dry"), "\nexpect:\n")
	lost := ""
	for k := range 6 {
		for _, f := range []string{"AbsFront", "AbsRear", "WheelSpeeds", "PulsesFront", "PulsesRear"} {
			lost += fmt.Sprintf("  - {name: %s %d, frame: %s, drop: true, at: %g s, for: 4 frames}\n", f, k, f, 1.2+0.4*float64(k))
		}
	}
	b := brakeBench{bench: "abs-bench", asks: "p_pedal[Pa]"}
	for name, faults := range map[string]string{
		"no pedal": "  - {frame: Chassis, drop: true, at: 2 s}\n",
		"no edges": "  - {frame: PulsesFront, drop: true, at: 2 s}\n  - {frame: PulsesRear, drop: true, at: 2 s}\n",
		"gaps":     lost,
	} {
		end, _ := b.stopsAt(t, written(t, filepath.Join(t.TempDir(), "little.yaml"), before+"\nfaults:\n"+faults))
		if t.Logf("%s: at rest at %.1f m", name, end); !(end < 70) {
			t.Errorf("%s: at rest at %g m, on locked wheels at 71.1", name, end)
		}
	}
}

// On ice under the left wheels alone the unit takes longer, so that the car can be steered:
// no more than this, and no wheel locks.
func TestAbsOnASplitRoadTakesLittleLongerThanLockedWheels(t *testing.T) {
	t.Parallel()
	b := brakeBench{bench: "abs-bench", frames: []string{"AbsFront", "AbsRear"}, asks: "p_pedal[Pa]", stand: "12 s"}
	before, _, cut := strings.Cut(lab.MustRun(t, "plants", "abs-split"), "\nfaults:\n")
	if !cut {
		t.Fatal("no faults in abs-split")
	}
	locks := "\nexpect:\n"
	for _, w := range []string{"fl", "fr", "rl", "rr"} {
		locks += "  - {value: " + w + ".disc.mode, above: 0.5, from: 1 s, to: 6 s}\n"
	}
	slides, pedal := b.stopsAt(t, b.silent(t, before))
	holds, _ := b.stopsAt(t, written(t, filepath.Join(t.TempDir(), "split.yaml"), before+locks))
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", holds-pedal, slides-pedal)
	if !(holds-pedal < 1.12*(slides-pedal)) {
		t.Errorf("with the unit it stops after %.2f m, on locked wheels after %.2f", holds-pedal, slides-pedal)
	}
}

// The same of the rail car. The law of adhesion has its maximum where a wheel does not slip
// and falls to 0.4 of it: that is why so much is gained.
func TestWspBeatsLockedWheels(t *testing.T) {
	t.Parallel()
	b := brakeBench{bench: "wsp-bench", frames: []string{"DumpValves"}, asks: "p_demand[Pa]", stand: "80 s", gain: 0.6}
	for _, name := range []string{"wsp-dry", "wsp-wet"} {
		t.Run(name, func(t *testing.T) { b.beatsLockedWheels(t, name) })
	}
}

var (
	lockedClaim = regexp.MustCompile(`value: s, below: ([0-9.]+) m}`)
	lasts       = regexp.MustCompile(`\nfor: .*`)
)

// beatsLockedWheels runs a scenario, and again as long as it takes without the unit.
func (b brakeBench) beatsLockedWheels(t *testing.T, name string) {
	text := lab.MustRun(t, "plants", name)
	said := lockedClaim.FindStringSubmatch(text)
	before, _, cut := strings.Cut(text, "\nexpect:\n")
	if said == nil || !cut {
		t.Fatalf("no claim in\n%s", text)
	}
	claimed, err := strconv.ParseFloat(said[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	slides, pedal := b.stopsAt(t, b.silent(t, before))
	holds, _ := b.stopsAt(t, name)
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", holds-pedal, slides-pedal)
	if !(slides > claimed-0.1 && slides < claimed+0.1) {
		t.Errorf("on locked wheels it stops at %.2f m, and not at %.1f", slides, claimed)
	}
	if !(holds-pedal < b.gain*(slides-pedal)) {
		t.Errorf("with the unit it stops after %.2f m, on locked wheels after %.2f", holds-pedal, slides-pedal)
	}
}

// silent is a scenario in which nobody hears the unit.
func (b brakeBench) silent(t *testing.T, text string) (file string) {
	t.Helper()
	text = lasts.ReplaceAllString(text, "\nfor: "+b.stand) + "\nfaults:\n"
	for _, f := range b.frames {
		text += "  - {frame: " + f + ", drop: true, at: 0 s}\n"
	}
	return written(t, filepath.Join(t.TempDir(), "locked.yaml"), text)
}

func written(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// On a rail that holds most while a wheel creeps, and less at rest and in a slide, the unit
// has more to find out, and there is less to gain: Polach's law with his figures for wet rail.
func TestWspBeatsLockedWheelsOnPolachsRail(t *testing.T) {
	t.Parallel()
	plain := "law: gyebroszki, mu0: 0.2, A: 0.4, v_star: 5 m/s,"
	polach := "law: polach, mu0: 0.3, A: 0.4, B: 0.2 s/m, k_A: 0.3, k_S: 0.1, C: 2e13 N/m3, a_ellipse: 6 mm, b_ellipse: 6 mm,"
	car, dir := lab.MustRun(t, "plants", "wsp-car"), t.TempDir()
	if !strings.Contains(car, plain) {
		t.Fatalf("no %q in\n%s", plain, car)
	}
	written(t, filepath.Join(dir, "car.yaml"), strings.Replace(car, plain, polach, 1))
	written(t, filepath.Join(dir, "wsp.dbc"), lab.MustRun(t, "plants", "wsp.dbc"))
	b := brakeBench{frames: []string{"DumpValves"}, asks: "p_demand[Pa]", stand: "24 s"}
	b.bench = written(t, filepath.Join(dir, "bench.yaml"), strings.Replace(lab.MustRun(t, "plants", "wsp-bench"), "plant: wsp-car", "plant: car.yaml", 1))
	scenario := "scenario: polach\nfor: 17 s\n"
	holds, pedal := b.stopsAt(t, written(t, filepath.Join(dir, "holds.yaml"), scenario))
	slides, _ := b.stopsAt(t, b.silent(t, scenario))
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", holds-pedal, slides-pedal)
	if !(holds-pedal < 0.8*(slides-pedal)) {
		t.Errorf("with the unit it stops after %.2f m, on locked wheels after %.2f", holds-pedal, slides-pedal)
	}
}

// stopsAt is where the car stands at the end of a scenario, which must hold, and where it
// was when the pedal went down, m.
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
	s, p := column("s[m]"), column(b.asks)
	value := func(row []string, i int) float64 {
		v, err := strconv.ParseFloat(row[i], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	down := slices.IndexFunc(rows[1:], func(row []string) bool { return value(row, p) > 0 })
	if down < 0 {
		t.Fatal("nobody brakes")
	}
	return value(rows[len(rows)-1], s), value(rows[1+down], s)
}
