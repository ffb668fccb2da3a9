package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"lockstep/io/record"
	"lockstep/rt/virtual"
)

func defineSim(a *args) func() error {
	var s virtual.Simulation
	length := a.span("for 25s", 0,
		"how long, like 25s; without it that of the scenario, or to the last row of -in, otherwise to that "+
			"of the plant's tables (10s more if they still change there), 10s if there are none")
	step := a.gridFlags(&s.Scheme, &s.Form)
	a.scenarioFlags(&s.Scenario, &s.JUnit)
	a.StringVar(&s.Record, "record FILE", "", "of a bench: write the record to this file, as run does")
	a.StringVar(&s.In, "in FILE.csv", "",
		"inputs: a CSV file with the columns time[s] and name[unit], held between rows; or the name of "+
			"embedded ones")
	a.StringVar(&s.Out, "out FILE.csv", "",
		"write every port at every grid point to this CSV file; - is the standard output")
	a.StringVar(&s.Events, "events FILE.csv", "", "write every change of a friction element's state to this CSV file")
	a.IntVar(&s.Every, "every N", 1, "write every N-th grid point only")
	a.StringVar(&s.Report, "report FILE.json", "", "write the report to this file, as JSON")

	return func() error {
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
			if report.Scenario != nil {
				report.Scenario.Text(os.Stdout)
			}
		}

		return err
	}
}

func defineReplay(a *args) func() error {
	out := a.String("out FILE.csv", "", "write every port of every tick to this CSV file; - is the standard output")

	return func() error {
		same, err := virtual.Replay{Record: a.names[0], Out: *out}.Run()
		if err != nil {
			return err
		}
		if *out == "-" {
			fmt.Fprintln(os.Stderr, same)
			return nil
		}

		fmt.Println(same)
		return nil
	}
}

func defineExport(a *args) func() error {
	a.needed = "o"
	file := a.String("o FILE", "", "the file to write")
	format := ""
	a.choice(&format, "format", "without it the file's name tells: .log (candump), .asc, .blf, .mf4, .csv", record.Formats()...)

	return func() error {
		if format == "" {
			of := map[string]string{".log": "candump", ".asc": "asc", ".blf": "blf", ".mf4": "mdf4", ".csv": "csv"}
			format = of[strings.ToLower(filepath.Ext(*file))]
		}

		if format == "" {
			return usageError{fmt.Sprintf("export: unknown format of %q; use .log, .asc, .blf, .mf4 or .csv, or -format", *file)}
		}
		r, err := record.Open(a.names[0])
		if err != nil {
			return err
		}
		defer r.Close()
		f, err := os.Create(*file)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		defer f.Close()
		if err := record.Export(r, format, f); err != nil {
			return exit1(err)
		}
		if torn := r.Torn(); torn != "" {
			fmt.Fprintf(os.Stderr, "lockstep: %s: %s\n", a.names[0], torn)
		}
		return f.Close()
	}
}
