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
		return refused(fmt.Errorf("attach: process %d: %w", pid, err))
	}
	if err := r.createReport(); err != nil {
		return err
	}
	signals := Signals()
	if err := r.replaceSupervisor(); err != nil {
		return refused(fmt.Errorf("attach: %s, process %d: %w", r.Bench.Name, pid, err))
	}
	r.restore = host.TimersOf(r.Handover.Thread.CPU, r.Reservations).Release
	r.applyAffinity()
	go r.guard.watch(r.Target)
	r.states.watch()
	_ = r.claims.open(r.View) // a bus that is gone has nobody to claim against
	r.claims.defend()
	control.NameFaults(r.View)
	r.head = fmt.Sprintf("%s: attached to the target, process %d; Ctrl-C ends the run\n", r.Bench.Name, pid)
	r.openControl(signals)
	r.watch(signals)
	report, err := r.Shutdown()
	return r.Finish(report, err, signals)
}

// replaceSupervisor puts this process in the place of the supervisor that has ended. Of two
// that try, one does.
func (r *Session) replaceSupervisor() error {
	old := r.Status.Supervisor.Load()
	if host.Alive(old) || !r.Status.Supervisor.CompareAndSwap(old, host.SelfIdentity()) {
		return fmt.Errorf("%w, process %d", errSupervised, control.SupervisorOf(r.Status))
	}
	return nil
}

var errSupervised = errors.New("it has a supervisor")

// takeOver prepares r to be the supervisor of a target that somebody else has
// started. Until succeed nothing of the run has changed.
func (r *Session) takeOver(pid int) (err error) {
	since := host.StartTime("/", pid)
	if r.View, err = control.OpenTarget(pid); err != nil {
		return err
	}
	if rt.State(r.Status.State.Load()) == rt.Preparing {
		return errors.New("it has not begun to tick yet: try again")
	}
	r.Bench, r.missing, r.startedAt, r.ledger.CPU = r.Handover.Bench, r.Handover.Missing, sched.Now(), r.Handover.Thread.CPU
	if r.Target, err = host.OpenProcess(pid, since); err != nil {
		return err
	}
	r.Reservations = &host.Reservations{Owner: r.Bench.Name}
	if err := r.Reservations.TakeOver(r.Target.FD, target.FirstBusFD+len(r.Bench.Buses), r.Handover.Reservations); err != nil {
		return fmt.Errorf("what it holds: %w: use sudo", err)
	}
	if err := r.openParts(); err != nil {
		return err
	}
	for i, bus := range r.Bench.Buses {
		fd, err := unix.PidfdGetfd(r.Target.FD, int(r.Status.BusFD[i].Load()), 0)
		if err != nil {
			return fmt.Errorf("bus %s: %w: use sudo", bus.Name.Text, os.NewSyscallError("pidfd_getfd", err))
		}
		f := os.NewFile(uintptr(fd), "bus "+bus.Name.Text)
		err = r.addBus(i, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}

	return nil
}
