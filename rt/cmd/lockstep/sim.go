package main

import (
	"os"

	"golang.org/x/term"

	"lockstep/rt/virtual"
)

const simUsage = "sim PLANT|BENCH [-for 25s] [-scenario FILE] [-junit FILE.xml] [-record FILE] [-step 5ms] [-in inputs.csv] [-out out.csv] [-events FILE.csv] [-every N] [-scheme NAME] [-form NAME] [-report FILE.json]"

func runSim(list []string) error {
	a := newArgs("sim", simUsage)
	var s virtual.Simulation
	length := a.span("for", 0, "how long, like 25s; without it that of the scenario, or to the last row of -in, otherwise to that of the plant's tables (10s more if they still change there), 10s if there are none")
	step := a.span("step", 0, "period of the grid of a plant (default 5ms); a bench has its own")
	a.StringVar(&s.Scenario, "scenario", "", "what happens and what is expected: a file, or the name of an embedded scenario")
	a.StringVar(&s.JUnit, "junit", "", "write the verdict of the scenario to this file, as JUnit XML")
	a.StringVar(&s.Record, "record", "", "of a bench: write the record to this file, as run does")
	a.StringVar(&s.In, "in", "", "inputs: a CSV file with the columns time[s] and name[unit], held between rows; or the name of embedded ones")
	a.StringVar(&s.Out, "out", "", "write every port at every grid point to this CSV file; - is the standard output")
	a.StringVar(&s.Events, "events", "", "write every change of a friction element's state to this CSV file")
	a.IntVar(&s.Every, "every", 1, "write every N-th grid point only")
	a.choice(&s.Scheme, "scheme", "after an event in a step: complete (the step is finished, the default) or papers (the rest goes into the lag buffer)", "complete", "papers")
	a.choice(&s.Form, "form", "what holds a lock: projected (exact, the default) or held (the papers' torque held over the step)", "projected", "held")
	a.StringVar(&s.Report, "report", "", "write the report to this file, as JSON")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	if s.Every < 1 {
		return usageError{"sim: -every must be at least 1"}
	}
	s.Plant, s.For, s.Step = a.names[0], *length, *step
	if term.IsTerminal(int(os.Stderr.Fd())) {
		s.Progress = os.Stderr
	}
	report, err := s.Run()
	if report != nil && s.Out != "-" && s.Events != "-" {
		report.Text(os.Stdout)
		if report.Trial != nil {
			report.Trial.Text(os.Stdout)
		}
	}
	return err
}
