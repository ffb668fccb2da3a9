package main

import (
	"errors"
	"os"
	"time"

	"lockstep/rt/bench"
)

const simUsage = "sim PLANT [-for 25s] [-step 5ms] [-in inputs.csv] [-out out.csv] [-events FILE.csv] [-every N] [-report FILE.json]"

func runSim(list []string) error {
	a := newArgs("sim", simUsage)
	var s bench.Simulation
	length := a.span("for", 0, "how long, like 25s; without it to the end of the plant's tables, 10s if it has none")
	step := a.span("step", 5*time.Millisecond, "period of the grid (default 5ms)")
	a.StringVar(&s.In, "in", "", "inputs: a CSV file with the columns time[s] and name[unit], held between rows")
	a.StringVar(&s.Out, "out", "", "write every port at every grid point to this CSV file; - is the standard output")
	a.StringVar(&s.Events, "events", "", "write every change of a friction element's state to this CSV file")
	a.IntVar(&s.Every, "every", 1, "write every N-th grid point only")
	a.StringVar(&s.Scheme, "scheme", "papers", "after an event in a step: papers (the rest goes into the lag buffer) or complete (the step is finished)")
	a.StringVar(&s.Report, "report", "", "write the report to this file, as JSON")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	if s.Every < 1 {
		return errors.New("sim: -every must be at least 1")
	}
	s.Plant, s.For, s.Step = a.names[0], *length, *step
	report, err := s.Run()
	if report != nil && s.Out != "-" && s.Events != "-" {
		report.Text(os.Stdout)
	}
	return err
}
