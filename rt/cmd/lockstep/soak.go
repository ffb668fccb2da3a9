package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"lockstep/deploy/load"
	"lockstep/rt/bench"
	"lockstep/rt/soak"
	"lockstep/rt/supervisor"
)

const soakUsage = "soak BENCH [-for 1h] [-leg 10m] [-scenarios LIST] [-faults=false] [-bus NAME] [-unitbus NAME] [-besteffort] [-kernel table|generated|FILE] " +
	"[-report FILE.json] [-state FILE] [-fresh] [-record DIR] [-keep N] [-load=false]"

func runSoak(list []string) error {
	a := newArgs("soak", soakUsage)
	s := &soak.Soak{Options: supervisor.Options{Out: os.Stdout, Every: time.Minute}}
	o := &s.Options
	length := a.span("for", time.Hour, "how long, all legs and starts together, 10s at least (default 1h)")
	leg := a.span("leg", 10*time.Minute, "the longest leg, 10s at least (default 10m); each is a run of its own")
	scenarios := a.String("scenarios", "", "scenarios between the plain legs: files or embedded ones, A,B,C, or none; without it those listed for the bench")
	faults := a.Bool("faults", true, "between the plain legs one fault of every kind that the bench has a place for")
	a.StringVar(&s.State, "state", "", "keep what was seen so far in this file: the same command goes on from there (default FILE.json.state)")
	a.BoolVar(&s.Fresh, "fresh", false, "start anew, whatever the state file holds")
	a.StringVar(&o.Record, "record", "", "write the record of each leg to this folder")
	a.IntVar(&s.Keep, "keep", 3, "how many records to keep: the latest, and as many of broken legs")
	load := true
	a.hostFlags(&o.Bus, &o.BestEffort)
	a.trialFlags(&s.UnitBus, &load)
	a.kernelFlag(&o.Choose)
	a.StringVar(&o.Report, "report", "", "write the closing report to this file, as JSON, with the verdict under soak")
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	if *length < soak.Shortest {
		return usageError{fmt.Sprintf("soak: -for %v: at least %v are needed to see what grows", *length, soak.Shortest)}
	}
	if *leg < soak.Shortest {
		return usageError{fmt.Sprintf("soak: -leg %v: at least %v are needed to see what grows", *leg, soak.Shortest)}
	}
	if s.Keep < 1 {
		return usageError{fmt.Sprintf("soak: -keep %d: at least 1 record is kept; without -record none is written", s.Keep)}
	}
	o.For, s.Leg, s.NoFaults = *length, *leg, !*faults
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

// startLoad starts every kind of load.
func startLoad(cpus []int) (what string, stop func() error, err error) {
	stop, err = load.Start(cpus, load.Kinds()...)
	return strings.Join(load.Kinds(), ", "), stop, err
}
