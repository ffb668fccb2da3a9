package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"lockstep/deploy"
	"lockstep/rt/bench"
)

const soakUsage = "soak BENCH [-for 1h] [-bus NAME] [-unitbus NAME] [-besteffort] [-report FILE.json] [-load=false]"

func runSoak(list []string) error {
	a := newArgs("soak", soakUsage)
	s := &bench.Soak{}
	o := bench.Options{Out: os.Stdout, Every: time.Minute, Soak: s}
	length := a.span("for", time.Hour, "how long, 10s at least (default 1h)")
	a.busFlag(&o.Bus)
	a.StringVar(&s.UnitBus, "unitbus", "", "CAN interface of the virtual control unit where it is another one, as on a looped pair of cards")
	a.BoolVar(&o.BestEffort, "besteffort", false, "run on a real bus without the rights of a real-time process, and say so")
	a.StringVar(&o.Report, "report", "", "write the closing report to this file, as JSON, with the verdict under soak")
	load := a.Bool("load", true, "load the CPUs besides the loop's meanwhile: "+strings.Join(deploy.Loads(), ", "))
	if err := a.parse(list, 1, 1, os.Stdout); err != nil {
		return err
	}
	if *length < bench.Shortest {
		return usageError{fmt.Sprintf("soak: -for %v: at least %v are needed to see what grows", *length, bench.Shortest)}
	}
	o.For = *length
	if *load {
		s.Load = startLoad
	}
	b, err := bench.Load(a.names[0])
	if err != nil {
		return err
	}
	return bench.Run(b, o)
}

// startLoad starts every kind of load.
func startLoad(cpus []int) (what string, stop func() error, err error) {
	stop, err = deploy.StartLoad(cpus, deploy.Loads()...)
	return strings.Join(deploy.Loads(), ", "), stop, err
}
