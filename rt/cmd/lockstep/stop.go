package main

import (
	"errors"
	"fmt"
	"os"

	"lockstep/rt/control"
	"lockstep/rt/host"
)

const stopUsage = "stop BENCH|PROCESS [-now] | lockstep stop -all [-now]"

func runStop(list []string) error {
	a := newArgs("stop", stopUsage)
	all := a.Bool("all", false, "every run that this user may end")
	now := a.Bool("now", false, "kill the targets: the supervisors put the safe state on the buses")
	if err := a.parse(list, 0, 1, os.Stdout); err != nil {
		return err
	}
	if *all == (len(a.names) == 1) {
		return usageError{"stop: name one run, or all of them with -all; usage: lockstep " + stopUsage}
	}
	broken := 0
	err := control.Stop(a.names, *now, func(e *control.Ending) {
		fmt.Println(e)
		if !e.Clean && !*now {
			broken++
		}
	})
	if err == nil && broken > 0 {
		return &host.Exit{Code: 1, Err: errors.New("stop: the run was not clean")}
	}
	return err
}
