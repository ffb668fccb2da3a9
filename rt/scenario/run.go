package scenario

import (
	"errors"
	"fmt"
	"os"

	"lockstep/rt/bench"
	"lockstep/rt/report"
)

// Run is a scenario that a run follows, and the file for its verdict.
type Run struct {
	Scenario *Scenario // nil: there is none
	junit    *os.File  // nil: none is wanted
}

// Open reads a scenario, a file or embedded; the file for its verdict as JUnit
// XML, "" none, is there at once, so that a wrong name is told before the run.
func Open(h *bench.Handover, name, junit string) (s Run, err error) {
	if name == "" {
		return s, nil
	}
	if s.Scenario, err = Load(h, name); err != nil || junit == "" {
		return s, err
	}
	if s.junit, err = os.Create(junit); err != nil {
		return s, fmt.Errorf("run: junit: %w", err)
	}
	return s, nil
}

// Report adds the verdict of the findings to the report of the run, and writes it to the
// file.
func (s *Run) Report(report *report.Report, findings []report.Finding) error {
	if s.Scenario == nil {
		return nil
	}
	report.Trial = NewTrial(s.Scenario, findings)
	if s.junit == nil {
		return nil
	}
	if err := errors.Join(WriteJUnit(report, s.junit), s.junit.Close()); err != nil {
		return fmt.Errorf("run: junit: %w", err)
	}
	return nil
}
