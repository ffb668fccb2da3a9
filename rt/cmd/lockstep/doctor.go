package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"lockstep/deploy"
	"lockstep/rt/bench"
	"lockstep/sched"
)

const doctorUsage = "doctor [-json] [-cpu N] [-priority 80] [-timer timerfd] [-bus NAME,...] [-root DIR]"

func runDoctor(list []string) error {
	a := newArgs("doctor", doctorUsage)
	ask := deploy.Ask{Timer: sched.Timerfd}
	asJSON := a.Bool("json", false, "print one JSON object")
	root := a.String("root", "/", "judge the files of another host, below `DIR`")
	a.IntVar(&ask.CPU, "cpu", -1, "the CPU of the loop (default: as run chooses it)")
	a.IntVar(&ask.Priority, "priority", 80, "the priority of the loop, SCHED_FIFO 1 to 99")
	a.choice(&ask.Timer, "timer", "what the loop sleeps with: timerfd (the default) or nanosleep", sched.Timerfd, sched.Nanosleep)
	a.Func("bus", "CAN interfaces that must be up: `NAME,...`", func(s string) error {
		ask.Buses = append(ask.Buses, strings.Split(s, ",")...)
		return nil
	})
	if err := a.parse(list, 0, 0, os.Stdout); err != nil {
		return err
	}
	if ask.CPU < -1 {
		return usageError{fmt.Sprintf("doctor: -cpu %d: it must be 0 or more", ask.CPU)}
	}
	if ask.Priority < 1 || ask.Priority > 99 {
		return usageError{fmt.Sprintf("doctor: -priority %d: it must be 1 to 99", ask.Priority)}
	}
	d, err := deploy.Doctor(*root, ask)
	if err != nil {
		return err
	}
	write := d.Text
	if *asJSON {
		write = d.JSON
	}
	if err := write(os.Stdout); err != nil {
		return err
	}
	if !d.Fit {
		return &bench.Exit{Code: 3, Err: errors.New("the host is not fit: do what is marked MUST, or run with -besteffort")}
	}
	return nil
}
