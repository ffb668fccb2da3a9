package scenario

import (
	"cmp"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strconv"

	"lockstep/rt/report"
)

// NewTrial puts the findings together.
func NewTrial(s *Scenario, list []report.Finding) *report.Trial {
	return &report.Trial{
		Scenario: s.Name, File: s.File, Findings: list,
		Pass: !slices.ContainsFunc(list, func(f report.Finding) bool { return !f.Held }),
	}
}

// junitSuites is the root of the JUnit XML that is written.
type junitSuites struct {
	XMLName  xml.Name   `xml:"testsuites"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Suite    junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
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

// junitTime is a time, s, as the schemas of JUnit XML take it: without an exponent, to
// the ms.
func junitTime(s float64) string { return strconv.FormatFloat(math.Round(s*1e3)/1e3, 'f', -1, 64) }

// WriteJUnit writes the verdict on a run as JUnit XML: a case for each expectation, and one
// more for a run that broke its policy. Times are simulated.
func WriteJUnit(r *report.Report, w io.Writer) error {
	t := r.Trial
	s := junitSuite{Name: t.Scenario, Time: junitTime(r.SimTime), Out: r.Ended}
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
