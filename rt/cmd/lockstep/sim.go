package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lockstep/io/record"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/virtual"
)

const aboutSI = "write values in SI units, not in the units that the plant file declares"

func defineSim(a *args) func() error {
	var s virtual.Simulation
	length := a.duration("for 25s", 0,
		"duration, such as 25s; without it to the end of the scenario or the cycle, or to the last row of -in, or to the "+
			"last row of the plant's tables (10s more if they still change there), or 10s")
	step := a.gridFlags(&s.Scheme, &s.Form)
	a.scenarioFlags(&s.Scenario, &s.Cycle, &s.JUnit)
	a.outputVar(&s.Record, "record FILE", "write the record of a bench to this file, as run does")
	a.StringVar(&s.In, "in FILE.csv", "",
		"inputs: a CSV file with the columns time[s] and name[unit], constant between rows; or the name of "+
			"embedded inputs")
	a.outputVar(&s.Out, "out FILE.csv",
		"write every port at every grid point to this CSV file; - is the standard output")
	a.outputVar(&s.Events, "events FILE.csv", "write every change of a friction element's mode to this CSV file")
	a.IntVar(&s.Every, "every N", 1, "write only every N-th grid point")
	a.BoolVar(&s.SI, "si", false, aboutSI)
	a.outputVar(&s.Report, "report FILE.json", "write the report to this file, as JSON")
	a.BoolVar(&s.Door, "door", false,
		"open the door of a bench for lockstep ctl and other clients; the run advances only when a client asks, and "+
			"without -for and -scenario it lasts until one ends it")
	set, start := a.setFlags()

	return func() error {
		if s.Every < 1 {
			return usageError{"sim: -every must be at least 1"}
		}
		if err := checkScenarioFlags("sim", s.Scenario, s.Cycle, s.JUnit); err != nil {
			return err
		}
		s.Plant, s.For, s.Step, s.Set, s.Start = a.operands[0], *length, *step, *set, *start
		if !s.Door {
			s.Progress = progressLine("sim", s.Out, s.Events)
		}
		report, err := s.Run()
		if report != nil && s.Out != "-" && s.Events != "-" {
			out := stdout
			report.Text(out)
			if report.Scenario != nil {
				report.Scenario.Text(out)
			}
		}

		return err
	}
}

func defineReplay(a *args) func() error {
	out := a.output("out FILE.csv", "write every port of every tick to this CSV file; - is the standard output")
	si := a.Bool("si", false, aboutSI)

	return func() error {
		line := interruptible("replay", *out)
		same, err := virtual.Replay{Record: a.operands[0], Out: *out, SI: *si, Progress: line.BeginReading(a.operands[0])}.Run()
		line.End()
		if err != nil {
			return err
		}
		if *out == "-" {
			fmt.Fprintln(host.Fold(os.Stderr), same)
			return nil
		}

		fmt.Fprintln(stdout, same)
		return nil
	}
}

func defineExport(a *args) func() error {
	a.required = "o"
	file := a.output("o FILE", "output file")
	si := a.Bool("si", false, aboutSI)
	partial := a.Bool("partial", false, "accept a record with gaps or without its end: name what is missing and exit with 0, not 1")
	format := ""
	a.choice(&format, "format", "default: by the file name, .log (candump), .asc, .blf, .mf4 or .csv", record.Formats()...)

	return func() error {
		if format == "" {
			of := map[string]string{".log": "candump", ".asc": "asc", ".blf": "blf", ".mf4": "mdf4", ".csv": "csv"}
			format = of[strings.ToLower(filepath.Ext(*file))]
		}

		if format == "" {
			return usageError{fmt.Sprintf("export: unknown format %q; use .log, .asc, .blf, .mf4 or .csv, or -format", filepath.Ext(*file))}
		}
		if err := bench.CheckFile("export", a.operands[0], "record"); err != nil {
			return err
		}
		r, err := record.Open(a.operands[0])
		if err != nil {
			return err
		}
		defer r.Close()
		if err := bench.AddLayouts(&r.Header); err != nil {
			return fmt.Errorf("export: %w", err)
		}
		if *si {
			r.Header.DropDeclaredUnits()
		}
		kind := map[string]string{"candump": "log", "asc": "log", "blf": "BLF", "mdf4": "MDF", "csv": "inputs"}[format]
		f, err := bench.CreateResult(*file, 0, kind)
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		defer f.Close()
		var gaps *record.GapError
		line := interruptible("export")
		r.Progress = line.BeginReading(a.operands[0])
		err = record.Export(r, format, f)
		line.End()
		if err != nil && !errors.As(err, &gaps) {
			return exit1(err)
		}
		if err := f.Commit(); err != nil { // what a damaged record still holds is complete
			return exit1(err)
		}
		if gaps == nil {
			return nil
		}
		if !*partial {
			return exit1(gaps)
		}
		for line := range strings.Lines(gaps.Error()) {
			fmt.Fprintln(host.Fold(os.Stderr), "lockstep: warning:", strings.TrimSpace(line))
		}
		return nil
	}
}
