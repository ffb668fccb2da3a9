package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"lockstep/deploy/load"
	"lockstep/model/cycle"
	"lockstep/model/plantfile"
	"lockstep/rt/bench"
	"lockstep/rt/gen"
	"lockstep/rt/soak"
	"lockstep/rt/supervisor"
)

// demo is the bench of `lockstep run` without a name.
const demo = "powershift-bench"

func defineRun(a *args) func() error {
	o := supervisor.Options{Out: os.Stdout}
	length := a.duration("for 10s", 0, "duration, such as 10s; without it the run lasts until Ctrl-C")
	a.hostFlags(&o.Bus, &o.BestEffort)
	wait := a.duration("wait 30s", 0,
		"longest wait, such as 30s, for interfaces that do not exist or are not up yet, as after a boot")
	a.kernelFlag(&o.Choose)
	a.outputVar(&o.Report, "report FILE.json", "write the closing report to this file, as JSON")
	a.outputVar(&o.Record, "record FILE",
		"write the record to this file, for lockstep replay and lockstep export")
	a.scenarioFlags(&o.Scenario, &o.Cycle, &o.JUnit)
	page := a.pageFlag()
	set, start := a.setFlags()

	return func() error {
		if err := checkScenarioFlags("run", o.Scenario, o.Cycle, o.JUnit); err != nil {
			return err
		}
		o.For, o.Wait = *length, *wait
		if os.Getenv("NOTIFY_SOCKET") != "" { // a service: its lines go to the journal
			o.Every = time.Minute
			o.Older = 3 // records of failed runs, preserved when the service starts again
		}

		name := demo
		if len(a.operands) == 1 {
			name = a.operands[0]
		}
		b, err := bench.Load(name)
		if err != nil {
			return err
		}
		b.Set, b.StartSet = *set, *start
		o.Page, o.Examine, o.Progress = pagePort(*page, b.Page), examineHost, progressLine("run")
		restoreLeft()
		return supervisor.Run(b, o)
	}
}

// setFlags declares -set and -start, which are repeatable, of a command that reads a plant.
func (a *args) setFlags() (set, start *[]plantfile.Assignment) {
	declare := func(name, text string) *[]plantfile.Assignment {
		list := new([]plantfile.Assignment)
		a.Func(name, text, func(s string) error {
			one, err := plantfile.ParseAssignment(s)
			*list = append(*list, one)
			return err
		})
		return list
	}
	set = declare("set ASSIGNMENT", "NAME=VALUE of a parameter of the plant file, such as m_car=2000kg (repeatable)")
	start = declare("start ASSIGNMENT", "NAME=VALUE of a start preset of the plant file, such as v=80km/h (repeatable)")
	return set, start
}

// pageFlag declares -page of a command that supervises a run.
func (a *args) pageFlag() *string {
	page := new(string)
	a.Func("page PORT|off", "TCP port of the live page on 127.0.0.1, 0 for any free one, or off; without it "+
		"the bench file says so, else any free port on a terminal", func(s string) (err error) {
		*page, err = bench.ParsePage(s)
		return err
	})
	return page
}

// pagePort returns the port of the live page; "": there is no page. The flag counts before the bench file,
// and "" says nothing.
func pagePort(flag, ofBench string) string {
	switch port := cmp.Or(flag, ofBench); {
	case port == "off", port == "" && !term.IsTerminal(int(os.Stdout.Fd())):
		return ""
	default:
		return cmp.Or(port, "0")
	}
}

// kernelFlag declares -kernel of a command that runs a bench.
func (a *args) kernelFlag(choose *bench.Chooser) {
	text := "kernel in use: table (the default), generated (generated and built here, once), or a target executable"
	a.Func("kernel table|generated|FILE", text, func(s string) error {
		*choose = kernelOf(s)
		return nil
	})
}

// kernelOf returns the chooser of a -kernel value; nil is the table kernel.
func kernelOf(word string) bench.Chooser {
	switch word {
	case "table":
		return nil
	case "generated":
		return gen.Generated
	}

	return gen.FromFile(word)
}

// scenarioFlags declares -scenario, -cycle and -junit of a command that runs a bench.
func (a *args) scenarioFlags(scenario, drive, junit *string) {
	a.StringVar(scenario, "scenario SCENARIO|FILE", "",
		"faults, stimuli and expectations: a file, or the name of an embedded scenario; a failed verdict "+
			"gives exit code 1")
	a.StringVar(drive, "cycle CYCLE|FILE.csv", "",
		"a driver follows this drive cycle ("+strings.Join(cycle.Names(), ", ")+") with pedals and lever: see lockstep "+
			"help drive-cycles; a violation of its "+
			"tolerance gives exit code 1")
	a.outputVar(junit, "junit FILE.xml", "write the verdict on the scenario or the cycle to this file, as JUnit XML")
}

// checkScenarioFlags refuses -junit without a verdict, and -cycle beside -scenario.
func checkScenarioFlags(command, scenario, cycle, junit string) error {
	switch {
	case scenario != "" && cycle != "":
		return usageError{command + ": -cycle is for a run without -scenario: name the cycle in the scenario (driver: {cycle: " + cycle + "})"}
	case junit != "" && scenario == "" && cycle == "":
		return usageError{command + ": -junit writes the verdict on a scenario: name one with -scenario"}
	}
	return nil
}

// hostFlags declares -bus, which is repeatable, and -besteffort of a command that runs a bench.
func (a *args) hostFlags(bus *[]string, bestEffort *bool) {
	a.Func("bus INTERFACE",
		"CAN interface to use, such as vcan0; BUS=vcan0 where the bench has several buses (repeatable)", func(s string) error {
			*bus = append(*bus, s)
			return nil
		})
	a.BoolVar(bestEffort, "besteffort", false, "run on a real bus even without real-time rights, and report what is missing")
}

// loadFlags declares -unitbus and -load of a command that runs a bench with its control unit.
func (a *args) loadFlags(unitBus *string, loaded *bool) {
	a.StringVar(unitBus, "unitbus INTERFACE", "",
		"CAN interface of the virtual control unit if it differs from -bus, as on a looped pair of cards")
	a.BoolVar(loaded, "load", true, "load all CPUs except the loop's during the run: "+strings.Join(load.Kinds(), ", "))
}

func defineSoak(a *args) func() error {
	s := &soak.Soak{Options: supervisor.Options{Out: os.Stdout, Every: time.Minute}}
	o := &s.Options
	length := a.duration("for 1h", time.Hour, "total duration of all segments and starts, at least 10s (default 1h)")
	leg := a.duration("leg 10m", 10*time.Minute, "longest segment, at least 10s (default 10m); each segment is a run of its own")
	scenarios := a.String("scenarios LIST", "",
		"scenarios between the plain segments: files or embedded scenarios, A,B,C, or none; without it the "+
			"scenarios listed for the bench")
	faults := a.Bool("faults", true, "inject one fault of every kind that fits the bench, between the plain segments")
	a.outputVar(&s.State, "state FILE",
		"file of the state so far, from which the same command continues (default: name of the -report "+
			"file and .state)")
	a.BoolVar(&s.Fresh, "fresh", false, "start from the beginning and ignore the state file")
	a.outputVar(&o.Record, "record DIR", "write the record of each segment to this folder")
	a.IntVar(&s.Keep, "keep N", 3, "number of records to preserve: the latest, and as many of failed segments")
	load := true
	a.hostFlags(&o.Bus, &o.BestEffort)
	a.loadFlags(&s.UnitBus, &load)
	a.kernelFlag(&o.Choose)
	a.outputVar(&o.Report, "report FILE.json",
		"write the closing report to this file, as JSON, with the verdict under soak")
	set, start := a.setFlags()

	return func() error {
		if *length < soak.MinDuration {
			return usageError{fmt.Sprintf("soak: -for %v: at least %v are needed to see what grows", *length, soak.MinDuration)}
		}
		if *leg < soak.MinDuration {
			return usageError{fmt.Sprintf("soak: -leg %v: at least %v are needed to see what grows", *leg, soak.MinDuration)}
		}
		if s.Keep < 1 {
			return usageError{fmt.Sprintf("soak: -keep %d: at least 1 record is kept; without -record none is written", s.Keep)}
		}
		o.For, s.Segment, s.NoFaults = *length, *leg, !*faults
		if *scenarios != "" {
			s.Scenarios = strings.Split(*scenarios, ",")
		}
		if *scenarios == "none" {
			s.Scenarios = []string{}
		}
		if s.State == "" && o.Report != "" {
			s.State = o.Report + ".state"
		}
		if load {
			s.Load = startLoad
		}
		b, err := bench.Load(a.operands[0])
		if err != nil {
			return err
		}
		b.Set, b.StartSet = *set, *start
		o.Progress = progressLine("soak")
		return s.RunSegments(b)
	}
}

// startLoad starts every kind of load on the CPUs and returns their names.
func startLoad(cpus []int) (what string, stop func() error, err error) {
	stop, err = load.Start(cpus, load.Kinds()...)
	return strings.Join(load.Kinds(), ", "), stop, err
}
