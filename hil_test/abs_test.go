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

// With its unit the car stops before it does on locked wheels, on dry and wet roads and on
// ice, and no wheel locks; what the scenarios say of locked wheels is what the same car
// does when nobody hears the unit.
func TestAbsBeatsLockedWheels(t *testing.T) {
	silent := "\nfaults:\n  - {frame: AbsFront, drop: true, at: 0 s}\n  - {frame: AbsRear, drop: true, at: 0 s}\n"
	claim := regexp.MustCompile(`value: s, below: ([0-9.]+) m}`)
	for _, name := range []string{"abs-dry", "abs-wet", "abs-ice"} {
		t.Run(name, func(t *testing.T) {
			text := ran(t, "plants", name)
			said := claim.FindStringSubmatch(text)
			before, _, cut := strings.Cut(text, "\nexpect:\n")
			if said == nil || !cut {
				t.Fatalf("no claim in\n%s", text)
			}
			claimed, err := strconv.ParseFloat(said[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			locked := filepath.Join(t.TempDir(), "locked.yaml")
			if err := os.WriteFile(locked, []byte(before+silent), 0o644); err != nil {
				t.Fatal(err)
			}
			slides, pedal := stopsAt(t, locked)
			holds, _ := stopsAt(t, name)
			t.Logf("from the pedal on: %.1f m with the unit, %.1f m on locked wheels", holds-pedal, slides-pedal)
			if !(slides > claimed-0.1 && slides < claimed+0.1) {
				t.Errorf("on locked wheels it stops at %.2f m, and not at %.1f", slides, claimed)
			}
			if !(holds-pedal < 0.96*(slides-pedal)) {
				t.Errorf("with the unit it stops after %.2f m, on locked wheels after %.2f", holds-pedal, slides-pedal)
			}
		})
	}
}

// stopsAt is where the car stands at the end of a scenario, which must hold, and where it
// was when the pedal went down, m.
func stopsAt(t *testing.T, scenario string) (end, pedal float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.csv")
	ran(t, "sim", "abs-bench", "-scenario", scenario, "-out", file)
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
	s, p := column("s[m]"), column("p_pedal[Pa]")
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
