package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"
)

func itoa(n int) string { return strconv.Itoa(n) }

// columns reads a CSV file that the command wrote: its header and its numbers.
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
	for _, name := range []string{"time[s]", "w1[rad/s]", "w4[rad/s]", "tau_output[N.m]", "clutch1.mode[1]", "clutch8.w_rel[rad/s]",
		"clutch8.tau[N.m]", "eta[1]", "lag[s]", "events[1]", "transitions[1]", "clutch1.pressure[Pa]"} {
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
	if w := rows[0][at("w1[rad/s]")]; w != 100 {
		t.Errorf("w1 starts at %v rad/s, want 100", w)
	}
	last := rows[700]
	if ratio := -last[at("w1[rad/s]")] / last[at("w4[rad/s]")]; !scalar.EqualWithinRel(ratio, 12, 1e-9) {
		t.Errorf("the last ratio is %v, want 12: gear of clutches 2, 4, 7", ratio)
	}
	if p := rows[0][at("clutch1.pressure[Pa]")]; p != 18e5 {
		t.Errorf("clutch1.pressure starts at %v Pa, want 18 bar from the plant's table", p)
	}
}

func TestSimTakesInputsFromAFileAndListsTransitions(t *testing.T) {
	dir := t.TempDir()
	in, events := filepath.Join(dir, "in.csv"), filepath.Join(dir, "e.csv")
	// Clutches 1, 3, 6 hold; at 0.1 s clutch 1 opens.
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

func TestSimIsTheSameEveryTime(t *testing.T) {
	first, _, _ := lockstep(t, "sim", "powershift", "-out", "-")
	if again, _, _ := lockstep(t, "sim", "powershift", "-out", "-"); first != again || len(first) < 1000 {
		t.Error("two runs of the same simulation differ")
	}
}

func TestSimNamesAWrongInputWithItsPlace(t *testing.T) {
	in := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(in, []byte("time[s],clutch1.pressure[bar]\n0,18\n0.1,41\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, errors, code := lockstep(t, "sim", "powershift", "-in", in)
	want := "lockstep: " + in + ":3:5: bench: column clutch1.pressure: 41 bar is outside the range of the input, 0 to 40 bar\n"
	if code != 2 || errors != want {
		t.Errorf("code %d\ngot  %swant %s", code, errors, want)
	}
}

func TestWrongPlantIsNamedWithItsPlace(t *testing.T) {
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
