package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"lockstep/deploy/load"
	"lockstep/rt/bench"
	"lockstep/rt/gen"
	"lockstep/rt/soak"
	"lockstep/rt/supervisor"
)

// demo is the bench of `lockstep run` without a name.
const demo = "powershift-bench"

func defineRun(a *args) func() error {
	o := supervisor.Options{Out: os.Stdout}
	length := a.span("for 10s", 0, "how long, like 10s; without it until Ctrl-C")
	a.hostFlags(&o.Bus, &o.BestEffort)
	wait := a.span("wait 30s", 0,
		"wait so long at most, like 30s, for interfaces that are not there or not up yet, as after a boot")
	a.kernelFlag(&o.Choose)
	a.StringVar(&o.Report, "report FILE.json", "", "write the closing report to this file, as JSON")
	a.StringVar(&o.Record, "record FILE", "",
		"write the record to this file: lockstep replay runs it again, lockstep export writes other formats")
	a.scenarioFlags(&o.Scenario, &o.JUnit)

	return func() error {
		if o.JUnit != "" && o.Scenario == "" {
			return usageError{"run: -junit is the verdict on a scenario: name one with -scenario"}
		}
		o.For, o.Wait = *length, *wait
		if os.Getenv("NOTIFY_SOCKET") != "" { // a service's lines are kept, and nobody looks at them now
			o.Every = time.Minute
			o.Older = 3 // it is started again when it fails, and what led to that is to be seen
		}

		name := demo
		if len(a.names) == 1 {
			name = a.names[0]
		}
		b, err := bench.Load(name)
		if err != nil {
			return err
		}
		return supervisor.Run(b, o)
	}
}

// kernelFlag is -kernel of what runs a bench.
func (a *args) kernelFlag(choose *bench.Chooser) {
	text := "what ticks: table (the default), generated (generated and built here, once), or a target executable"
	a.Func("kernel table|generated|FILE", text, func(s string) error {
		*choose = kernelOf(s)
		return nil
	})
}

// kernelOf is the kernel that a word means.
func kernelOf(word string) bench.Chooser {
	switch word {
	case "table":
		return nil
	case "generated":
		return gen.Generated
	}

	return gen.FromFile(word)
}

// scenarioFlags are -scenario and -junit of what runs a bench.
func (a *args) scenarioFlags(scenario, junit *string) {
	a.StringVar(scenario, "scenario SCENARIO|FILE", "",
		"faults, stimuli and expectations: a file, or the name of an embedded scenario; its verdict is part "+
			"of the exit code")
	a.StringVar(junit, "junit FILE.xml", "", "write the verdict on the scenario to this file, as JUnit XML")
}

// hostFlags are -bus, which may be given several times, and -besteffort of what runs a
// bench.
func (a *args) hostFlags(bus *[]string, bestEffort *bool) {
	a.Func("bus INTERFACE",
		"CAN interface to use, like vcan0; BUS=vcan0 where the bench has several (repeatable)", func(s string) error {
			*bus = append(*bus, s)
			return nil
		})
	a.BoolVar(bestEffort, "besteffort", false, "run on a real bus without the rights of a real-time process, and say so")
}

// loadFlags are -unitbus and -load of what runs a bench with its control unit under a load.
func (a *args) loadFlags(unitBus *string, loaded *bool) {
	a.StringVar(unitBus, "unitbus INTERFACE", "",
		"CAN interface of the virtual control unit where it is another one, as on a looped pair of cards")
	a.BoolVar(loaded, "load", true, "load the CPUs besides the loop's meanwhile: "+strings.Join(load.Kinds(), ", "))
}

func defineSoak(a *args) func() error {
	s := &soak.Soak{Options: supervisor.Options{Out: os.Stdout, Every: time.Minute}}
	o := &s.Options
	length := a.span("for 1h", time.Hour, "how long, all legs and starts together, 10s at least (default 1h)")
	leg := a.span("leg 10m", 10*time.Minute, "the longest leg, 10s at least (default 10m); each is a run of its own")
	scenarios := a.String("scenarios LIST", "",
		"scenarios between the plain legs: files or embedded ones, A,B,C, or none; without it those listed "+
			"for the bench")
	faults := a.Bool("faults", true, "between the plain legs one fault of every kind that the bench has a place for")
	a.StringVar(&s.State, "state FILE", "",
		"keep what was seen so far in this file: the same command goes on from there (default "+
			"FILE.json.state)")
	a.BoolVar(&s.Fresh, "fresh", false, "start anew, whatever the state file holds")
	a.StringVar(&o.Record, "record DIR", "", "write the record of each leg to this folder")
	a.IntVar(&s.Keep, "keep N", 3, "how many records to keep: the latest, and as many of broken legs")
	load := true
	a.hostFlags(&o.Bus, &o.BestEffort)
	a.loadFlags(&s.UnitBus, &load)
	a.kernelFlag(&o.Choose)
	a.StringVar(&o.Report, "report FILE.json", "",
		"write the closing report to this file, as JSON, with the verdict under soak")

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
		b, err := bench.Load(a.names[0])
		if err != nil {
			return err
		}
		return s.RunSegments(b)
	}
}

// startLoad starts every kind of load.
func startLoad(cpus []int) (what string, stop func() error, err error) {
	stop, err = load.Start(cpus, load.Kinds()...)
	return strings.Join(load.Kinds(), ", "), stop, err
}
