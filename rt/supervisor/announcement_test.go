package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/model/plants"
	"lockstep/rt/bench"
)

// Before the run its announcement says which parameters cannot change in it, and why.
func TestAnnouncementNamesParametersThatCannotChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"wsp-bench", "wsp-car", "wsp.dbc"} {
		data, err := plants.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), "\nplant: wsp-car\nperiod", "\nplant: car.yaml\nperiod", 1)
		switch name {
		case "wsp-car":
			write("car.yaml", strings.Replace(text, "  mu_pad: 0.35\n", "  mu_pad: {value: 0.35, min: 0.2, max: 0.5, tune: true}\n", 1))
		default:
			write(strings.Replace(name, "wsp-bench", "bench.yaml", 1), text)
		}
	}
	announced := func(name, mark string) string {
		b, err := bench.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		r := New(b, Options{})
		if r.Handover, err = bench.Prepare(b); err != nil {
			t.Fatal(err)
		}
		r.Handover.Mark = mark
		return r.announcement()
	}
	file := filepath.Join(dir, "bench.yaml")
	const generated = "cannot change in this run: mu_pad: a generated kernel has fixed parameters: run with -kernel table\n"
	if got := announced(file, ""); strings.Contains(got, "cannot change") {
		t.Errorf("the table kernel: %s", got)
	}
	if got := announced(file, "mark"); !strings.Contains(got, generated) {
		t.Errorf("a generated kernel: %s, want %s", got, generated)
	}
	car, err := os.ReadFile(filepath.Join(dir, "car.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write("car.yaml", "partition: {N_sub: 5, N_iter: 1}\n"+string(car))
	if got, want := announced(file, ""), "cannot change in this run: mu_pad: a plant with a partition keeps its parameters during a run\n"; !strings.Contains(got, want) {
		t.Errorf("a partition: %s, want %s", got, want)
	}
	if got := announced(file, "mark"); !strings.Contains(got, generated) {
		t.Errorf("a generated kernel of a partition: %s, want %s", got, generated)
	}
}
