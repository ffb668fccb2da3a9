package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/model/plants"
)

// write puts text into a file of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestEmbeddedScenariosHold in virtual time. Their first line names their bench.
func TestEmbeddedScenariosHold(t *testing.T) {
	t.Parallel()
	n := 0
	for _, e := range plants.List() {
		if e.Kind != "scenario" {
			continue
		}
		n++
		name, _, ok := strings.Cut(strings.TrimPrefix(e.About, "Scenario of "), ":")
		if !ok {
			t.Errorf("%s: the first line does not say of which bench it is: %s", e.Name, e.About)
			continue
		}
		out, errors, code := lockstep(t, "sim", name, "-scenario", e.Name)
		if code != 0 || errors != "" || !strings.Contains(out, "scenario "+e.Name+": ") || strings.Contains(out, "broken ") {
			t.Errorf("%s: code %d, %s\n%s", e.Name, code, errors, out)
		}
	}
	if n < 3 {
		t.Errorf("%d scenarios are embedded", n)
	}
}

// TestScenarioOnABusIsJudged: what a run that takes as long as it says has held and not.
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
	if code != 1 || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: scenario half: impossible: wanted w1 within 1 % of 1 rpm; seen worst ") {
		t.Errorf("code %d, %s", code, errors)
	}
	for _, want := range []string{"scenario half: 2 of 3 expectations held", "\n  held   floor: ", "\n  held   and its end: ", "\n  broken impossible: "} {
		if !strings.Contains(out, want) {
			t.Errorf("the report does not say %q:\n%s", want, out)
		}
	}
	if !strings.Contains(out, "its cause was at tick 40") || !strings.Contains(out, "at tick 80;") {
		t.Errorf("a fault of 40 ticks from tick 40 on:\n%s", out)
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
	if r := readReport(t, report); r.Trial == nil || r.Trial.Pass || len(r.Trial.Findings) != 3 {
		t.Errorf("the report for machines: %+v", r.Trial)
	}
}

func TestScenarioOfARunThatIsStoppedIsNotJudged(t *testing.T) {
	scenario := write(t, "s.yaml", "scenario: long\nfor: 60 s\nexpect:\n  - {value: w1, below: 1e6, to: 50 s}\n")
	s := begin(t, nil, "run", patientBench(t), "-scenario", scenario)
	<-s.seen
	s.cmd.Process.Signal(syscall.SIGINT)
	<-s.over
	if code := s.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(s.errors.String(), "seen not judged: the run ended at ") {
		t.Errorf("code %d, %s", code, s.errors.String())
	}
}

func TestMistakesWithScenariosAreOneLine(t *testing.T) {
	late := write(t, "late.yaml", "scenario: late\nexpect:\n  - {value: w1, below: 5, to: 3 s}\n")
	wrong := write(t, "wrong.yaml", "scenario: wrong\nfaults:\n  - {input: clutch1.presure, hold: true}\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "-junit", "x.xml"}, "-junit is the verdict on a scenario: name one with -scenario"},
		{[]string{"run", "-scenario", "nothing.yaml"}, "no file nothing.yaml, and nothing embedded of that name"},
		{[]string{"run", "-scenario", "powershift"}, "powershift.yaml is a file of another kind (plant); a scenario begins with scenario: NAME"},
		{[]string{"run", "-scenario", wrong}, "wrong.yaml:3:13: bench: fault: there is no input \"clutch1.presure\" (did you mean clutch1.pressure?)"},
		{[]string{"run", "-for", "2s", "-scenario", late}, "late.yaml:3:31: bench: expect: 3 s is beyond the end of the run, at 2 s"},
		{[]string{"run", "-scenario", "powershift-clutch-sticks", "-junit", "/nonexistent/j.xml"}, "run: junit: open /nonexistent/j.xml: no such file"},
		{[]string{"check", "powershift.dbc", "-scenario", late}, "check: powershift.dbc is a file of kind database; -scenario is of a bench or a plant"},
		{[]string{"check", "powershift", "-scenario", "truck-ice-and-broken-shaft"}, "truck-ice-and-broken-shaft.yaml:"},
		{[]string{"check", "powershift-clutch-sticks"}, "a scenario is checked with its bench: lockstep check BENCH -scenario powershift-clutch-sticks"},
		{[]string{"sim", "powershift", "-in", "powershift-clutch-sticks"}, ""},
		{[]string{"run", "powershift-clutch-sticks"}, "powershift-clutch-sticks is a scenario: name the bench, and this with -scenario powershift-clutch-sticks"},
		{[]string{"sim", "powershift-clutch-sticks"}, "is a scenario: lockstep sim BENCH -scenario powershift-clutch-sticks"},
	} {
		out, errors, code := lockstep(t, c.args...)
		first, _, _ := strings.Cut(errors, "\n")
		if code != 2 || !strings.Contains(first, c.want) || out != "" {
			t.Errorf("%q: code %d, %s%s", c.args, code, errors, out)
		}
	}
}

func TestCheckSaysWhatIsUnderstoodOfAScenarioForAPlant(t *testing.T) {
	out, errors, code := lockstep(t, "check", "automatic4", "-scenario", "automatic4-leaking-clutch")
	for _, want := range []string{"automatic4.yaml: plant ", "automatic4-leaking-clutch.yaml: scenario ", "  fault     leak: input=C4.pressure "} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s%s", code, want, out, errors)
		}
	}
}

func TestCheckSaysWhatIsUnderstoodOfAScenario(t *testing.T) {
	out, errors, code := lockstep(t, "check", "powershift-bench", "-scenario", "powershift-clutch-sticks")
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s", code, errors)
	}
	for _, want := range []string{
		"scenario powershift-clutch-sticks, for 4 s, 800 ticks\n",
		"  fault     sticks: element=clutch1 'does_not_open=18 bar' 'at=450 ms' 'for=1 s'; from tick 90 on, for 200 ticks\n",
		"  expected  the unit waits: clutch2.pressure below 15 bar from 0.7 s to 1.44 s\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}
