package scenario

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
)

// junitSuites is the root element of JUnit XML.
type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Begun    string      `xml:"timestamp,attr"` // UTC, in the form of the schemas, which have no zone
	Host     string      `xml:"hostname,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"` // see junitTime
	Cases    []junitCase `xml:"testcase"`
	Out      string      `xml:"system-out"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"` // see junitTime
	Failure *junitFailure `xml:"failure"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// junitTime formats a time, s, for the schemas of JUnit XML: without an exponent, in steps of 1 ms.
func junitTime(s float64) string { return strconv.FormatFloat(math.Round(s*1e3)/1e3, 'f', -1, 64) }

// writeJUnit writes the verdict as JUnit XML: one case per expectation, and one more if the run
// broke its policy. Times are simulated, but for the time of day at which the run began.
func writeJUnit(r *report.Report, begun time.Time, w io.Writer) error {
	t := r.Scenario
	s := junitSuite{Name: t.Scenario, Time: junitTime(r.SimTime), Out: r.Ended,
		Begun: begun.UTC().Format("2006-01-02T15:04:05"), Host: hostname()}
	add := func(name string, seconds float64, held bool, text string) {
		c := junitCase{Class: cmp.Or(r.Bench, r.Plant) + "." + t.Scenario, Name: name, Time: junitTime(seconds)}
		if s.Tests++; held {
			c.Out = text
		} else {
			s.Failures++
			c.Failure = &junitFailure{Message: text, Type: "broken"}
		}

		s.Cases = append(s.Cases, c)
	}

	for i := range t.Findings {
		f := &t.Findings[i]
		add(f.What, f.Time, f.Held, f.String())
	}

	if !r.Clean {
		add("the run", r.SimTime, false, r.Ended)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(junitSuites{Tests: s.Tests, Failures: s.Failures, Suite: s}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// hostname returns the name of this host, "localhost" if it has none, as the schemas propose.
func hostname() string {
	name, _ := os.Hostname()
	return cmp.Or(name, "localhost")
}

// Run is the scenario of a run and the file of its verdict.
type Run struct {
	Scenario *Scenario    // nil: none
	junit    *host.Result // nil: none
	begun    time.Time    // time of Open
}

// Open loads a scenario, a file or embedded; name "": none. It creates the JUnit XML file at once,
// so that a wrong name is refused before the run; junit "": none.
func Open(h *bench.Handover, name, junit string) (s Run, err error) {
	if name == "" {
		return s, nil
	}
	if s.Scenario, err = Load(h, name); err != nil {
		return s, err
	}
	s.begun = time.Now()
	if s.junit, err = bench.CreateResult(junit, host.ReportSpace, "XML"); err != nil {
		return s, fmt.Errorf("run: junit: %w", err)
	}
	return s, nil
}

// Close removes a JUnit XML file that was not written.
func (s *Run) Close() { s.junit.Close() }

// Report adds the verdict to the report of the run, and writes the JUnit XML file.
func (s *Run) Report(r *report.Report, findings []report.Finding) error {
	if s.Scenario == nil {
		return nil
	}
	broken := slices.ContainsFunc(findings, func(f report.Finding) bool { return !f.Held })
	r.Scenario = &report.ScenarioResult{
		Scenario: s.Scenario.Name, File: s.Scenario.File, Pass: !broken, Findings: findings,
	}
	if err := s.junit.Save(func(to io.Writer) error { return writeJUnit(r, s.begun, to) }); err != nil {
		return fmt.Errorf("run: junit: %w", err)
	}
	return nil
}
