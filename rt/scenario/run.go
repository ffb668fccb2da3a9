package scenario

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/junit"
	"lockstep/rt/report"
)

// writeJUnit writes the verdict as JUnit XML: one case per expectation, and one more if the run
// broke its policy. Times are simulated, but for the time of day at which the run began.
func writeJUnit(r *report.Report, begun time.Time, w io.Writer) error {
	t := r.Scenario
	s := junit.Suite{Class: cmp.Or(r.Bench, r.Plant) + "." + t.Scenario, Name: t.Scenario, Begun: begun, Time: r.SimTime, Out: r.Ended}
	for i := range t.Findings {
		f := &t.Findings[i]
		if f.Skipped {
			s.Skip(f.What, f.String())
			continue
		}
		s.Add(f.What, f.Time, f.Held, f.String())
	}
	if !r.Clean {
		s.Add("the run", r.SimTime, false, r.Ended)
	}
	return s.Write(w)
}

// Run is the scenario of a run and the file of its verdict.
type Run struct {
	Scenario *Scenario    // nil: none
	junit    *host.Result // nil: none
	begun    time.Time    // time of Open
}

// Open loads a scenario, a file or embedded; name "": none. Without a name, cycle is the drive cycle of a scenario
// that only drives it; "": none. Open creates the JUnit XML file at once, so that a wrong name is refused before the
// run; result "": none.
func Open(h *bench.Handover, name, cycle, result string) (s Run, err error) {
	switch {
	case name != "":
		s.Scenario, err = Load(h, name)
	case cycle != "":
		s.Scenario, err = DriveCycle(h, cycle)
	default:
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.begun = time.Now()
	if s.junit, err = bench.CreateResult(result, host.ReportSpace, "XML"); err != nil {
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
	broken := slices.ContainsFunc(findings, func(f report.Finding) bool { return f.Broken() })
	r.Scenario = &report.ScenarioResult{
		Scenario: s.Scenario.Name, File: s.Scenario.File, Pass: !broken, Findings: findings,
	}
	if err := s.junit.Save(func(to io.Writer) error { return writeJUnit(r, s.begun, to) }); err != nil {
		return fmt.Errorf("run: junit: %w", err)
	}
	return nil
}
