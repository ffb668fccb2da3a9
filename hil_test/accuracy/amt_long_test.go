//go:build long

package accuracy

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

var writeAmtShifts = flag.Bool("amt-shifts", false, "write the table of the shifts of amt12-bench into rt/bench/BENCH.md")

// amtRatio returns the ratio of a forward gear of amt12 by its teeth.
func amtRatio(gear int) float64 {
	g := gear - 1
	return []float64{39. / 31, 36. / 37}[g%2] * []float64{64. / 22, 45. / 26, 37. / 36}[g%6/2] * []float64{128. / 28, 1}[g/6]
}

// amtShifts lists every shift by one gear, up and down, and skips.
func amtShifts() (list [][2]int) {
	for g := 1; g < 12; g++ {
		list = append(list, [2]int{g, g + 1})
	}
	list = append(list, [][2]int{{1, 3}, {2, 5}, {5, 8}, {7, 9}, {8, 11}, {10, 12}}...)
	for g := 12; g > 1; g-- {
		list = append(list, [2]int{g, g - 1})
	}
	return append(list, [][2]int{{12, 10}, {12, 9}, {9, 7}, {8, 5}, {5, 3}, {3, 1}}...)
}

// amtShift drives a shift of amt12-bench with the unit in manual mode, and returns its row of the guide.
func amtShift(t *testing.T, from, to int) (row string, interrupted float64) {
	t.Helper()
	rpm, throttle, steps := 1200., 0.1, to-from
	switch {
	case steps == 1:
		rpm, throttle = 1500, 0.5
	case steps == 2:
		rpm, throttle = 1750, 0.5
	case steps > 2:
		rpm, throttle = 1900, 0.5
	case steps == -2:
		rpm = 950
	case steps < -2:
		rpm = 750
	}
	if steps > 0 && from <= 4 {
		rpm, throttle = rpm-150, 0.25
	}
	v := rpm * math.Pi / 30 / amtRatio(from) / 2.71 * 0.5 * 3.6
	dir := t.TempDir()
	bench := strings.Replace(lab.MustRun(t, "plants", "amt12-bench"), "control_unit: amt12\n",
		fmt.Sprintf("control_unit: {name: amt12, manual: 1}\nstart: {v: %.3f km/h, gear: %d}\n", v, from), 1)
	scenario := fmt.Sprintf("scenario: shift\nabout: one shift\nfor: 6 s\nstimuli:\n  lever: {table: [[0 s, %d], [2 s, %d], [2 s, %d]]}\n  throttle: {table: [[0 s, 0], [1 s, 0], [1.2 s, %g]]}\n", from, from, to, throttle)
	out := filepath.Join(dir, "out.csv")
	report := lab.MustRun(t, "sim", writeFile(t, filepath.Join(dir, "b.yaml"), bench), "-scenario", writeFile(t, filepath.Join(dir, "s.yaml"), scenario), "-si", "-out", out)
	repeats := regexp.MustCompile(`; 1 shifts, (\d+) repeated, gear (\d+)`).FindStringSubmatch(report)
	if repeats == nil || repeats[1] != "0" || repeats[2] != fmt.Sprint(to) {
		t.Fatalf("%d -> %d: %s", from, to, report)
	}
	rows := readRows(t, out)
	const h, begin, half, ahead = 0.005, 400, 9, 4 // step, row of the command, half of the average of a, rows of 20 ms
	first, last, jerk := 0, 0, 0.0
	work := map[string]float64{} // J
	mean := func(i int) (sum float64) {
		for _, r := range rows[i-half : i+half+1] {
			sum += r["a"] / (2*half + 1)
		}
		return sum
	}
	for i := begin; i < len(rows); i++ {
		if rows[i]["clutch.mode"] != 0 {
			if first == 0 {
				first = i
			}
			last = i
		}
		if i+ahead+half < len(rows) {
			jerk = max(jerk, math.Abs(mean(i+ahead)-mean(i))/(ahead*h))
		}
		for _, e := range []string{"clutch", "counter_brake", "split_k1", "split_k2", "range_l", "range_h"} {
			work[e] += math.Abs(rows[i][e+".tau"]*rows[i][e+".w_rel"]) * h
		}
	}
	interrupted = float64(last-first+1) * h
	return fmt.Sprintf("| %d-%d | %.1f | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f | %s |\n", from, to, rows[begin]["v"]*3.6,
		rows[begin]["w_engine"]/(math.Pi/30), interrupted, work["clutch"]/1e3, work["counter_brake"]/1e3, (work["split_k1"]+work["split_k2"])/1e3,
		(work["range_l"]+work["range_h"])/1e3, jerk, repeats[1]), interrupted
}

// Every shift of amt12 succeeds on the bench at the first attempt, and the guide has its results.
func TestAmtShiftsAsTheGuideSays(t *testing.T) {
	var table strings.Builder
	table.WriteString("| shift | from, km/h | engine before, rpm | interrupted, s | clutch, kJ | brake, kJ | splitter, kJ | range, kJ | jerk, m/s3 | repeated |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range amtShifts() {
		row, interrupted := amtShift(t, s[0], s[1])
		table.WriteString(row)
		if !(interrupted > 0.2 && interrupted < 3) {
			t.Errorf("%s: the torque is interrupted for %g s", row, interrupted)
		}
	}
	t.Logf("\n%s", &table)
	if *writeAmtShifts {
		writeTable(t, "shifts of amt12", table.String())
	}
	guide, err := os.ReadFile("../../rt/bench/BENCH.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), table.String()) {
		t.Error("the guide has another table; -amt-shifts writes it")
	}
}
