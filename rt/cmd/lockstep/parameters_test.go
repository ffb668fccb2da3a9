package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"lockstep/rt/control"
	"lockstep/rt/host"
)

// changedFiles writes the pushed car, its bench and a scenario with changes of its parameters.
func changedFiles(t *testing.T, changes string) (plant, bench, scenario string) {
	t.Helper()
	dir := t.TempDir()
	plant, bench, scenario = filepath.Join(dir, "car.yaml"), filepath.Join(dir, "push.yaml"), filepath.Join(dir, "changes.yaml")
	for file, text := range map[string]string{
		plant:    strings.Replace(pushedCar, "parameters:\n", "parameters:\n  fixed: 1\n", 1),
		bench:    pushedCarBench,
		scenario: "scenario: changes\nfor: 4 s\nparameters:\n" + changes, filepath.Join(dir, "car.dbc"): pushedCarMessages,
	} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return plant, bench, scenario
}

// A force of 1000 N pushes 1.5 t for 1 s, 2 t for 2 s and 1 t for 1 s.
func TestParameterChangesAtItsGridPointInRealTimeInVirtualTimeAndInAReplay(t *testing.T) {
	plant, bench, scenario := changedFiles(t, "  - {at: 1 s, m_car: 2 t}\n  - {at: tick 600, m_car: 1000 kg}\n")
	dir := filepath.Dir(plant)
	out, rec, live := filepath.Join(dir, "o.csv"), filepath.Join(dir, "o.rec"), filepath.Join(dir, "live.rec")
	check := func(how string, args ...string) {
		t.Helper()
		said, errors, code := lockstep(t, args...)
		if code != 0 {
			t.Fatalf("%s: code %d, %s%s", how, code, said, errors)
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		_, rows := columns(t, string(text))
		for _, row := range rows {
			at := row[0]
			want := min(at, 1)*1000/1500 + min(max(0, at-1), 2)*1000/2000 + max(0, at-3)*1
			if !scalar.EqualWithinAbsOrRel(row[1], want, 1e-12, 1e-12) {
				t.Fatalf("%s: speed %.15g m/s at %g s, want %.15g", how, row[1], at, want)
			}
		}
		if len(rows) < 800 {
			t.Errorf("%s: %d rows, want 800 ticks", how, len(rows))
		}
	}

	check("plant", "sim", plant, "-scenario", scenario, "-out", out)
	check("bench", "sim", bench, "-scenario", scenario, "-out", out, "-record", rec)
	check("replay", "replay", rec, "-out", out)
	said, errors, code := lockstep(t, "run", bench, "-scenario", scenario, "-record", live)
	for _, want := range []string{"m_car=2 t: expected from 1 s; saw in effect from 1 s", "m_car=1000 kg: expected from 3 s; saw in effect from 3 s"} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("run: code %d, no line %q: %s%s", code, want, said, errors)
		}
	}
	check("replay of the run", "replay", live, "-out", out)
}

func TestImpossibleChangesOfParametersAreRefusedBeforeTheRun(t *testing.T) {
	for change, want := range map[string]string{
		"{at: 1 s, m_cra: 2 t}":   `the plant has no parameter "m_cra" (did you mean m_car?)`,
		"{at: 1 s, fixed: 2}":     `parameter "fixed" cannot change in a run: the plant file does not say tune: true`,
		"{at: 1 s, m_car: 9 t}":   "9000 kg is outside 800 to 3500 kg",
		"{at: 1 s, m_car: 2000}":  "2000 needs a unit: 2000 kg?",
		"{at: 1, m_car: 2 t}":     "1 needs a unit",
		"{at: 4 s, m_car: 2 t}":   "at: 4 s is not before the end of the run, at 4 s",
		"{m_car: 2 t}":            "an entry is {at: TIME, NAME: VALUE, ...}",
		"{at: 1 s}":               "an entry is {at: TIME, NAME: VALUE, ...}",
		"{at: NaN s, m_car: 2 t}": "NaN",
	} {
		plant, _, scenario := changedFiles(t, "  - "+change+"\n")
		_, errors, code := lockstep(t, "sim", plant, "-scenario", scenario)
		if code != 2 || !strings.Contains(errors, want) || !strings.Contains(errors, "changes.yaml:4:") || strings.Count(errors, "\n") != 1 {
			t.Errorf("%s: code %d, %s; want 2 and %q", change, code, errors, want)
		}
	}

	plant, _, scenario := changedFiles(t, "  - {at: 2 s, m_car: 2 t}\n  - {at: 1 s, m_car: 1 t}\n")
	if _, errors, code := lockstep(t, "sim", plant, "-scenario", scenario); code != 2 || !strings.Contains(errors, "not in the order of time") {
		t.Errorf("changes in the wrong order: code %d, %s", code, errors)
	}
	many := ""
	for i := range 17 {
		many += fmt.Sprintf("  - {at: tick %d, m_car: 2 t}\n", i+1)
	}
	plant, _, scenario = changedFiles(t, many)
	if _, errors, code := lockstep(t, "sim", plant, "-scenario", scenario); code != 2 || !strings.Contains(errors, "more than 16 changes") {
		t.Errorf("17 changes: code %d, %s", code, errors)
	}
	_, bench, scenario := changedFiles(t, "  - {at: 1 s, m_car: 2 t}\n")
	if _, errors, code := lockstep(t, "run", bench, "-scenario", scenario, "-kernel", "generated"); code == 0 || !strings.Contains(errors, "which a generated kernel cannot; use -kernel table") {
		t.Errorf("generated kernel: code %d, %s", code, errors)
	}
}

// Forty changes of a running gearbox take effect, each at the tick of its answer, without an allocation of the
// target. They stay when the scenario changes the same parameter. The replay needs no plant file.
func TestParametersChangedByCtlReplayBitForBit(t *testing.T) {
	const changes = 40
	dir := t.TempDir()
	file, name := openBench(t)
	rec, report := filepath.Join(dir, "run.rec"), filepath.Join(dir, "r.json")
	scenario := filepath.Join(dir, "s.yaml")
	text := "scenario: s\nparameters: [{at: 20 ms, mu_oil: 0.18}, {at: 1 s, mu_oil: 0.16}]\n"
	if err := os.WriteFile(scenario, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	s := begin(t, nil, "run", file, "-scenario", scenario, "-record", rec, "-report", report)
	s.running()
	last, sock := int64(0), door(t, name)
	for i := range changes {
		mu := 0.08 + 0.001*float64(i%40)
		a := postParam(t, sock, map[string]any{"mu_oil": mu})
		if a.Tick <= last || a.Superseded || a.Parameters["mu_oil"] != fmt.Sprint(mu) {
			t.Fatalf("change %d: %+v after tick %d", i, a, last)
		}
		last = a.Tick
	}
	if out, errors, code := lockstep(t, "ctl", name, "get", "mu_oil"); code != 0 || !strings.Contains(out, "mu_oil  0.119") {
		t.Errorf("get: code %d, %s%s", code, out, errors)
	}
	if out, errors, code := lockstep(t, "ctl", name, "status"); code != 0 || !strings.Contains(out, "param mu_oil  ") ||
		!strings.Contains(out, "changes of parameters: 40, refused 0") {
		t.Errorf("status: code %d, %s%s", code, out, errors)
	}
	ctl(t, name, "stop")
	if code := s.end(); code != 0 {
		t.Errorf("code %d, %s\n%s", code, s.errors.String(), s.out.String())
	}
	if r := readReport(t, report); r.Changes != changes || r.Refusals != 0 || r.Allocs != 0 || r.GCCycles != 0 {
		t.Errorf("report: %d changes, %d refused, %d allocations, %d collections", r.Changes, r.Refusals, r.Allocs, r.GCCycles)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if ticks, _, errors, code := replayed(t, rec); code != 0 || ticks < int(last) {
		t.Errorf("replay: code %d, %d ticks, %s", code, ticks, errors)
	}
}

// door returns a client of the door of a bench.
func door(t *testing.T, name string) *http.Client {
	t.Helper()
	path := filepath.Join(host.ControlDir(), name+".sock")
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// postParam changes parameters and returns the answer.
func postParam(t *testing.T, c *http.Client, values map[string]any) (a control.Answer) {
	t.Helper()
	body, err := json.Marshal(control.ParamRequest{Values: values})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Post("http://lockstep/param", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || json.Unmarshal(text, &a) != nil {
		t.Fatalf("param %v: %d %s, %v", values, r.StatusCode, text, err)
	}
	return a
}
