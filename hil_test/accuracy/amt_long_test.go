//go:build long

package accuracy

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"lockstep/hil_test/lab"
)

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
	report := lab.MustRun(t, "sim", writeFile(t, filepath.Join(dir, "b.yaml"), bench), "-scenario", writeFile(t, filepath.Join(dir, "s.yaml"), scenario), "-out", out)
	repeats := regexp.MustCompile(`; 1 shifts, (\d+) repeated, gear (\d+)`).FindStringSubmatch(report)
	if repeats == nil || repeats[2] != fmt.Sprint(to) {
		t.Fatalf("%d -> %d: %s", from, to, report)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) (list []float64) {
		for i, title := range rows[0] {
			if strings.HasPrefix(title, name+"[") {
				for _, r := range rows[1:] {
					x, err := strconv.ParseFloat(r[i], 64)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, x)
				}
				return list
			}
		}
		t.Fatalf("no column %s", name)
		return nil
	}
	const begin = 400 // rows of 5 ms before the command
	mode, work, speed, engine := column("clutch.mode"), column("E_clutch"), column("v"), column("w_engine")
	first, last := 0, 0
	for i := begin; i < len(mode); i++ {
		if mode[i] != 0 {
			if first == 0 {
				first = i
			}
			last = i
		}
	}
	a, smooth := column("a"), []float64{}
	for i := begin; i < len(a)-12; i++ {
		sum := 0.
		for _, x := range a[i-9 : i+10] {
			sum += x
		}
		smooth = append(smooth, sum/19)
	}
	jerk := 0.
	for i := range smooth[4:] {
		jerk = max(jerk, math.Abs(smooth[i+4]-smooth[i])/0.02)
	}
	interrupted = float64(last-first+1) * 0.005
	return fmt.Sprintf("| %d-%d | %.1f | %.0f | %.2f | %.2f | %.1f | %s |", from, to, speed[begin]*3.6, engine[begin], interrupted,
		math.Abs(work[len(work)-1]-work[begin])/1000, jerk, repeats[1]), interrupted
}

// Every shift of amt12 succeeds on the bench, and the guide has its results.
func TestAmtShiftsAsTheGuideSays(t *testing.T) {
	guide, err := os.ReadFile("../../rt/bench/BENCH.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, s := range amtShifts() {
		row, interrupted := amtShift(t, s[0], s[1])
		rows = append(rows, row)
		if !(interrupted > 0.2 && interrupted < 3) {
			t.Errorf("%s: the torque is interrupted for %g s", row, interrupted)
		}
	}
	if table := strings.Join(rows, "\n"); !strings.Contains(string(guide), table) {
		t.Errorf("the guide has another table than\n%s", table)
	}
}
