package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/control"
	"lockstep/rt/report"
)

// The speed of a pushed mass of 1500 kg after 3 s is v + F·t/m. The scenario takes precedence over the
// bench, and the command line over both.
func TestAStartPresetActsInEveryCommandAndStandsInRecordAndReport(t *testing.T) {
	t.Parallel()
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

// A run in real time, and a soak, begin with the presets and parameters of the command line. The soak's segments have
// them, too.
func TestRunsAndSoaksBeginWithTheOptionsOfTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	name := fmt.Sprintf("options-%d", os.Getpid())
	for path, text := range map[string]string{
		"car.yaml": "start:\n  v: {unit: km/h, min: 0, max: 100, set: {car.v_start: v}}\n" + pushedCar, "car.dbc": pushedCarMessages,
		"push.yaml": strings.Replace(pushedCarBench, "bench: push", "bench: "+name, 1),
	} {
		if err := os.WriteFile(file(path), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	options := []string{"-start", "v=18km/h", "-set", "m_car=2t", "-report", file("r.json")}
	report := func(how string) {
		t.Helper()
		if r := readReport(t, file("r.json")); r.Start != "v=18km/h" || r.Set != "m_car=2t" || r.Ticks == 0 {
			t.Errorf("%s: the report says start %q, set %q, %d ticks", how, r.Start, r.Set, r.Ticks)
		}
	}

	if _, errors, code := lockstep(t, append([]string{"run", file("push.yaml"), "-for", "1s", "-record", file("a.rec")}, options...)...); code != 0 {
		t.Fatalf("code %d, %s", code, errors)
	}
	report("run")
	if _, errors, code := lockstep(t, "replay", file("a.rec"), "-out", file("o.csv")); code != 0 {
		t.Fatalf("replay: code %d, %s", code, errors)
	}
	text, err := os.ReadFile(file("o.csv"))
	if err != nil {
		t.Fatal(err)
	}
	_, rows := columns(t, string(text))
	if v, want := rows[len(rows)-1][1], 5+1000*1/2000.0; !scalar.EqualWithinRel(v, want, 1e-12) { // v + F·t/m
		t.Errorf("run: speed %.17g m/s after 1 s, want %.17g", v, want)
	}

	s := begin(t, nil, append([]string{"soak", file("push.yaml"), "-for", "10m", "-load=false", "-scenarios", "none"}, options...)...)
	var a control.Values
	await(t, "the soak has ticked for 1.5 s", func() bool { // a shorter segment counts as cut
		out, _, code := lockstep(t, "ctl", name, "get", "m_car", "v", "-json")
		return code == 0 && json.Unmarshal([]byte(out), &a) == nil && a.Tick > 300
	})
	if m, v := *a.Values[0].Value, *a.Values[1].Value; m != 2000 || !scalar.EqualWithinRel(v, 5+1000*a.Time/2000, 1e-9) {
		t.Errorf("soak: mass %g kg, speed %g m/s after %g s", m, v, a.Time)
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	s.end()
	report("soak")
	if _, errors, code := lockstep(t, "soak", file("push.yaml"), "-for", "10m", "-load=false", "-scenarios", "none", "-start", "v=36km/h", "-report", file("r.json")); code != 2 || !has(errors, "r.json.state", "-fresh") {
		t.Errorf("a soak with other options resumes it: code %d, %s", code, errors)
	}
}
