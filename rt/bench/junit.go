package bench

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
)

// Trial is what became of a scenario in a run.
type Trial struct {
	Scenario string    `json:"scenario"`
	File     string    `json:"file"`
	Pass     bool      `json:"pass"` // every expectation held
	Findings []Finding `json:"expectations"`
}

// newTrial puts the findings together.
func newTrial(s *Scenario, list []Finding) *Trial {
	return &Trial{
		Scenario: s.Name, File: s.File, Findings: list,
		Pass: !slices.ContainsFunc(list, func(f Finding) bool { return !f.Held }),
	}
}

// Text writes the trial for people, a line for each expectation.
func (t *Trial) Text(w io.Writer) {
	held := 0
	for _, f := range t.Findings {
		if f.Held {
			held++
		}
	}
	fmt.Fprintf(w, "\n  scenario %s: %d of %d expectations held\n\n", t.Scenario, held, len(t.Findings))
	for _, f := range t.Findings {
		fmt.Fprintf(w, "  %-7s%s\n", verdictWord(f.Held), &f)
	}
}

// String is the finding in one line, without how it ended.
func (f *Finding) String() string {
	name := f.What + ": "
	if f.What == f.Want { // it has no name of its own
		name = ""
	}
	return fmt.Sprintf("%swanted %s; seen %s", name, f.Want, f.Seen)
}

// line is the finding as a record has it.
func (f *Finding) line() string { return verdictWord(f.Held) + ": " + f.String() }

func verdictWord(held bool) string { return map[bool]string{true: "held", false: "broken"}[held] }

// failed names the expectations that did not hold; nil: all did.
func (t *Trial) failed() error {
	var list []error
	for i := range t.Findings {
		if f := &t.Findings[i]; !f.Held {
			list = append(list, fmt.Errorf("scenario %s: %s", t.Scenario, f))
		}
	}
	return errors.Join(list...)
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

// JUnit writes the verdict on a run as JUnit XML: a case for each expectation, and one
// more for a run that broke its policy. Times are simulated.
func (r *Report) JUnit(w io.Writer) error {
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

// scenarioRun is a scenario that a run follows, and the file for its verdict.
type scenarioRun struct {
	scenario *Scenario // nil: there is none
	junit    *os.File  // nil: none is wanted
}

// openScenario reads a scenario, a file or embedded; the file for its verdict as JUnit
// XML, "" none, is there at once, so that a wrong name is told before the run.
func openScenario(h *Handover, name, junit string) (s scenarioRun, err error) {
	if name == "" {
		return s, nil
	}
	if s.scenario, err = h.LoadScenario(name); err != nil || junit == "" {
		return s, err
	}
	if s.junit, err = os.Create(junit); err != nil {
		return s, fmt.Errorf("run: junit: %w", err)
	}
	return s, nil
}

// report adds the verdict of the findings to the report of the run, and writes it to the
// file.
func (s *scenarioRun) report(report *Report, findings []Finding) error {
	if s.scenario == nil {
		return nil
	}
	report.Trial = newTrial(s.scenario, findings)
	if s.junit == nil {
		return nil
	}
	if err := errors.Join(report.JUnit(s.junit), s.junit.Close()); err != nil {
		return fmt.Errorf("run: junit: %w", err)
	}
	return nil
}
