//go:build long

package accuracy

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/virtual"
)

var writeShifts = flag.Bool("hp8-shifts", false, "write the table of the shifts of hp8-bench into rt/bench/BENCH.md")

// hp8Closed holds the closed elements of each gear of hp8.
var hp8Closed = [9]string{"", "ABC", "ABE", "BCE", "BDE", "BCD", "CDE", "ACD", "ADE"}

var hp8Ratio = [9]float64{0, 33. / 7, 22. / 7, 2.106383, 5. / 3, 1.284694, 1, 0.839161, 2. / 3}

// swapped returns the element that only the first gear has closed; "" unless it is the only one.
func swapped(a, b int) string {
	var only string
	for _, e := range hp8Closed[a] {
		if !strings.ContainsRune(hp8Closed[b], e) {
			only += string(e)
		}
	}
	if len(only) != 1 {
		return ""
	}
	return only
}

// shift is what a shift of hp8-bench costs.
type shift struct {
	took    float64            // from the wish to the new gear, s
	gap     float64            // time with less than half of the smaller torque of the half-shafts before and after, s
	least   float64            // least torque of the half-shafts, N.m
	jerk    float64            // largest change of the acceleration in 20 ms, m/s3
	work    map[string]float64 // loss of an element, J
	reached bool
}

// shiftOf runs hp8-bench at about 50 km/h through one shift.
func shiftOf(t *testing.T, from, to int, throttle float64) shift {
	t.Helper()
	dir := t.TempDir()
	kmh := 50.0
	switch {
	case throttle == 0:
		kmh = 55
	case from == 1 || to == 1:
		kmh = 43
	}
	text := fmt.Sprintf(`scenario: shift
for: 5 s
start: {T_oil: 60 degC, gear: %d, v: %g km/h, w_engine: %g rad/s}
stimuli:
  lever: 3
  gear_wish: {table: [[0, %[1]d], [1, %[1]d], [1, %[4]d]], units: [s, "1"]}
  throttle: %[5]g %%
  brake.pressure: 0 bar
`, from, kmh, kmh/3.6/0.33*2.81*hp8Ratio[from], to, throttle)
	scenario, out := filepath.Join(dir, "shift.yaml"), filepath.Join(dir, "out.csv")
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (virtual.Simulation{Plant: "hp8-bench", Scenario: scenario, Every: 1, SI: true, Out: out}).Run(); err != nil {
		t.Fatal(err)
	}
	rows := readRows(t, out)
	const h, begin, ahead = 0.005, 200, 4 // step, row of the wish, rows of 20 ms
	s := shift{work: map[string]float64{}, least: math.Inf(1)}
	end, holds := begin, 0
	for holds < 20 && end < len(rows)-1 { // the elements of the new gear hold for 0.1 s
		end++
		holds++
		for _, e := range hp8Closed[to] {
			if rows[end][string(e)+".mode"] != 0 {
				holds = 0
			}
		}
	}
	s.reached = holds == 20
	end -= holds - 1
	s.took = float64(end-begin) * h
	mean := func(first, last int) (sum float64) {
		for _, r := range rows[first:last] {
			sum += r["T_shafts"] / float64(last-first)
		}
		return sum
	}
	after := min(end+100, len(rows)-1)
	half := min(mean(begin-20, begin), mean(after-20, after)) / 2
	for k := begin; k < after; k++ {
		r := rows[k]
		s.least = min(s.least, r["T_shafts"])
		if half > 0 && r["T_shafts"] < half {
			s.gap += h
		}
		if k+ahead < len(rows) {
			s.jerk = max(s.jerk, math.Abs(rows[k+ahead]["a"]-r["a"])/(ahead*h))
		}
		for _, e := range []string{"A", "B", "C", "D", "E", "TCC"} {
			s.work[e] += math.Abs(r[e+".tau"]*r[e+".w_rel"]) * h
		}
	}
	return s
}

// Every shift in which one element opens and one closes, under load and coasting: no shift tears the torque for
// long, jerks hard, or heats an element beyond the kinetic energy that it must take.
func TestHp8ShiftsBetweenAllGears(t *testing.T) {
	var table strings.Builder
	table.WriteString("| shift | opens, closes | time | gap | work off, on | jerk | coasting: time | work off, on | jerk |\n|---|---|---|---|---|---|---|---|---|\n")
	shifts := 0
	for from := 1; from <= 8; from++ {
		for to := 1; to <= 8; to++ {
			off, on := swapped(from, to), swapped(to, from)
			if from == to || off == "" {
				continue
			}
			shifts++
			load, coast := shiftOf(t, from, to, 30), shiftOf(t, from, to, 0)
			fmt.Fprintf(&table, "| %d-%d | %s, %s | %.2f s | %.2f s | %.2f, %.2f kJ | %.0f m/s3 | %.2f s | %.2f, %.2f kJ | %.0f m/s3 |\n",
				from, to, off, on, load.took, load.gap, load.work[off]/1e3, load.work[on]/1e3, load.jerk, coast.took, coast.work[off]/1e3, coast.work[on]/1e3, coast.jerk)
			for name, s := range map[string]shift{"under load": load, "coasting": coast} {
				change := 2 * math.Abs(hp8Ratio[to]-hp8Ratio[from])
				for e, work := range s.work {
					if e != off && e != on && !(work < 100) {
						t.Errorf("%d-%d %s: element %s takes %g J; the guide says that only the two that open and close take work", from, to, name, e, work)
					}
				}
				if !s.reached || !(s.took < 2) || !(s.gap < 0.45+0.2*change) || !(s.jerk < 100) || !(s.work[on] < 60e3) {
					t.Errorf("%d-%d %s: %+v", from, to, name, s)
				}
			}
		}
	}
	if shifts != 36 {
		t.Errorf("%d shifts with one element that opens and one that closes, want 36", shifts)
	}
	t.Logf("\n%s", &table)
	if *writeShifts {
		writeTable(t, "shifts of hp8", table.String())
	}
}

// writeTable writes a table into the bench guide, after the comment with its name.
func writeTable(t *testing.T, name, table string) {
	t.Helper()
	const guide, end = "../../rt/bench/BENCH.md", "<!-- end -->\n"
	begin := "<!-- " + name + " -->\n"
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("the guide has no place for the %s", name)
	}
	if err := os.WriteFile(guide, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
