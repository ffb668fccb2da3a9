// Package junit owns JUnit XML, the form in which test servers read verdicts. It does not judge: its
// callers say what was held.
package junit

import (
	"cmp"
	"encoding/xml"
	"io"
	"math"
	"os"
	"strconv"
	"time"
)

// Suite is a test suite: a verdict with a case for each thing that was judged.
type Suite struct {
	Class string    // class of all cases: what was tested
	Name  string    // of the suite
	Begun time.Time // begin of the test
	Time  float64   // length of the test, s
	Out   string    // how the test ended

	cases []testCase
}

// Add adds a case, with its time, s, and a text about it.
func (s *Suite) Add(name string, at float64, held bool, text string) {
	c := testCase{Class: s.Class, Name: name, Time: seconds(at)}
	if held {
		c.Out = text
	} else {
		c.Failure = &failure{Message: text, Type: "broken"}
	}
	s.cases = append(s.cases, c)
}

// Skip adds a case that was not judged, with a text that says why.
func (s *Suite) Skip(name, text string) {
	s.cases = append(s.cases, testCase{Class: s.Class, Name: name, Time: seconds(0), Skipped: &skipped{Message: text}})
}

// Write writes the suite as a file.
func (s *Suite) Write(w io.Writer) error {
	failures, skips := 0, 0
	for i := range s.cases {
		if s.cases[i].Failure != nil {
			failures++
		}
		if s.cases[i].Skipped != nil {
			skips++
		}
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	err := e.Encode(root{Tests: len(s.cases), Failures: failures, Suite: suite{
		Name: s.Name, Begun: s.Begun.UTC().Format("2006-01-02T15:04:05"), Host: hostname(),
		Tests: len(s.cases), Failures: failures, Skipped: skips, Time: seconds(s.Time), Cases: s.cases, Out: s.Out,
	}})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

// root is the root element of JUnit XML.
type root struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Suite    suite    `xml:"testsuite"`
}

type suite struct {
	Name     string     `xml:"name,attr"`
	Begun    string     `xml:"timestamp,attr"` // UTC, in the form of the schemas, which have no zone
	Host     string     `xml:"hostname,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Skipped  int        `xml:"skipped,attr"`
	Time     string     `xml:"time,attr"` // see seconds
	Cases    []testCase `xml:"testcase"`
	Out      string     `xml:"system-out"`
}

type testCase struct {
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Time    string   `xml:"time,attr"` // see seconds
	Skipped *skipped `xml:"skipped"`
	Failure *failure `xml:"failure"`
	Out     string   `xml:"system-out,omitempty"`
}

type skipped struct {
	Message string `xml:"message,attr"`
}

type failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
}

// seconds formats a time, s, for the schemas of JUnit XML: without an exponent, in steps of 1 ms.
func seconds(s float64) string {
	return strconv.FormatFloat(math.Round(float64(s*1e3))/1e3, 'f', -1, 64)
}

// hostname returns the name of this host, "localhost" if it has none, as the schemas propose.
func hostname() string {
	name, _ := os.Hostname()
	return cmp.Or(name, "localhost")
}
