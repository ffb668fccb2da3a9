package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/report"
)

// The speed of a pushed mass of 1500 kg after 3 s is v + F·t/m. The scenario takes precedence over the
// bench, and the command line over both.
func TestAStartPresetActsInEveryCommandAndStandsInRecordAndReport(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	preset := "start:\n  v: {unit: km/h, min: 0, max: 100, set: {car.v_start: v}}\n"
	for name, text := range map[string]string{
		"car.yaml": preset + pushedCar, "car.dbc": pushedCarMessages, "push.yaml": pushedCarBench,
		"moving.yaml": strings.Replace(pushedCarBench, "period:", "start: {v: 36 km/h}\nperiod:", 1),
		"fast.yaml":   "scenario: fast\nfor: 3 s\nstart: {v: 20 m/s}\nstimuli: {push: 1000 N}\n",
		"wrong.yaml":  "scenario: wrong\nstart: {v: 200 km/h}\n",
	} {
		if err := os.WriteFile(file(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	speed := func(want float64, args ...string) {
		t.Helper()
		if _, errors, code := lockstep(t, append(args, "-out", file("o.csv"))...); code != 0 {
			t.Fatalf("%q: code %d, %s", args, code, errors)
		}
		text, err := os.ReadFile(file("o.csv"))
		if err != nil {
			t.Fatal(err)
		}
		_, rows := columns(t, string(text))
		if v := rows[len(rows)-1][1]; !scalar.EqualWithinRel(v, want, 1e-12) {
			t.Errorf("%q: speed %.17g m/s after 3 s, want %.17g", args, v, want)
		}
	}

	speed(5+2, "sim", file("car.yaml"), "-for", "3s", "-start", "v=18km/h")
	speed(20+2, "sim", file("car.yaml"), "-scenario", file("fast.yaml"))
	speed(5+1.5, "sim", file("push.yaml"), "-for", "3s", "-start", "v=18km/h", "-set", "m_car=2t")
	speed(10+2, "sim", file("moving.yaml"), "-for", "3s")
	speed(20+2, "sim", file("moving.yaml"), "-scenario", file("fast.yaml"))
	speed(5+2, "sim", file("moving.yaml"), "-scenario", file("fast.yaml"), "-start", "v=18km/h",
		"-record", file("o.rec"), "-report", file("r.json"))

	text, err := os.ReadFile(file("r.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil || r.Start != "v=18km/h" {
		t.Errorf("the report says %q, error %v, want v=18km/h", r.Start, err)
	}

	for args, want := range map[string]string{
		"car.yaml -start v=18km/h":                  "car.v 5 m/s (start v=18km/h)",
		"car.yaml -scenario " + file("fast.yaml"):   "car.v 20 m/s (start v=20 m/s",
		"push.yaml -scenario " + file("fast.yaml"):  "car.v 20 m/s (start v=20 m/s",
		"moving.yaml -start v=500":                  "start v=500: 500 needs a unit: 500 km/h?",
		"push.yaml -scenario " + file("wrong.yaml"): "start v=200 km/h of " + file("wrong.yaml") + ":2:12: 200 km/h is outside 0 to 100 km/h",
	} {
		said, errors, _ := lockstep(t, append([]string{"check"}, strings.Fields(file(args))...)...)
		if !strings.Contains(said+errors, want) {
			t.Errorf("check %s: %s%s, want %q", args, said, errors, want)
		}
	}

	for _, name := range []string{"car.yaml", "moving.yaml", "fast.yaml"} {
		if err := os.Remove(file(name)); err != nil {
			t.Fatal(err)
		}
	}
	speed(5+2, "replay", file("o.rec"))
}
