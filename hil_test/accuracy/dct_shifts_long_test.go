//go:build long

package accuracy

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var writeDctShifts = flag.Bool("dct7-shifts", false, "write the table of the shifts of dct7-bench into rt/bench/BENCH.md")

// Every shift between two gears, under load and coasting: none heats clutches or cones much, jerks hard, or takes long.
// Under load every one drives the wheels throughout.
func TestDct7ShiftsBetweenAllGears(t *testing.T) {
	var table strings.Builder
	table.WriteString("| shift | time | least torque | gap | work of the clutches | cones | jerk | coasting: by | time | work of the clutches | cones | jerk |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for from := 1; from <= 7; from++ {
		for to := 1; to <= 7; to++ {
			if from == to {
				continue
			}
			// The engine has 500 rad/s in the lower gear at most, but more than the unit allows at least in the higher one.
			kmh := min(50, 500*3.6*0.31/dctRatio[min(from, to)])
			least := 90 * 3.6 * 0.31 / dctRatio[max(from, to)]
			load, coast := dctShiftOf(t, from, to, max(kmh, least), 50), dctShiftOf(t, from, to, max(kmh, least+1), 0)
			fmt.Fprintf(&table, "| %s | %.2f s | %.0f %% | %.2f s | %s | %.2f kJ | %.0f m/s3 | %s | %.2f s | %s | %.2f kJ | %.0f m/s3 |\n",
				load.path(), load.took, 100*load.least, load.gap, kilojoules(load.work), load.cones/1e3, load.jerk,
				coast.path(), coast.took, kilojoules(coast.work), coast.cones/1e3, coast.jerk)
			for name, s := range map[string]dctShift{"under load": load, "coasting": coast} {
				if !(s.took < 4) || !(s.jerk < 100) || !(s.total() < 40e3) || !(s.cones < 2e3) {
					t.Errorf("%d-%d %s: by %s in %g s, %g m/s3, %g and %g J", from, to, name, s.path(), s.took, s.jerk, s.work, s.cones)
				}
			}
			// The cone has the work that its slip takes from the input shaft, and the drag of that: ½·J·Δω² and more.
			half, wish := to%2, load.rows[dctBegin]
			shaft, inertia := [2]string{"w_in2", "w_in1"}[half], [2]float64{0.007, 0.006}[half]
			slip := dctRatio[to]*wish["w_out"] - wish[shaft]
			if energy := inertia * slip * slip / 2; to < from && (from-to)%2 != 0 && energy > 50 && !(load.cones > 0.95*energy && load.cones < 1.6*energy) {
				t.Errorf("%d-%d under load: the cone has %g J, the input shaft takes %g J", from, to, load.cones, energy)
			}
			if !(load.least > 0) {
				t.Errorf("%d-%d under load: the least torque of the shafts is %.2f of the usual one", from, to, load.least)
			}
		}
	}
	t.Logf("\n%s", &table)
	if *writeDctShifts {
		writeTable(t, "shifts of dct7", table.String())
	}
}

// kilojoules formats works, J.
func kilojoules(work []float64) string {
	var texts []string
	for _, w := range work {
		texts = append(texts, fmt.Sprintf("%.2f", max(0, w)/1e3)) // a clutch without slip gives -0
	}
	return strings.Join(texts, ", ") + " kJ"
}
