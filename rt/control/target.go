package control

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/report"
	"lockstep/rt/tableset"
	"lockstep/rt/target"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// targetProcess is a target process on this host. Any user can give a process the name of a target,
// and descriptors of any kind: openSealed opens only what cannot harm this process.
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

// maxRuns is how many targets and sockets of another user are looked at.
const maxRuns = 64

// findTargets returns the target processes of this host that still run, as far as they are visible.
// holders are the reservations, which name the benches of other users.
func findTargets(holders []host.Holder) (list []targetProcess) {
	foreign := map[int]int{} // by user
	for _, pid := range hostinfo.Files("/").ProcessesNamed(sched.TargetName) {
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

// unnamed is the bench of a target whose name is not known.
const unnamed = "unnamed"

// read copies the status block of the target and, if it is this user's, reads its hand-over.
func (t *targetProcess) read() {
	var f *os.File
	if f, t.err = openSealed(t.pid, target.StatusFD, t.uid, os.O_RDONLY, 0); t.err != nil {
		return
	}
	defer f.Close()
	if t.Status, t.err = rt.CopyStatusBlock(f); t.err != nil {
		return
	}
	if t.uid == os.Getuid() {
		if t.Handover, t.err = openHandover(t.pid, t.uid); t.err != nil {
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
	v := &ListedRun{Bench: t.bench, Supervisor: SupervisorOf(p), Target: t.pid, CPU: int(p.CPU.Load()) - 1, State: t.State(),
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
	list := findTargets(host.Holders())
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
			supervised = append(supervised, fmt.Sprintf("%s, process %s, has a supervisor, process %d", t.bench, pid, SupervisorOf(t.Status)))
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

// SupervisorOf returns the process id of the supervisor; 0: there is none.
func SupervisorOf(p *rt.StatusBlock) int {
	pid, _ := rt.SplitIdentity(p.Supervisor.Load())
	return pid
}

// OpenTarget opens the hand-over and the status block of a target.
func OpenTarget(pid int) (v report.View, err error) {
	uid := host.OwnerOf(pid)
	if v.Handover, err = openHandover(pid, uid); err == nil {
		v.Status, err = mapStatus(pid, uid)
	}
	if err == nil && v.Handover.TableSetFD != 0 {
		v.TableSets, err = mapTableSets(pid, uid, v.Handover.TableSetFD)
	}
	return v, err
}

// mapTableSets maps the memory for tables of a target of a user.
func mapTableSets(pid, uid, fd int) (*tableset.Memory, error) {
	f, err := openSealed(pid, fd, uid, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tableset.Map(f)
}

// openHandover reads the hand-over of a target of a user.
func openHandover(pid, uid int) (*bench.Handover, error) {
	f, err := openSealed(pid, target.HandoverFD, uid, os.O_RDONLY, unix.F_SEAL_WRITE)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := bench.LoadHandover(f)
	if err == nil && h.Bench == nil {
		err = errForeign
	}
	if err != nil {
		return nil, fmt.Errorf("%w: attach with the binary that started it", err)
	}
	return h, nil
}

// mapStatus maps the status block of a target of a user.
func mapStatus(pid, uid int) (*rt.StatusBlock, error) {
	f, err := openSealed(pid, target.StatusFD, uid, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return rt.MapStatusBlock(f)
}

// errForeign reports a process that has the name of a target and is not a target.
var errForeign = errors.New("lockstep did not start this process")

// openSealed opens a descriptor of a process if it is a file in memory (memfd_create(2)) of the user
// of that process, whose size is sealed: a mapping of it cannot fail later. seals are further seals
// that it must have. Anything else stays closed: opening a pipe may block, and opening a device acts
// on it.
func openSealed(pid, fd, uid, mode, seals int) (*os.File, error) {
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	name, err := os.Readlink(link)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: use sudo", err)
	}
	if err == nil && !strings.HasPrefix(name, "/memfd:") {
		err = errForeign
	}
	if err != nil {
		return nil, err
	}
	path, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0) // opens no file yet
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	defer unix.Close(path)
	var s unix.Stat_t
	if err := unix.Fstat(path, &s); err != nil || s.Mode&unix.S_IFMT != unix.S_IFREG || int(s.Uid) != uid {
		return nil, errForeign
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", path), mode|unix.O_NONBLOCK, 0) // a lease could block it
	if err != nil {
		return nil, err
	}
	seals |= unix.F_SEAL_SHRINK
	if has, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0); err != nil || has&seals != seals {
		f.Close()
		return nil, errForeign
	}

	return f, nil
}
