package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"lockstep/deploy"
	"lockstep/model/plants"
	"lockstep/model/units"
	"lockstep/rt/bench"
	"lockstep/rt/check"
	"lockstep/rt/host"
	"lockstep/rt/unitprogram"
)

func defineCheck(a *args) func() error {
	c := check.Check{Out: stdout}
	c.Warn = func(text string) {
		c.Progress.Print(func() { fmt.Fprintln(host.Fold(os.Stderr), "lockstep: warning:", text) })
	}
	step := a.gridFlags(&c.Scheme, &c.Form)
	a.BoolVar(&c.Matrices, "matrices", false, "print the matrices of a plant with the names of rows and columns, and every start value")
	a.BoolVar(&c.Strict, "strict", false,
		"refuse a database that deviates from the format, instead of warning line by line")
	a.StringVar(&c.Scenario, "scenario SCENARIO|FILE", "",
		"describe this scenario of the bench or plant, too")
	set, start := a.setFlags()

	return func() error {
		c.Progress = interruptible("check")
		c.Step, c.Set, c.Start = cmp.Or(*step, bench.PlantPeriod), *set, *start
		var all error
		for _, name := range a.operands {
			all = errors.Join(all, c.File(name))
		}
		return all
	}
}

// embeddedProgram is a file for control units that are programs.
type embeddedProgram struct {
	name, about string
	text        []byte
}

// programs lists the embedded files for control units that are programs.
func programs() []embeddedProgram {
	return []embeddedProgram{
		{"lockstep.h", "Header for a control unit in C", unitprogram.Header},
		{"tcu.c", "A control unit in C that stays in first gear", unitprogram.Example},
		{"powershift.py", "The powershift control unit in Python", deploy.PowershiftUnit},
	}
}

func definePlants(a *args) func() error {
	return func() error {
		if len(a.operands) == 0 {
			w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
			for _, e := range plants.List() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, e.Kind, e.About)
			}
			for _, p := range programs() {
				fmt.Fprintf(w, "%s\tprogram\t%s\n", p.name, p.about)
			}
			return w.Flush()
		}
		for _, p := range programs() {
			if p.name == a.operands[0] {
				_, err := plainOut.Write(p.text)
				return err
			}
		}

		data, err := plants.Read(a.operands[0])
		if err != nil {
			return fmt.Errorf("%w%s", err, units.Meant(a.operands[0], plants.Names()))
		}
		_, err = plainOut.Write(data)
		return err
	}
}
