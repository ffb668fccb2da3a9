package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"lockstep/rt/check"
)

const checkUsage = "check FILE... [-step 5ms] [-scheme NAME] [-form NAME] [-scenario FILE] [-matrices] [-strict]"

func runCheck(list []string) error {
	a := newArgs("check", checkUsage)
	c := check.Check{Out: os.Stdout, Warn: func(text string) { fmt.Fprintln(os.Stderr, "lockstep: warning:", text) }}
	step := a.span("step", 5*time.Millisecond, "period of the grid of a plant (default 5ms); a bench has its own")
	a.choice(&c.Scheme, "scheme", "of a plant: complete (the default) or papers, as in sim; a bench has its own", "complete", "papers")
	a.choice(&c.Form, "form", "of a plant: projected (the default) or held, as in sim", "projected", "held")
	a.BoolVar(&c.Matrices, "matrices", false, "print the matrices of a plant with the names of rows and columns")
	a.BoolVar(&c.Strict, "strict", false, "refuse a database that does not keep to the format, instead of warning line by line")
	a.StringVar(&c.Scenario, "scenario", "", "say what is understood of this scenario of the bench or plant, too")
	if err := a.parse(list, 1, 1000, os.Stdout); err != nil {
		return err
	}
	c.Step = *step
	var all error
	for _, name := range a.names {
		all = errors.Join(all, c.File(name))
	}
	return all
}
