package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

func itoa(n int) string { return strconv.Itoa(n) }

// columns parses the CSV text of the command into header and numbers.
func columns(t *testing.T, text string) (head []string, rows [][]float64) {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range all[1:] {
		row := make([]float64, len(fields))
		for i, f := range fields {
			if row[i], err = strconv.ParseFloat(f, 64); err != nil {
				t.Fatal(err)
			}
		}
		rows = append(rows, row)
	}
	return all[0], rows
}

func TestSimWritesARowPerGridPointWithEveryPort(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "o.csv")
	if _, errors, code := lockstep(t, "sim", "powershift", "-out", file); code != 0 || errors != "" {
		t.Fatalf("code %d, %s", code, errors)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rows := columns(t, string(text))
	for _, name := range []string{"time[s]", "w1[rpm]", "w4[rpm]", "tau_output[N.m]", "clutch1.mode[1]", "clutch8.w_rel[rad/s]",
		"clutch8.tau[N.m]", "eta[1]", "lag[s]", "events[1]", "transitions[1]", "clutch1.pressure[bar]"} {
		if !slices.Contains(head, name) {
			t.Errorf("no column %s", name)
		}
	}
	if len(rows) != 701 || head[0] != "time[s]" { // the plant's tables end at 3.5 s
		t.Fatalf("%d rows, first column %s; want 701 rows of 5 ms", len(rows), head[0])
	}
	for k, row := range rows {
		if row[0] != float64(int64(k)*5_000_000)/1e9 {
			t.Fatalf("row %d is at %v s", k, row[0])
		}
	}
	at := func(name string) int { return slices.Index(head, name) }
	if w := rows[0][at("w1[rpm]")]; !scalar.EqualWithinRel(w, 3000/math.Pi, 1e-12) {
		t.Errorf("w1 starts at %v rpm, want 3000/pi", w)
	}
	last := rows[700]
	if ratio := -last[at("w1[rpm]")] / last[at("w4[rpm]")]; !scalar.EqualWithinRel(ratio, 12, 1e-9) {
		t.Errorf("the last ratio is %v, want 12: gear of clutches 2, 4, 7", ratio)
	}
	if p := rows[0][at("clutch1.pressure[bar]")]; p != 18 {
		t.Errorf("clutch1.pressure starts at %v bar, want 18 from the plant's table", p)
	}
}

// The table of sim is in the declared units, with -si in SI, and each header names its unit.
func TestSimWritesDeclaredOrSIUnits(t *testing.T) {
	declared, _, _ := lockstep(t, "sim", "powershift", "-for", "0.1s", "-out", "-")
	si, _, _ := lockstep(t, "sim", "powershift", "-for", "0.1s", "-out", "-", "-si")
	head, rows := columns(t, declared)
	headSI, rowsSI := columns(t, si)
	for name, factor := range map[string][2]string{"w1": {"rpm", "rad/s"}, "clutch1.pressure": {"bar", "Pa"}} {
		i, j := slices.Index(head, name+"["+factor[0]+"]"), slices.Index(headSI, name+"["+factor[1]+"]")
		if i < 0 || i != j {
			t.Fatalf("%s: columns %d of %v, %d of %v", name, i, head, j, headSI)
		}
		scale := map[string]float64{"rpm": math.Pi / 30, "bar": 1e5}[factor[0]]
		for k := range rows {
			if !scalar.EqualWithinRel(rows[k][i]*scale, rowsSI[k][j], 1e-12) {
				t.Errorf("row %d: %s is %v %s and %v %s", k, name, rows[k][i], factor[0], rowsSI[k][j], factor[1])
			}
		}
	}
}

func TestSimTakesInputsFromAFileAndListsTransitions(t *testing.T) {
	dir := t.TempDir()
	in, events := filepath.Join(dir, "in.csv"), filepath.Join(dir, "e.csv")
	// Clutches 1, 3, 6 are locked; at 0.1 s clutch 1 opens.
	text := "time[s],clutch1.pressure[bar],clutch8.pressure[bar]\n0,18,0\n0.1,0,0\n"
	if err := os.WriteFile(in, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errors, code := lockstep(t, "sim", "-in", in, "powershift", "-for", "0.2s", "-out", "-", "-events", events, "-every", "4")
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s", code, errors)
	}
	head, rows := columns(t, out)
	if len(rows) != 11 {
		t.Fatalf("%d rows, want 11: every fourth of 40 and the first", len(rows))
	}
	mode := slices.Index(head, "clutch1.mode[1]")
	if rows[5][mode] != 0 || rows[6][mode] == 0 {
		t.Errorf("clutch1.mode is %v at %v s and %v at %v s; want stuck (0), then open", rows[5][mode], rows[5][0], rows[6][mode], rows[6][0])
	}
	list, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) < 2 || lines[0] != "time[s],element,from,to" || !strings.HasPrefix(lines[1], "0.1,clutch1,stuck,") {
		t.Errorf("events:\n%s", list)
	}
}

func TestSimIsRepeatable(t *testing.T) {
	first, _, _ := lockstep(t, "sim", "powershift", "-out", "-")
	if again, _, _ := lockstep(t, "sim", "powershift", "-out", "-"); first != again || len(first) < 1000 {
		t.Error("two runs of the same simulation differ")
	}
}

func TestSimNamesThePositionOfAWrongInput(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(in, []byte("time[s],clutch1.pressure[bar]\n0,18\n0.1,41\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errors, code := lockstep(t, "sim", "powershift", "-in", in)
	if code != 2 || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: "+in+":3:5: ", "clutch1.pressure", "41 bar", "0 to 40 bar") {
		t.Errorf("code %d, %s", code, errors)
	}
}

func TestSimNamesThePositionOfAWrongPlantLine(t *testing.T) {
	text, _, _ := lockstep(t, "plants", "powershift")
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(text, "J: 0.3 kg.m2", "J: -0.3 kg.m2", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errors, code := lockstep(t, "sim", file)
	if code != 2 || !strings.HasPrefix(errors, "lockstep: "+file+":") || !strings.Contains(errors, "-0.3 kg") || !strings.Contains(errors, "shaft2") {
		t.Errorf("code %d, %s; want the file, the line, the element and the value", code, errors)
	}
}

func TestScenariosRunWithTheirPlant(t *testing.T) {
	t.Parallel()
	gears := map[string]float64{"downshifts": 2.86, "reverse": 2.86, "engine-braking": 2.86, "start-stop": 2.86} // ratio of gear 1, in which each ends
	out, _, _ := lockstep(t, "plants")
	for name, ratio := range gears {
		name = "automatic4-" + name
		if !strings.Contains(out, name+" ") {
			t.Errorf("plants does not list %s", name)
		}
		text, errors, code := lockstep(t, "sim", "automatic4", "-in", name, "-out", "-", "-every", "10")
		if code != 0 || errors != "" {
			t.Fatalf("%s: code %d, %s", name, code, errors)
		}
		head, rows := columns(t, text)
		last := rows[len(rows)-1]
		at := func(name string) float64 { return last[slices.Index(head, name)] }
		if got := at("w_turbine[rad/s]") / at("w_out[rad/s]"); !scalar.EqualWithinRel(got, ratio, 1e-6) {
			t.Errorf("%s ends with ratio %g, want %g", name, got, ratio)
		}
		if n := at("transitions[1]"); !(n > 5 && n < 40) || at("fault[1]") != 0 {
			t.Errorf("%s: %g transitions, fault %g", name, n, at("fault[1]"))
		}
		if want := at("time[s]"); !(want >= 15) || rows[0][0] != 0 {
			t.Errorf("%s ends at %g s", name, want)
		}
	}
}

func TestSimRefusesToOverwriteItsInputFiles(t *testing.T) {
	dir := t.TempDir()
	plant, in, link := filepath.Join(dir, "p.yaml"), filepath.Join(dir, "in.csv"), filepath.Join(dir, "link")
	text, _, _ := lockstep(t, "plants", "powershift")
	input := "time[s],clutch1.pressure[bar]\n0,18\n"
	for file, text := range map[string]string{plant: text, in: input} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(in, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"-out " + plant, plant + " is a plant that this command reads"},
		{"-in " + in + " -events " + in, in + " is a file of inputs that this command reads"},
		{"-in " + in + " -report " + link, "report: " + link + " is a file of inputs that this command reads"},
		{"-out " + dir + "/a -events " + dir + "/./a", "-out and -events"},
	} {
		_, errors, code := lockstep(t, append([]string{"sim", plant}, strings.Fields(c.args)...)...)
		if code != 2 || !strings.HasPrefix(errors, "lockstep: sim: "+c.want) || strings.Count(errors, "\n") != 1 {
			t.Errorf("sim %s: code %d, %s", c.args, code, errors)
		}
	}
	if got, _ := os.ReadFile(in); string(got) != input {
		t.Errorf("the inputs were overwritten: %q", got)
	}
	if _, err := os.Stat(dir + "/a"); err == nil {
		t.Error("a file was made although the command was refused")
	}
}

func TestSimOpensItsFilesBeforeTheFirstStep(t *testing.T) {
	_, errors, code := lockstep(t, "sim", "powershift", "-for", "100000000s", "-report", "/nosuch/r.json") // the run would take hours
	if code != 2 || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: sim: ", "/nosuch/r.json") {
		t.Errorf("code %d, %s", code, errors)
	}
}

func TestInterruptedSimLeavesCompleteFiles(t *testing.T) {
	dir := t.TempDir()
	out, report := filepath.Join(dir, "o.csv"), filepath.Join(dir, "r.json")
	s := begin(t, nil, "sim", "powershift", "-for", "100000s", "-step", "1ms", "-every", "100", "-out", out, "-report", report)
	await(t, "rows have reached the file", func() bool {
		info, err := os.Stat(out + ".part") // renamed at the end
		return err == nil && info.Size() > 0
	})
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := s.end(); code != 0 || s.errors.String() != "" || !has(s.out.String(), "powershift: ", "interrupt") {
		t.Fatalf("code %d, %s\n%s", code, s.errors.String(), s.out.String())
	}
	r := readReport(t, report)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	_, rows := columns(t, string(text))
	if last := rows[len(rows)-1][0]; !(last > 0 && last <= r.SimTime && last > r.SimTime-0.1001) || !r.Clean || !strings.HasSuffix(string(text), "\n") {
		t.Errorf("the last row is at %g s, the report ends at %g s, clean %v", last, r.SimTime, r.Clean)
	}
}

// The count includes the rows written between the ticks.
func TestSimDoesNotAllocate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	if _, errors, code := lockstep(t, "sim", "automatic4", "-for", "2s", "-out", "/dev/null", "-events", "/dev/null", "-report", file); code != 0 {
		t.Fatal(errors)
	}
	if r := readReport(t, file); r.Usage == nil || r.Allocs != 0 || r.GCCycles != 0 {
		t.Errorf("usage %+v, want no allocation", r.Usage)
	}
}

func TestSchemeAndFormChangeTheResult(t *testing.T) {
	dir := t.TempDir()
	lag := func(args ...string) float64 {
		file := filepath.Join(dir, "r.json")
		if _, errors, code := lockstep(t, append([]string{"sim", "powershift", "-step", "1ms", "-report", file}, args...)...); code != 0 {
			t.Fatalf("%v: code %d, %s", args, code, errors)
		}
		return readReport(t, file).LagMax
	}
	if l := lag(); l != 0 {
		t.Errorf("the lag is %g s; the default finishes every step", l)
	}
	if l := lag("-scheme", "papers"); !(l > 0 && l < 2e-3) {
		t.Errorf("the lag of the papers' scheme is %g s", l)
	}
	if l := lag("-scheme", "complete", "-form", "held"); l != 0 {
		t.Errorf("the lag is %g s in the held form", l)
	}
}

// An input without a driver has its own waveform, of any kind, in its column.
func TestInputsWithoutADriverHaveTheirWaveformInTheirColumn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.yaml")
	text := `plant: p
inputs:
  tau: {unit: N.m, delay: 10 ms, default: {sum: [1, {sine: {amplitude: 2, f: 1 Hz, phase: pi/2*1 rad}}, {step: {height: 3, startTime: 0.02 s}}]}}
  held: {unit: N.m, default: {table: [[0, 1], [0.015, 5], [0.1, 5]], held: true}}
elements:
  body: {type: inertia, J: 1}
  push: {type: torque, flange: body, tau: tau}
  pull: {type: torque, flange: body, tau: held}
outputs: {w: {speed: body}}
`
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errors, code := lockstep(t, "sim", file, "-step", "5ms", "-for", "0.1s", "-out", "-")
	if code != 0 {
		t.Fatal(errors)
	}
	head, rows := columns(t, out)
	for k, row := range rows {
		at := float64(k) * 5e-3
		want := 1 + 2*math.Cos(2*math.Pi*at)
		if k >= 4 {
			want += 3
		}
		held := 1.0
		if k >= 3 {
			held = 5
		}
		if got := row[slices.Index(head, "tau[N.m]")]; !scalar.EqualWithinAbs(got, want, 1e-12) {
			t.Errorf("tau is %g at %g s, want %g", got, at, want)
		}
		if got := row[slices.Index(head, "held[N.m]")]; got != held {
			t.Errorf("held is %g at %g s, want %g", got, at, held)
		}
	}
}
