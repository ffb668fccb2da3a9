package main

import (
	"errors"
	"fmt"
	"os"

	"lockstep/deploy/doctor"
	"lockstep/rt/host"
	"lockstep/sched"
)

const doctorUsage = "doctor [-fix [-yes] [-keep CHECK,...] | -undo] [-json] [-cpu N] [-priority 80] [-timer timerfd] [-bus NAME,...] [-state FILE] [-root DIR]"

// doctorArgs are what the command line asks of the doctor.
type doctorArgs struct {
	ask       doctor.Ask
	json      bool
	root      string
	fix, undo bool
	yes       bool // confirmed
	keep      []string
	state     string
}

func runDoctor(list []string) error {
	a := newArgs("doctor", doctorUsage)
	d := doctorArgs{ask: doctor.Ask{Timer: sched.Timerfd}}
	a.BoolVar(&d.json, "json", false, "print one JSON object")
	a.StringVar(&d.root, "root", "/", "judge the files of another host, below `DIR`")
	a.IntVar(&d.ask.CPU, "cpu", -1, "the CPU of the loop (default: the one that run chooses while no other bench runs)")
	a.IntVar(&d.ask.Priority, "priority", 80, "the priority of the loop, SCHED_FIFO 1 to 99")
	a.choice(&d.ask.Timer, "timer", "what the loop sleeps with: timerfd (the default) or nanosleep", sched.Timerfd, sched.Nanosleep)
	a.several(&d.ask.Buses, "bus", "CAN interfaces that must be up: `NAME,...`")
	a.BoolVar(&d.fix, "fix", false, "show what can be changed while the host runs, and change it once that is confirmed")
	a.BoolVar(&d.yes, "yes", false, "with -fix: confirmed, for scripts")
	a.several(&d.keep, "keep", "with -fix: checks whose findings are left alone: `CHECK,...`, like throttling,smt")
	a.BoolVar(&d.undo, "undo", false, "restore what -fix has changed")
	a.StringVar(&d.state, "state", doctor.UndoFile, "the `FILE` that says how to undo the changes")
	if err := a.parse(list, 0, 0, os.Stdout); err != nil {
		return err
	}
	if err := d.check(); err != nil {
		return err
	}
	switch {
	case d.fix:
		return d.runFix()
	case d.undo:
		return d.runUndo()
	}
	found, err := doctor.Examine(d.root, d.ask)
	if err != nil {
		return err
	}
	write := found.Text
	if d.json {
		write = found.JSON
	}
	if err := write(os.Stdout); err != nil {
		return err
	}
	if !found.Fit {
		return &host.Exit{Code: 3, Err: errors.New("doctor: the host is not fit: do what is marked MUST, or run with -besteffort")}
	}
	return nil
}

// check refuses flags that are out of range or do not go together.
func (d *doctorArgs) check() error {
	text := ""
	switch {
	case d.ask.CPU < -1:
		text = fmt.Sprintf("-cpu %d: it must be 0 or more", d.ask.CPU)
	case d.ask.Priority < 1 || d.ask.Priority > 99:
		text = fmt.Sprintf("-priority %d: it must be 1 to 99", d.ask.Priority)
	case d.fix && d.undo:
		text = "-fix and -undo are opposites: give one of them"
	case d.yes && !d.fix:
		text = "-yes confirms -fix, which is not given"
	case len(d.keep) > 0 && !d.fix:
		text = "-keep restricts -fix, which is not given"
	case d.root != "/" && (d.undo || d.yes):
		text = fmt.Sprintf("-root %s: only the running host is changed; -fix without -yes shows what would be done on another one", d.root)
	default:
		return nil
	}
	return usageError{"doctor: " + text}
}
