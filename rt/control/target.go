package control

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"lockstep/rt"
	"lockstep/rt/host"
	"lockstep/rt/inspect"
	"lockstep/rt/report"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// targetProcess is a process on this host with the name of a target.
type targetProcess struct {
	// Status is a copy. Handover is nil for the target of another user, which only root can read:
	// its hand-over is decoded only if root names its process.
	report.View
	pid   int
	since uint32 // start time; 0: not known
	uid   int    // user
	bench string // name of the bench, or unnamed
	err   error  // why its status block cannot be read
}

const (
	maxRuns = 64        // targets and sockets of another user that are looked at
	unnamed = "unnamed" // bench of a target whose name is not known
)

// findTargets returns the target processes of this host that still run, as far as they are visible.
// holders are the reservations, which name the benches of other users. It leaves out the processes that known reports:
// to read a target is to decode all its tables.
func findTargets(holders []host.Holder, known func(pid int) bool) (list []targetProcess) {
	foreign := map[int]int{} // by user
	for _, pid := range hostinfo.Files("/").ProcessesNamed(sched.TargetName) {
		if known(pid) {
			continue
		}
		t := targetProcess{pid: pid, since: host.StartTime("/", pid), uid: host.OwnerOf(pid)}
		if t.uid != os.Getuid() {
			if foreign[t.uid]++; foreign[t.uid] > maxRuns {
				continue
			}
		}

		if t.read(); t.err == nil && rt.State(t.Status.State.Load()) == rt.Ended {
			continue
		}
		for _, h := range holders {
			if t.bench == "" && h.Target == pid {
				t.bench = h.Bench
			}
		}
		t.bench = cmp.Or(t.bench, unnamed)
		list = append(list, t)
	}
	return list
}

// none reports no process as known.
func none(int) bool { return false }

// read copies the status block of the target and, if it is this user's, reads its hand-over.
func (t *targetProcess) read() {
	if t.Status, t.err = inspect.CopyStatus(t.pid, t.uid); t.err != nil {
		return
	}
	if t.uid == os.Getuid() {
		if t.Handover, t.err = inspect.Handover(t.pid, t.uid); t.err != nil {
			return
		}
		t.bench = t.Handover.Bench.Name
	}
	if !host.Alive(rt.Identity(t.pid, t.since)) {
		t.err = host.ErrEnded
	}
}

// listedRun returns the row of the target. The row of another user's target has what its status
// block and its reservations say.
func (t *targetProcess) listedRun(holders []host.Holder) *ListedRun {
	if t.Handover != nil {
		return newListedRun(t.View, t.pid)
	}
	p := t.Status
	v := &ListedRun{Bench: t.bench, Supervisor: inspect.SupervisorOf(p), Target: t.pid, CPU: int(p.CPU.Load()) - 1, State: t.State(),
		Ticks: p.Ticks.Load(), Missed: p.Missed.Load(), LateP99: p.Late.Quantile(0.99), Buses: []string{}}
	for _, h := range holders {
		if h.Target == t.pid && isOfRun(h) {
			v.addReservation(h)
		}
	}
	return v
}

// isOrphan reports whether the target has no supervisor.
func (t *targetProcess) isOrphan() bool {
	return t.err == nil && !host.Alive(t.Status.Supervisor.Load())
}

// FindOrphan returns the target without a supervisor that which names, by its bench, its bench's file or
// its process id; "" if there is only one. The target of another user has to be named by its process id.
func FindOrphan(which string) (int, error) {
	list := findTargets(host.Holders(), none)
	which, err := benchName(which, slices.ContainsFunc(list, func(t targetProcess) bool { return t.Handover != nil && t.bench == which }))
	if err != nil {
		return 0, err
	}
	found, names, supervised, foreign := 0, []string{}, []string{}, []string{}
	for _, t := range list {
		pid := strconv.Itoa(t.pid)
		switch {
		case t.err != nil && which == pid:
			return 0, host.Exitf(3, "attach: process %s: %w", pid, t.err)
		case t.err != nil || which != "" && which != pid && which != t.bench && host.FileName(which) != t.bench:
		case t.Handover == nil && which != pid && t.isOrphan():
			foreign = append(foreign, fmt.Sprintf("%s is user %d's: lockstep attach %s", host.PrintableLine(t.bench), t.uid, pid))
		case t.isOrphan():
			found = t.pid
			names = append(names, fmt.Sprintf("%s (%s)", t.bench, pid))
		default:
			supervised = append(supervised, fmt.Sprintf("%s, process %s, has a supervisor, process %d", t.bench, pid, inspect.SupervisorOf(t.Status)))
		}
	}

	switch {
	case len(names) == 1:
		return found, nil
	case len(names) > 1:
		return 0, fmt.Errorf("attach: %d targets match: %s: name one by process id", len(names), strings.Join(names, ", "))
	case len(supervised)+len(foreign) > 0:
		return 0, host.Exitf(3, "attach: %s", strings.Join(append(supervised, foreign...), "; "))
	}

	return 0, &host.Exit{Code: 3, Err: errors.New("attach: there is no target without a supervisor")}
}
