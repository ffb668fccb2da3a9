package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"lockstep/deploy/doctor"
	"lockstep/deploy/latency"
	"lockstep/rt/bench"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/sched"
)

// doctorArgs is the command line of doctor.
type doctorArgs struct {
	req       doctor.Requirements
	json      bool
	measure   bool          // the timers are measured
	period    time.Duration // period of the loop
	root      string
	fix, undo bool
	yes       bool     // changes confirmed on the command line
	keep      []string // names of the checks whose settings -fix does not change
	state     string   // file that holds the undo steps
}

func defineDoctor(a *args) func() error {
	d := doctorArgs{req: doctor.Requirements{Timer: sched.Timerfd}}
	a.BoolVar(&d.json, "json", false, "print one JSON object")
	a.StringVar(&d.root, "root DIR", "/", "check the files of another host, below DIR")
	a.IntVar(&d.req.CPU, "cpu N", -1,
		"CPU of the loop (default: the CPU that run would choose if no bench ran)")
	a.IntVar(&d.req.Priority, "priority N", 80, "SCHED_FIFO priority of the loop, 1 to 99")
	a.choice(&d.req.Timer, "timer",
		"timer of the loop: timerfd (the default) or nanosleep", sched.Timerfd, sched.Nanosleep)
	period := a.duration("period 1ms", time.Millisecond, "period of the loop, 100us to 100ms (default 1ms), for the measurement of its timers")
	a.BoolVar(&d.measure, "measure", true, "measure both timers, about 5 s; not with -fix, -undo and -root")
	a.list(&d.req.Buses, "bus INTERFACE,...", "CAN interfaces that must be up")
	a.BoolVar(&d.fix, "fix", false, "show what can be changed while the host runs, and change it after confirmation")
	a.BoolVar(&d.yes, "yes", false, "with -fix: change without asking, for scripts")
	a.list(&d.keep, "keep CHECK,...", "with -fix: do not change the settings of these checks, such as throttling,smt")
	a.BoolVar(&d.undo, "undo", false, "restore what -fix has changed")
	a.StringVar(&d.state, "state FILE", doctor.UndoFile, "file that holds the undo steps")

	return func() error {
		d.period = *period
		if err := d.check(); err != nil {
			return err
		}
		if d.root == "/" {
			restoreLeft()
		}
		switch {
		case d.fix:
			return d.runFix()
		case d.undo:
			return d.runUndo()
		}

		if d.measure && d.root == "/" {
			if err := d.compareTimers(); err != nil {
				return err
			}
		}
		found, err := doctor.Examine(d.root, d.req)
		if err != nil {
			return err
		}
		write := found.Text
		if d.json {
			write = found.JSON
		}
		if err := write(plainOut); err != nil {
			return err
		}
		if !found.Fit {
			return &host.Exit{Code: 3, Err: errors.New("doctor: host not fit: make the changes marked MUST, or run with -besteffort")}
		}
		return nil
	}
}

// compareTimers measures the timers. A host that refuses leaves the check without figures.
func (d *doctorArgs) compareTimers() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	l := latency.Measurement{Period: d.period, CPU: d.req.CPU, Priority: d.req.Priority}
	line := progressLine("doctor")
	showTurns(&l, line)
	c, err := l.CompareTimers(ctx)
	line.End()
	if ctx.Err() != nil {
		return exit1(errors.New("doctor: interrupted; without the measurement: -measure=false"))
	}
	if err != nil {
		c = &latency.TimerComparison{Reasons: []string{strings.TrimPrefix(err.Error(), "latency: ")}}
	}
	d.req.Timers = c
	return nil
}

// check refuses flags that are out of range or do not go together.
func (d *doctorArgs) check() error {
	text := ""
	switch {
	case d.req.CPU < -1:
		text = fmt.Sprintf("-cpu %d: it must be 0 or more", d.req.CPU)
	case d.req.Priority < 1 || d.req.Priority > 99:
		text = fmt.Sprintf("-priority %d: it must be 1 to 99", d.req.Priority)
	case d.fix && d.undo:
		text = "-fix and -undo are opposites: give one of them"
	case d.yes && !d.fix:
		text = "-yes confirms -fix, which is not given"
	case len(d.keep) > 0 && !d.fix:
		text = "-keep restricts -fix, which is not given"
	case d.root != "/" && (d.undo || d.yes):
		text = fmt.Sprintf("-root %s: only the running host can be changed; -fix without -yes shows the changes of another host", d.root)
	default:
		if err := latency.CheckPeriod(d.period); err != nil {
			text = strings.TrimPrefix(err.Error(), "latency: ")
			break
		}
		return nil
	}

	return usageError{"doctor: " + text}
}

// fixOutput is the output of `doctor -fix -json`.
type fixOutput struct {
	Plan  *doctor.Plan  `json:"plan"`
	Steps []doctor.Step `json:"steps"` // empty: nothing was changed
	Fit   bool          `json:"fit"`   // fitness after the changes
}

// undoOutput is the output of `doctor -undo -json`.
type undoOutput struct {
	Steps []doctor.Step `json:"steps"`
}

// runFix shows the possible changes and makes them after confirmation.
func (d *doctorArgs) runFix() error {
	p, err := doctor.NewPlan(d.root, d.req, d.keep)
	if err != nil {
		return refusal(err, nil)
	}
	if !d.json {
		if err := p.Text(plainOut); err != nil {
			return err
		}
	}

	var steps []doctor.Step
	confirmed := d.yes || len(p.Changes) == 0 || d.confirm(len(p.Changes))
	if confirmed {
		steps, err = p.Apply(d.state)
	} else {
		err = &host.Exit{Code: 3, Err: errors.New("doctor: nothing changed: -fix needs a yes on a terminal, or -yes")}
	}

	return errors.Join(d.report(p, steps), refusal(err, steps))
}

// confirm asks on the terminal whether to make the changes; false where there is no terminal.
func (d *doctorArgs) confirm(changes int) bool {
	if d.json || d.root != "/" || !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	fmt.Fprintf(plainOut, "\nmake these %d changes? [y/N] ", changes)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}

	return false
}

// report prints the result of each step and whether the host is fit now.
func (d *doctorArgs) report(p *doctor.Plan, steps []doctor.Step) error {
	now, err := doctor.Examine(d.root, d.req)
	if err != nil {
		return err
	}
	if d.json {
		return printJSON(fixOutput{p, append([]doctor.Step{}, steps...), now.Fit})
	}
	if len(steps) == 0 {
		return nil
	}
	fmt.Fprintln(plainOut)
	if err := doctor.StepsText(plainOut, steps); err != nil {
		return err
	}
	done, _, failed := doctor.Sum(steps)
	fmt.Fprintf(plainOut, "\n%d changed, %d failed; undo with: lockstep doctor -undo%s\n%s\n", done, failed, d.stateFlag(), now.Sum())
	return nil
}

func (d *doctorArgs) stateFlag() string {
	if d.state == doctor.UndoFile {
		return ""
	}
	return " -state " + d.state
}

// runUndo reverts the changes of -fix.
func (d *doctorArgs) runUndo() error {
	steps, err := doctor.Undo(d.root, d.state)
	var writeErr error
	switch {
	case d.json:
		writeErr = printJSON(undoOutput{append([]doctor.Step{}, steps...)})
	case len(steps) > 0:
		writeErr = doctor.StepsText(plainOut, steps)
		done, left, failed := doctor.Sum(steps)
		fmt.Fprintf(plainOut, "%d restored, %d left, %d failed\n", done, left, failed)
	case err == nil:
		fmt.Fprintln(plainOut, "nothing to undo")
	}

	return errors.Join(writeErr, refusal(err, steps))
}

// refusal returns err with exit code 3 if doctor refused all changes or if steps failed. Each failed
// step is a line of the error.
func refusal(err error, steps []doctor.Step) error {
	var r doctor.Refused
	failed := doctor.Failed(steps)
	if failed != nil || errors.As(err, &r) {
		return &host.Exit{Code: 3, Err: errors.Join(err, failed)}
	}
	return err
}

// examineHost judges this host as doctor does, for the loop of a run, which is a thread of it.
func examineHost(h *bench.Handover, loop int) (list []control.HostCheck, err error) {
	req := doctor.Requirements{CPU: h.Thread.CPU, Priority: h.Thread.Priority, Timer: h.Timer.Sleep, Loop: loop}
	for _, b := range h.Bench.Buses {
		if bench.IsHostInterface(b.Interface.Text) {
			req.Buses = append(req.Buses, b.Interface.Text)
		}
	}
	found, err := doctor.Examine("/", req)
	for _, c := range found.Checks {
		list = append(list, control.HostCheck{Name: c.Name, Level: string(c.Level), Verdict: string(c.Verdict), Found: c.Found,
			Wanted: c.Wanted, Why: c.Why, Command: c.Command})
	}
	return list, err
}
