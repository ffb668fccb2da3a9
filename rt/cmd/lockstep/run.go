package main

import (
	"os"
	"strings"
	"time"

	"lockstep/deploy/load"
	"lockstep/rt/bench"
	"lockstep/rt/gen"
	"lockstep/rt/supervisor"
)

const runUsage = "run [BENCH.yaml] [-for 10s] [-bus NAME] [-wait 30s] [-besteffort] [-kernel table|generated|FILE] [-scenario FILE] [-junit FILE.xml] [-record FILE] [-report FILE.json]"

// demo is the bench of `lockstep run` without a name.
const demo = "powershift-bench"

func runBench(list []string) error {
	a := newArgs("run", runUsage)
	o := supervisor.Options{Out: os.Stdout}
	length := a.span("for", 0, "how long, like 10s; without it until Ctrl-C")
	a.hostFlags(&o.Bus, &o.BestEffort)
	wait := a.span("wait", 0, "wait so long at most, like 30s, for interfaces that are not there or not up yet, as after a boot")
	a.kernelFlag(&o.Choose)
	a.StringVar(&o.Report, "report", "", "write the closing report to this file, as JSON")
	a.StringVar(&o.Record, "record", "", "write the record to this file: lockstep replay runs it again, lockstep export writes other formats")
	a.scenarioFlags(&o.Scenario, &o.JUnit)
	if err := a.parse(list, 0, 1, os.Stdout); err != nil {
		return err
	}
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

// kernelFlag is -kernel of what runs a bench.
func (a *args) kernelFlag(choose *bench.Chooser) {
	a.Func("kernel", "what ticks: table (the default), generated (generated and built here, once), or a target executable: `FILE`", func(s string) error {
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
	a.StringVar(scenario, "scenario", "", "faults, stimuli and expectations: a file, or the name of an embedded scenario; its verdict is part of the exit code")
	a.StringVar(junit, "junit", "", "write the verdict on the scenario to this file, as JUnit XML")
}

// hostFlags are -bus, which may be given several times, and -besteffort of what runs a
// bench.
func (a *args) hostFlags(bus *[]string, bestEffort *bool) {
	a.Func("bus", "CAN interface to use, like vcan0; BUS=vcan0 where the bench has several (repeatable)", func(s string) error {
		*bus = append(*bus, s)
		return nil
	})
	a.BoolVar(bestEffort, "besteffort", false, "run on a real bus without the rights of a real-time process, and say so")
}

// trialFlags are -unitbus and -load of what tries a bench with its control unit.
func (a *args) trialFlags(unitBus *string, loaded *bool) {
	a.StringVar(unitBus, "unitbus", "", "CAN interface of the virtual control unit where it is another one, as on a looped pair of cards")
	a.BoolVar(loaded, "load", true, "load the CPUs besides the loop's meanwhile: "+strings.Join(load.Kinds(), ", "))
}
