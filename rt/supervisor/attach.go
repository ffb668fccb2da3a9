package supervisor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Attach takes the place of a supervisor that has ended while its target went on:
// it shows the run, watches over it and reports at its end. which is the name of
// the bench or the target's process id; "" will do where there is one target.
func Attach(which string, o Options) error {
	pid, err := control.FindOrphan(which)
	if err != nil {
		return err
	}
	r := New(nil, o)
	defer r.Close()
	if err := r.takeOver(pid); err != nil {
		return &host.Exit{Code: 3, Err: fmt.Errorf("attach: process %d: %w", pid, err)}
	}
	report, err := r.createReport()
	if err != nil {
		return err
	}
	if report != nil {
		defer report.Close()
	}
	signals := Signals()
	if err := r.succeed(); err != nil {
		return &host.Exit{Code: 3, Err: fmt.Errorf("attach: %s, process %d: %w", r.Bench.Name, pid, err)}
	}
	r.restore = host.TimersOf(r.Handover.Thread.CPU, r.Reservations).Lower
	r.confine()
	go r.guard.watch(r.Target)
	r.states.follow()
	r.claims, _ = newClaims(r.View) // a bus that is gone has nobody to claim against
	r.claims.follow()
	control.NameFaults(r.View)
	r.head = fmt.Sprintf("%s: attached to the target, process %d; Ctrl-C ends the run\n", r.Bench.Name, pid)
	r.openControl(signals)
	r.watch(signals)
	return r.finish(report, signals)
}

// succeed puts this process in the place of the supervisor that has ended. Of two
// that try, one does.
func (r *Session) succeed() error {
	old := r.Page.Supervisor.Load()
	if host.Alive(old) || !r.Page.Supervisor.CompareAndSwap(old, host.Self()) {
		return fmt.Errorf("%w, process %d", control.ErrSupervised, control.SupervisorOf(r.Page))
	}
	return nil
}

// takeOver prepares r to be the supervisor of a target that somebody else has
// started. Until succeed nothing of the run has changed.
func (r *Session) takeOver(pid int) (err error) {
	since := host.StartTime("/", pid)
	if r.Handover, r.Page, err = control.OpenTarget(pid); err != nil {
		return err
	}
	if rt.State(r.Page.State.Load()) == rt.Preparing {
		return errors.New("it has not begun to tick yet: try again")
	}
	r.Bench, r.missing, r.begun, r.ledger.CPU = r.Handover.Bench, r.Handover.Missing, sched.Now(), r.Handover.Thread.CPU
	if r.Target, err = host.Adopt(pid, since); err != nil {
		return err
	}
	r.Reservations = &host.Reservations{Owner: r.Bench.Name}
	if err := r.Reservations.Adopt(r.Target.FD, target.FirstBusFD+len(r.Bench.Buses), r.Handover.Held); err != nil {
		return fmt.Errorf("what it holds: %w: use sudo", err)
	}
	if r.notify, err = newNotifier(r.Page); err != nil {
		return err
	}
	r.guard = &guard{View: r.View, done: make(chan struct{})}
	if r.states, err = newBusStates(r.View); err != nil {
		return err
	}
	for i, bus := range r.Bench.Buses {
		fd, err := unix.PidfdGetfd(r.Target.FD, int(r.Page.BusFD[i].Load()), 0)
		if err != nil {
			return fmt.Errorf("bus %s: %w: use sudo", bus.Name.Text, os.NewSyscallError("pidfd_getfd", err))
		}
		f := os.NewFile(uintptr(fd), "bus "+bus.Name.Text)
		err = r.keep(i, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}
	return nil
}
