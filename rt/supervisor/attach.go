package supervisor

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/rt/inspect"
	"lockstep/rt/recorder"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Attach replaces a supervisor that ended before its target: Attach shows the run, supervises it
// and reports at its end. which is the name of the bench or the process id of the target; "" selects
// the only target.
func Attach(which string, o Options) error {
	r := New(nil, o)
	defer r.Close()
	if err := r.createReport(); err != nil {
		return err
	}
	pid, err := control.FindOrphan(which)
	if err != nil {
		return err
	}
	if err := r.takeOver(pid); err != nil {
		return refused(fmt.Errorf("attach: process %d: %w", pid, err))
	}
	if p := r.Handover.Page; o.KeepPage && p.Port != "" {
		r.Options.Page = p.Port
	}
	signals := Signals()
	if err := r.replaceSupervisor(); err != nil {
		return refused(fmt.Errorf("attach: %s, process %d: %w", r.Bench.Name, pid, err))
	}
	r.restore = host.TimersOf(r.Handover.Thread.CPU, r.Reservations).Release
	r.applyAffinity()
	r.startGuard()
	r.inherit.close()
	go r.watchdog.watch(r.Target, r.Guard)
	r.states.watch()
	_ = r.ports.open(r.View) // fails for a bus that is gone, which needs no claims
	r.ports.serve()
	powerErr := r.power.open(r.Bench.Power, r.Status)
	r.power.serve()
	control.NameFaults(r.View)
	if err := r.openRecord(recorder.Options{Attached: true}); err != nil {
		return err
	}
	r.record.Record(len(r.missing) > 0)
	r.head = fmt.Sprintf("%s: attached to the target, process %d; Ctrl-C ends the run\n", r.Bench.Name, pid)
	if powerErr != nil {
		r.head += powerErr.Error() + "; the run goes on without it\n"
	}
	r.openControl(signals)
	r.openMetrics()
	r.watch(signals)
	report, err := r.Shutdown()
	return r.Finish(report, err, signals)
}

// replaceSupervisor makes this process the supervisor of the target. It fails while the old
// supervisor lives, and for all but one of several processes that try at once.
func (r *Session) replaceSupervisor() error {
	old := r.Status.Supervisor.Load()
	if host.Alive(old) || !r.Status.Supervisor.CompareAndSwap(old, host.SelfIdentity()) {
		return fmt.Errorf("%w, process %d", errSupervised, inspect.SupervisorOf(r.Status))
	}
	return nil
}

var errSupervised = errors.New("the target has a supervisor")

// takeOver prepares r to supervise a target that another process started. It changes nothing in
// the run; replaceSupervisor does.
func (r *Session) takeOver(pid int) (err error) {
	since := host.StartTime("/", pid)
	if r.View, err = inspect.Open(pid); err != nil {
		return err
	}
	if rt.State(r.Status.State.Load()) == rt.Preparing {
		return errors.New("the target does not tick yet: try again")
	}
	r.Bench, r.missing, r.startedAt, r.ledger.CPU = r.Handover.Bench, r.Handover.Missing, sched.Now(), r.Handover.Thread.CPU
	if r.Target, err = host.OpenProcess(pid, since); err != nil {
		return err
	}
	r.Reservations = &host.Reservations{Owner: r.Bench.Name}
	if err := r.Reservations.TakeOver(r.Target.FD, r.Handover.FirstReservationFD(), r.Handover.Reservations); err != nil {
		return fmt.Errorf("its reservations: %w: use sudo", err)
	}
	if err := r.openParts(); err != nil {
		return err
	}
	for i, name := range []string{"hand-over", "status block"} {
		if _, err := r.takeFile(target.HandoverFD+i, name); err != nil {
			return fmt.Errorf("its %s: %w", name, err)
		}
	}
	for i, bus := range r.Bench.Buses {
		f, err := r.takeFile(int(r.Status.BusFD[i].Load()), "bus "+bus.Name.Text)
		if err == nil {
			err = r.addBus(i, f)
		}
		if err != nil {
			return fmt.Errorf("bus %s: %w", bus.Name.Text, err)
		}
	}

	return nil
}

// takeFile copies a descriptor of the target, for the guard to inherit.
func (r *Session) takeFile(fd int, name string) (*os.File, error) {
	own, err := unix.PidfdGetfd(r.Target.FD, fd, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: use sudo", os.NewSyscallError("pidfd_getfd", err))
	}
	f := os.NewFile(uintptr(own), name)
	r.inherit.target = append(r.inherit.target, f)
	return f, nil
}
