package hiltest

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// brakeBench is a bench with a unit that keeps wheels from locking.
type brakeBench struct {
	unit   string   // the bench is unit-bench
	frames []string // commands of the valves
	asks   string   // column of the pressure that the brake asks for
	stand  string   // by when the vehicle stands on locked wheels
	gain   float64  // largest way with the unit over that on locked wheels
}

// With its unit the car stops before it does on locked wheels, on dry and wet roads and on
// ice, and no wheel locks; what the scenarios say of locked wheels is what the same car
// does when nobody hears the unit.
func TestAbsBeatsLockedWheels(t *testing.T) {
	b := brakeBench{unit: "abs", frames: []string{"AbsFront", "AbsRear"}, asks: "p_pedal[Pa]", stand: "36 s", gain: 0.96}
	for _, name := range []string{"abs-dry", "abs-wet", "abs-ice"} {
		t.Run(name, func(t *testing.T) { b.beatsLockedWheels(t, name) })
	}
}

// The same of the rail car. The law of adhesion has its maximum where a wheel does not slip
// and falls to 0.4 of it: that is why so much is gained.
func TestWspBeatsLockedWheels(t *testing.T) {
	b := brakeBench{unit: "wsp", frames: []string{"DumpValves"}, asks: "p_demand[Pa]", stand: "80 s", gain: 0.6}
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
	text := ran(t, "plants", name)
	said := lockedClaim.FindStringSubmatch(text)
	before, _, cut := strings.Cut(text, "\nexpect:\n")
	if said == nil || !cut {
		t.Fatalf("no claim in\n%s", text)
	}
	claimed, err := strconv.ParseFloat(said[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	silent := "\nfaults:\n"
	for _, f := range b.frames {
		silent += "  - {frame: " + f + ", drop: true, at: 0 s}\n"
	}
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	if err := os.WriteFile(locked, []byte(lasts.ReplaceAllString(before, "\nfor: "+b.stand)+silent), 0o644); err != nil {
		t.Fatal(err)
	}
	slides, pedal := b.stopsAt(t, locked)
	holds, _ := b.stopsAt(t, name)
	t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", holds-pedal, slides-pedal)
	if !(slides > claimed-0.1 && slides < claimed+0.1) {
		t.Errorf("on locked wheels it stops at %.2f m, and not at %.1f", slides, claimed)
	}
	if !(holds-pedal < b.gain*(slides-pedal)) {
		t.Errorf("with the unit it stops after %.2f m, on locked wheels after %.2f", holds-pedal, slides-pedal)
	}
}

// stopsAt is where the car stands at the end of a scenario, which must hold, and where it
// was when the pedal went down, m.
func (b brakeBench) stopsAt(t *testing.T, scenario string) (end, pedal float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.csv")
	ran(t, "sim", b.unit+"-bench", "-scenario", scenario, "-out", file)
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
