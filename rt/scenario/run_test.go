package scenario

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/lab"
	"lockstep/rt/report"
)

// triedReport returns a report with one broken expectation of two, and with characters that XML
// must escape.
func triedReport() *report.Report {
	return &report.Report{
		Bench: "demo", Clean: true, Ended: "done", SimTime: 4,
		Scenario: &report.ScenarioResult{Scenario: "hard", File: "hard.yaml", Findings: []report.Finding{
			{Criterion: report.Criterion{What: "slow", Want: `w1 > 3 "rpm" & more`, Seen: "worst <2> at 3 s", Held: false}, Time: 1.005},
			{Criterion: report.Criterion{What: "errors of M: is 0", Want: "errors of M: is 0", Seen: "0", Held: true}, Time: 4},
		}},
	}
}

// begun is the time at which the run of triedReport began.
var begun = time.Date(2026, 11, 20, 23, 59, 45, 931e6, time.FixedZone("here", -3600))

func TestJUnitHasOneCasePerExpectation(t *testing.T) {
	var out bytes.Buffer
	if err := writeJUnit(triedReport(), begun, &out); err != nil {
		t.Fatal(err)
	}
	type node struct {
		XMLName xml.Name
		Attrs   []xml.Attr `xml:",any,attr"`
		Text    string     `xml:",chardata"`
		Nodes   []node     `xml:",any"`
	}
	var root node
	if err := xml.Unmarshal(out.Bytes(), &root); err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	attr := func(n node, name string) string {
		for _, a := range n.Attrs {
			if a.Name.Local == name {
				return a.Value
			}
		}
		return "none"
	}
	suite := root.Nodes[0]
	host, _ := os.Hostname()
	if root.XMLName.Local != "testsuites" || suite.XMLName.Local != "testsuite" || attr(suite, "tests") != "2" || attr(suite, "failures") != "1" || attr(suite, "time") != "4" ||
		attr(suite, "timestamp") != "2026-11-21T00:59:45" || attr(suite, "hostname") != host || host == "" {
		t.Errorf("%+v", suite.Attrs)
	}
	a, b := suite.Nodes[0], suite.Nodes[1]
	if a.XMLName.Local != "testcase" || attr(a, "classname") != "demo.hard" || attr(a, "name") != "slow" || attr(a, "time") != "1.005" ||
		attr(a.Nodes[0], "message") != `slow: expected w1 > 3 "rpm" & more; saw worst <2> at 3 s` {
		t.Errorf("the broken one: %+v", a)
	}
	if attr(b, "name") != "errors of M: is 0" || attr(b, "time") != "4" || len(b.Nodes) != 1 || b.Nodes[0].XMLName.Local != "system-out" {
		t.Errorf("the one that held: %+v", b)
	}
}

func TestRunThatBrokeItsPolicyIsAJUnitCase(t *testing.T) {
	r := triedReport()
	r.Clean, r.Ended = false, "a tick was missed (stop)"
	var out bytes.Buffer
	if err := writeJUnit(r, begun, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, `tests="3" failures="2"`) || !strings.Contains(got, `<failure message="a tick was missed (stop)"`) {
		t.Errorf("%s", got)
	}
}

func TestJUnitTimesFitTheSchemas(t *testing.T) {
	r := triedReport()
	r.SimTime = 259200.005
	for s, want := range map[float64]string{0.000_05: "0", 0.0125: "0.013", 1.005: "1.005", 4: "4", 2.5e7: "25000000"} {
		r.Scenario.Findings[0].Time = s
		var out bytes.Buffer
		if err := writeJUnit(r, begun, &out); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, `name="slow" time="`+want+`"`) || !strings.Contains(got, `skipped="0" time="259200.005"`) {
			t.Errorf("%v s, want %q:\n%s", s, want, got)
		}
	}
}

func TestJUnitIsReadByAnIndependentProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		lab.Skip(t, "python3 is missing: apt-get install python3")
	}
	file := t.TempDir() + "/junit.xml"
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeJUnit(triedReport(), begun, f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	out, err := exec.Command(python, "-c", `
import sys, xml.etree.ElementTree as e
for c in e.parse(sys.argv[1]).getroot().iter("testcase"):
    f = c.find("failure")
    print(c.get("name"), float(c.get("time")), f.get("message") if f is not None else "held")
`, file).CombinedOutput()
	const want = "slow 1.005 slow: expected w1 > 3 \"rpm\" & more; saw worst <2> at 3 s\nerrors of M: is 0 4.0 held\n"
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%swant\n%s", err, out, want)
	}
}

func TestReportsShowEveryExpectation(t *testing.T) {
	r := triedReport()
	var text, machine bytes.Buffer
	r.Scenario.Text(&text)
	const want = `
  scenario hard: 1 of 2 expectations held

  broken slow: expected w1 > 3 "rpm" & more; saw worst <2> at 3 s
  held   expected errors of M: is 0; saw 0
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", text.String(), want)
	}
	if err := r.Scenario.Failed(); err == nil || err.Error() != `scenario hard: slow: expected w1 > 3 "rpm" & more; saw worst <2> at 3 s` {
		t.Errorf("broken expectations: %v", err)
	}
	if err := r.JSON(&machine); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Scenario struct {
			Pass         bool
			Expectations []struct {
				What, Demanded, Seen string
				Held                 bool
				Time                 float64 `json:"time_s"`
			}
		}
	}
	if err := json.Unmarshal(machine.Bytes(), &got); err != nil || got.Scenario.Pass || len(got.Scenario.Expectations) != 2 ||
		got.Scenario.Expectations[0].Demanded != `w1 > 3 "rpm" & more` || !got.Scenario.Expectations[1].Held {
		t.Errorf("%+v (%v)", got, err)
	}
}
