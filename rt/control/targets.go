package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/target"
)

// FindOrphan finds the target without a supervisor that is meant.
func FindOrphan(which string) (int, error) {
	found, names, kept := 0, []string{}, []string{}
	for _, pid := range targets() {
		text := strconv.Itoa(pid)
		h, page, err := OpenTarget(pid)
		switch {
		case err != nil && which == text:
			return 0, &host.Exit{Code: 3, Err: fmt.Errorf("attach: process %d: %w", pid, err)}
		case err != nil || which != "" && which != text && which != h.Bench.Name:
		case rt.State(page.State.Load()) == rt.Ended:
		case host.Alive(page.Supervisor.Load()):
			kept = append(kept, fmt.Sprintf("%s, process %d, has a supervisor, process %d", h.Bench.Name, pid, SupervisorOf(page)))
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
		return 0, &host.Exit{Code: 3, Err: fmt.Errorf("attach: %s", strings.Join(kept, "; "))}
	}
	return 0, &host.Exit{Code: 3, Err: errors.New("attach: there is no target without a supervisor")}
}

// SupervisorOf is the process id of a page's supervisor; 0: there is none.
func SupervisorOf(p *rt.Page) int {
	pid, _ := rt.Process(p.Supervisor.Load())
	return pid
}

// OpenTarget opens what a target was given: its hand-over and its page.
func OpenTarget(pid int) (*bench.Handover, *rt.Page, error) {
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
	h, err := bench.LoadHandover(f)
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

// ErrSupervised says that a target has no need of another supervisor.
var ErrSupervised = errors.New("it has a supervisor")
