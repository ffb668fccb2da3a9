package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"lockstep/deploy/doctor"
	"lockstep/rt/host"
)

// fixed is what `doctor -fix -json` prints.
type fixed struct {
	Plan  *doctor.Plan  `json:"plan"`
	Steps []doctor.Step `json:"steps"` // none: nothing was changed
	Fit   bool          `json:"fit"`   // in the end
}

// undone is what `doctor -undo -json` prints.
type undone struct {
	Steps []doctor.Step `json:"steps"`
}

// runFix shows what can be changed, and changes it once that is confirmed.
func (d *doctorArgs) runFix() error {
	p, err := doctor.NewPlan(d.root, d.ask, d.keep)
	if err != nil {
		return refusal(err)
	}
	if !d.json {
		if err := p.Text(os.Stdout); err != nil {
			return err
		}
	}
	var steps []doctor.Step
	confirmed := d.yes || len(p.Changes) == 0 || d.asked(len(p.Changes))
	if confirmed {
		steps, err = p.Apply(d.state)
	} else {
		err = &host.Exit{Code: 3, Err: errors.New("doctor: nothing was changed: -fix waits for a yes on a terminal, or for -yes")}
	}
	return errors.Join(refusal(err), d.tell(p, steps), failures(steps))
}

// asked asks on the terminal, if there is one.
func (d *doctorArgs) asked(changes int) bool {
	if d.json || d.root != "/" || !term.IsTerminal(int(os.Stdin.Fd())) {
		return false
	}
	fmt.Printf("\nmake these %d changes? [y/N] ", changes)
	answer, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true
	}
	return false
}

// tell prints what became of the plan, and how the host is now.
func (d *doctorArgs) tell(p *doctor.Plan, steps []doctor.Step) error {
	now, err := doctor.Examine(d.root, d.ask)
	if err != nil {
		return err
	}
	if d.json {
		return printJSON(fixed{p, append([]doctor.Step{}, steps...), now.Fit})
	}
	if len(steps) == 0 {
		return nil
	}
	fmt.Println()
	if err := doctor.StepsText(os.Stdout, steps); err != nil {
		return err
	}
	done, _, failed := doctor.Sum(steps)
	fmt.Printf("\n%d changed, %d failed; undo with: lockstep doctor -undo%s\n%s\n", done, failed, d.stateFlag(), now.Sum())
	return nil
}

func (d *doctorArgs) stateFlag() string {
	if d.state == doctor.UndoFile {
		return ""
	}
	return " -state " + d.state
}

// runUndo restores what -fix has changed.
func (d *doctorArgs) runUndo() error {
	steps, err := doctor.Undo(d.root, d.state)
	var said error
	switch {
	case d.json:
		said = printJSON(undone{append([]doctor.Step{}, steps...)})
	case len(steps) > 0:
		said = doctor.StepsText(os.Stdout, steps)
		done, left, failed := doctor.Sum(steps)
		fmt.Printf("%d restored, %d left, %d failed\n", done, left, failed)
	case err == nil:
		fmt.Println("nothing to undo")
	}
	return errors.Join(refusal(err), said, failures(steps))
}

// refusal gives what the host refuses its exit code.
func refusal(err error) error {
	var r doctor.Refused
	if errors.As(err, &r) {
		return &host.Exit{Code: 3, Err: err}
	}
	return err
}

// failures are the changes that the host refused, a line each.
func failures(steps []doctor.Step) error {
	if err := doctor.Failed(steps); err != nil {
		return &host.Exit{Code: 3, Err: err}
	}
	return nil
}
