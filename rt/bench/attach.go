package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/target"
	"lockstep/sched"
)

// Attach takes the place of a supervisor that has ended while its target went on:
// it shows the run, watches over it and reports at its end. which is the name of
// the bench or the target's process id; "" will do where there is one target.
func Attach(which string, o Options) error {
	pid, err := orphan(which)
	if err != nil {
		return err
	}
	r := newRun(nil, o)
	defer r.close()
	if err := r.takeOver(pid); err != nil {
		return &Exit{3, fmt.Errorf("attach: process %d: %w", pid, err)}
	}
	report, err := r.createReport()
	if err != nil {
		return err
	}
	if report != nil {
		defer report.Close()
	}
	signals := attend()
	if err := r.succeed(); err != nil {
		return &Exit{3, fmt.Errorf("attach: %s, process %d: %w", r.bench.Name, pid, err)}
	}
	r.restore = timersOf(r.h.Thread.CPU, r.holds).lower
	r.confine()
	go r.guard.watch(r.target)
	r.states.follow()
	r.claims, _ = newClaims(r.view) // a bus that is gone has nobody to claim against
	r.claims.follow()
	nameFaults(r.view)
	r.head = fmt.Sprintf("%s: attached to the target, process %d; Ctrl-C ends the run\n", r.bench.Name, pid)
	r.openControl(signals)
	r.watch(signals)
	return r.finish(report, signals)
}

// orphan finds the target without a supervisor that is meant.
func orphan(which string) (int, error) {
	found, names, kept := 0, []string{}, []string{}
	for _, pid := range targets() {
		text := strconv.Itoa(pid)
		h, page, err := inherited(pid)
		switch {
		case err != nil && which == text:
			return 0, &Exit{3, fmt.Errorf("attach: process %d: %w", pid, err)}
		case err != nil || which != "" && which != text && which != h.Bench.Name:
		case rt.State(page.State.Load()) == rt.Ended:
		case alive(page.Supervisor.Load()):
			kept = append(kept, fmt.Sprintf("%s, process %d, has a supervisor, process %d", h.Bench.Name, pid, supervisorOf(page)))
		default:
			found = pid
			names = append(names, fmt.Sprintf("%s (%d)", h.Bench.Name, pid))
		}
	}
	switch {
	case len(names) == 1:
		return found, nil
	case len(names) > 1:
		return 0, fmt.Errorf("attach: there are %s: say which, by name or process id", strings.Join(names, ", "))
	case len(kept) > 0:
		return 0, &Exit{3, fmt.Errorf("attach: %s", strings.Join(kept, "; "))}
	}
	return 0, &Exit{3, errors.New("attach: there is no target without a supervisor")}
}

// alive says that the process of an identity has not ended, or cannot be asked. Another one
// may have its id by now.
func alive(who uint64) bool {
	pid, since := rt.Process(who)
	if pid == 0 {
		return false
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return !errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	if err == nil && n > 0 {
		return false
	}
	now := began("/", pid)
	return since == 0 || now == 0 || since == now
}

// supervisorOf is the process id of a page's supervisor; 0: there is none.
func supervisorOf(p *rt.Page) int {
	pid, _ := rt.Process(p.Supervisor.Load())
	return pid
}

// inherited opens what a target was given: its hand-over and its page.
func inherited(pid int) (*Handover, *rt.Page, error) {
	open := func(fd, mode int) (*os.File, error) {
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), mode, 0)
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w: use sudo", err)
		}
		return f, err
	}
	f, err := open(target.HandoverFD, os.O_RDONLY)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	h, err := loadHandover(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: attach with the binary that started it", err)
	}
	g, err := open(target.PageFD, os.O_RDWR)
	if err != nil {
		return nil, nil, err
	}
	defer g.Close()
	page, err := rt.MapPage(g)
	return h, page, err
}

// errSupervised says that a target has no need of another supervisor.
var errSupervised = errors.New("it has a supervisor")

// succeed puts this process in the place of the supervisor that has ended. Of two
// that try, one does.
func (r *run) succeed() error {
	old := r.page.Supervisor.Load()
	if alive(old) || !r.page.Supervisor.CompareAndSwap(old, self()) {
		return fmt.Errorf("%w, process %d", errSupervised, supervisorOf(r.page))
	}
	return nil
}

// takeOver prepares r to be the supervisor of a target that somebody else has
// started. Until succeed nothing of the run has changed.
func (r *run) takeOver(pid int) (err error) {
	since := began("/", pid)
	if r.h, r.page, err = inherited(pid); err != nil {
		return err
	}
	if rt.State(r.page.State.Load()) == rt.Preparing {
		return errors.New("it has not begun to tick yet: try again")
	}
	r.bench, r.missing, r.begun, r.ledger.cpu = r.h.Bench, r.h.Missing, sched.Now(), r.h.Thread.CPU
	if r.target, err = adopt(pid, since); err != nil {
		return err
	}
	r.holds = &holds{owner: r.bench.Name}
	if err := r.holds.adopt(r.target.fd, target.FirstBusFD+len(r.bench.Buses), r.h.Held); err != nil {
		return fmt.Errorf("what it holds: %w: use sudo", err)
	}
	if r.notify, err = newNotifier(r.page); err != nil {
		return err
	}
	r.guard = &guard{view: r.view, done: make(chan struct{})}
	if r.states, err = newBusStates(r.view); err != nil {
		return err
	}
	for i, bus := range r.bench.Buses {
		fd, err := unix.PidfdGetfd(r.target.fd, int(r.page.BusFD[i].Load()), 0)
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
