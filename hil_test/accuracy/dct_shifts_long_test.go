//go:build long

package accuracy

import (
	"flag"
	"fmt"
	"strings"
	"testing"
)

var writeDctShifts = flag.Bool("dct7-shifts", false, "write the table of the shifts of dct7-bench into rt/bench/BENCH.md")

// Every shift between two gears, of first gear those to the next two, under load and coasting: none heats the clutches much, jerks hard, or takes long.
// Under load those to the other half drive the wheels throughout.
func TestDct7ShiftsBetweenAllGears(t *testing.T) {
	var table strings.Builder
	table.WriteString("| shift | time | least torque | gap | work | jerk | coasting: by | time | work | jerk |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for from := 1; from <= 7; from++ {
		for to := 1; to <= 7; to++ {
			if from == to || min(from, to) == 1 && max(from, to) > 3 {
				continue
			}
			kmh := min(50, 500*3.6*0.31/dctRatio[min(from, to)]) // the engine has 500 rad/s at most
			load, coast := dctShiftOf(t, from, to, kmh, 50), dctShiftOf(t, from, to, kmh, 0)
			fmt.Fprintf(&table, "| %s | %.2f s | %.0f %% | %.2f s | %.2f kJ | %.0f m/s3 | %s | %.2f s | %.2f kJ | %.0f m/s3 |\n",
				load.by, load.took, 100*load.least, load.gap, load.work/1e3, load.jerk, coast.by, coast.took, coast.work/1e3, coast.jerk)
			for name, s := range map[string]dctShift{"under load": load, "coasting": coast} {
				if !(s.took < 4) || !(s.jerk < 100) || !(s.work < 40e3) {
					t.Errorf("%d-%d %s: by %s in %g s, %g m/s3, %g J", from, to, name, s.by, s.took, s.jerk, s.work)
				}
			}
			if (from-to)%2 != 0 && !(load.least > 0) {
				t.Errorf("%d-%d under load: the least torque of the shafts is %.2f of the usual one", from, to, load.least)
			}
		}
	}
	t.Logf("\n%s", &table)
	if *writeDctShifts {
		writeTable(t, "shifts of dct7", table.String())
	}
}
