package main

import (
	"encoding/xml"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/io/yamlfile"
	"lockstep/model/plants"
	"lockstep/rt/bench"
)

// write writes text to a new file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEmbeddedScenariosHold runs the scenarios in virtual time. Their first line names their bench.
func TestEmbeddedScenariosHold(t *testing.T) {
	t.Parallel()
	n := 0
	for _, e := range plants.List() {
		if e.Kind != "scenario" || e.Name == "automatic-day" { // the day has a test of its own
			continue
		}
		n++
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			name, _, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e.About, "Diagnosis scenario of "), "Scenario of "), ":")
			if !ok {
				t.Fatalf("the first line does not name its bench: %s", e.About)
			}
			report := filepath.Join(t.TempDir(), "r.json")
			out, errors, code := lockstep(t, "sim", name, "-scenario", e.Name, "-report", report)
			if code != 0 || errors != "" {
				t.Fatalf("code %d, %s\n%s", code, errors, out)
			}
			if r := readReport(t, report); r.Scenario == nil || r.Scenario.Scenario != e.Name || !r.Scenario.Pass || len(r.Scenario.Findings) == 0 || !has(out, e.Name) {
				t.Errorf("%+v\n%s", r.Scenario, out)
			}
		})
	}
	if n < 3 {
		t.Errorf("%d scenarios are embedded", n)
	}
}

// A run as long as its scenario has a verdict with every expectation.
func TestScenarioOfARunIsJudged(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "j.xml")
	report := filepath.Join(t.TempDir(), "r.json")
	scenario := write(t, "s.yaml", `scenario: half
for: 1 s
faults:
  - {name: sticks, element: clutch2, does_not_open: 18 bar, at: 200 ms, for: 40 ticks}
expect:
  - {name: floor, value: clutch2.pressure, above: 17.9 bar, from: 200 ms, to: 395 ms}
  - {name: and its end, answer: clutch2.pressure < 1 bar, after: {when: clutch2.pressure > 1 bar}, within: 200 ms}
  - {name: impossible, value: w1, within: 1 %, of: 1 rpm}
`)
	out, errors, code := lockstep(t, "run", patientBench(t), "-scenario", scenario, "-junit", junit, "-report", report)
	if code != 1 || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: ", "half: impossible: ", "w1 within 1 % of 1 rpm") {
		t.Errorf("code %d, %s", code, errors)
	}
	var root struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name string `xml:"name,attr"`
		} `xml:"testsuite>testcase"`
	}
	data, err := os.ReadFile(junit)
	if err == nil {
		err = xml.Unmarshal(data, &root)
	}
	if err != nil || root.Tests != 3 || root.Failures != 1 || len(root.Cases) != 3 {
		t.Errorf("JUnit: %v, %+v\n%s", err, root, data)
	}
	r := readReport(t, report)
	if r.Scenario == nil || r.Scenario.Scenario != "half" || r.Scenario.Pass || len(r.Scenario.Findings) != 3 {
		t.Fatalf("the report: %+v", r.Scenario)
	}
	for i, want := range []struct {
		name string
		held bool
	}{{"floor", true}, {"and its end", true}, {"impossible", false}} {
		f := r.Scenario.Findings[i]
		if f.What != want.name || f.Held != want.held || !has(out, want.name+": ") {
			t.Errorf("%+v, want %+v, in\n%s", f, want, out)
		}
	}
	if seen := r.Scenario.Findings[1].Seen; !has(seen, "tick 40", "tick 80") {
		t.Errorf("a fault of 40 ticks from tick 40 on: %s", seen)
	}
}

func TestScenarioOfARunThatIsStoppedIsNotJudged(t *testing.T) {
	scenario := write(t, "s.yaml", "scenario: long\nfor: 60 s\nexpect:\n  - {value: w1, below: 1e6 rad/s, to: 50 s}\n")
	report := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, nil, "run", patientBench(t), "-scenario", scenario, "-report", report)
	<-s.seen
	s.cmd.Process.Signal(syscall.SIGINT)
	<-s.over
	if code := s.cmd.ProcessState.ExitCode(); code != 1 || !has(s.errors.String(), "long: ", "w1 ") {
		t.Errorf("code %d, %s", code, s.errors.String())
	}
	if r := readReport(t, report); r.Scenario == nil || r.Scenario.Pass || len(r.Scenario.Findings) != 1 || r.Scenario.Findings[0].Held {
		t.Errorf("%+v", r.Scenario)
	}
}

func TestWrongScenariosEndWithOneLine(t *testing.T) {
	late := write(t, "late.yaml", "scenario: late\nfor: 2 s\nexpect:\n  - {value: w1, below: 5 rad/s, to: 3 s}\n")
	open := write(t, "open.yaml", "scenario: open\nexpect:\n  - {value: w1, below: 5 rad/s, to: 3 s}\n")
	wrong := write(t, "wrong.yaml", "scenario: wrong\nfaults:\n  - {input: clutch1.presure, hold: true}\n")
	for _, c := range []struct {
		args []string
		is   func(error) bool // test of the error; nil: a run would begin in this process
		want string           // words of the line
	}{
		{[]string{"run", "-junit", "x.xml"}, as[usageError], "run: -junit -scenario"},
		{[]string{"sim", "powershift-bench", "-junit", "x.xml"}, as[usageError], "sim: -junit -scenario"},
		{[]string{"run", "-scenario", "nothing.yaml"}, nil, "nothing.yaml,"},
		{[]string{"run", "-scenario", "powershift"}, as[*bench.KindError], "scenario: powershift plant (lockstep NAME"},
		{[]string{"run", "-scenario", wrong}, nil, wrong + `:3:13: fault: "clutch1.presure" clutch1.pressure?)`},
		{[]string{"run", "-scenario", late}, nil, late + ":4:37: expect:"},
		{[]string{"run", "-for", "2s", "-scenario", open}, nil, open + ":3:37: expect:"},
		{[]string{"run", "-scenario", "powershift-clutch-sticks", "-junit", "/nonexistent/j.xml"}, nil, "run: /nonexistent/j.xml:"},
		{[]string{"check", "powershift.dbc", "-scenario", late}, as[*bench.KindError], "check -scenario: powershift.dbc database plant: NAME"},
		{[]string{"check", "powershift", "-scenario", "truck-ice-and-broken-shaft"}, as[*yamlfile.FileError], "truck-ice-and-broken-shaft.yaml:"},
		{[]string{"check", "powershift-clutch-sticks"}, as[*bench.KindError], "check: -scenario powershift-clutch-sticks"},
		{[]string{"sim", "powershift", "-in", "powershift-clutch-sticks"}, is(fs.ErrNotExist), "powershift-clutch-sticks:"},
		{[]string{"run", "powershift-clutch-sticks"}, as[*bench.KindError], "-scenario powershift-clutch-sticks"},
		{[]string{"sim", "powershift-clutch-sticks"}, as[*bench.KindError], "sim: -scenario powershift-clutch-sticks"},
	} {
		out, errors, code := lockstep(t, c.args...)
		if code != 2 || strings.Count(errors, "\n") != 1 || !has(errors, strings.Fields(c.want)...) || out != "" {
			t.Errorf("%q: code %d, %s%s", c.args, code, errors, out)
		}
		if c.is == nil {
			continue
		}
		if err := failure(c.args...); !c.is(err) {
			t.Errorf("%q: %T, %v", c.args, err, err)
		}
	}
}

func TestCheckDescribesAScenarioOfAPlant(t *testing.T) {
	t.Parallel()
	out, errors, code := lockstep(t, "check", "automatic4", "-scenario", "automatic4-leaking-clutch")
	for _, want := range []string{"automatic4.yaml: plant ", "automatic4-leaking-clutch.yaml: scenario ", "leak: input=C4.pressure "} {
		if code != 0 || !has(out, want) {
			t.Errorf("code %d, no %q in\n%s%s", code, want, out, errors)
		}
	}
}

func TestCheckDescribesAScenarioOfABench(t *testing.T) {
	t.Parallel()
	out, errors, code := lockstep(t, "check", "powershift-bench", "-scenario", "powershift-clutch-sticks")
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s", code, errors)
	}
	for _, want := range []string{
		"scenario powershift-clutch-sticks, for 4 s, 800 ticks\n",
		"sticks: element=clutch1 'does_not_open=18 bar' 'at=450 ms' 'for=1 s'; from tick 90 on, for 200 ticks\n",
		"the unit waits: clutch2.pressure below 15 bar from 0.7 s to 1.44 s\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
