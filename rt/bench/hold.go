package bench

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// holds are what a run has for itself: the CPU of its loop and its interfaces, as
// sched.Claim has it: the supervisor holds the sockets, and the target, which inherits them
// and does not know of them. So nothing is left when both have ended, however they ended,
// and nothing is free while an orphaned target ticks. Sockets that are there for their names
// alone say whose it is, see label.
//
// What this does not cover: a run in a container with a network of its own does not see the
// CPUs that others hold; an interface that is renamed is held by its old name; and any user
// of the host can take a name and keep a run from starting, as he can open the interface
// itself and send what he wants.
type holds struct {
	owner string // the bench
	fds   []int  // of the names that are held
	tags  []int  // sockets that will say that the target has one of them
	what  []string
	own   []int // those that say so of this process
}

// What is held.
const (
	heldCPU = "cpu/"
	heldBus = "bus/"
)

// The holders that a label tells apart.
const (
	supervisorLabel = "supervisor"
	targetLabel     = "target"
)

// take holds something; by is who has it instead.
func (h *holds) take(what string) (by *holder, err error) {
	fd, err := sched.Claim(what)
	if errors.Is(err, unix.EADDRINUSE) {
		return find(what), nil
	}
	if err != nil {
		return nil, err
	}
	h.fds = append(h.fds, fd)
	tag, err := sched.Nameless()
	if err != nil {
		return nil, err
	}
	h.tags, h.what = append(h.tags, tag), append(h.what, what)
	return nil, h.tell(what)
}

// tell says that this process holds something.
func (h *holds) tell(what string) error {
	fd, err := sched.Claim(h.label(what, supervisorLabel, os.Getpid()))
	if err == nil {
		h.own = append(h.own, fd)
	}
	return err
}

// label is the name that tells who holds something.
func (h *holds) label(what, role string, pid int) string {
	return sched.Claimed{What: what, Role: role, Process: pid, Owner: fileName(h.owner)}.String()
}

// files are what the target inherits.
func (h *holds) files() (list []*os.File, err error) {
	for _, fd := range slices.Concat(h.fds, h.tags) {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return list, os.NewSyscallError("fcntl", err)
		}
		list = append(list, os.NewFile(uintptr(own), "held"))
	}
	return list, nil
}

// inherited says that the target has what this run holds: from now on its end, and not
// this one's, lets go.
func (h *holds) inherited(target int) {
	for i, fd := range h.tags {
		_ = sched.Name(fd, h.label(h.what[i], targetLabel, target)) // that only informs
		unix.Close(fd)
	}
	h.tags = nil
}

// adopt holds with a target what it has inherited, from descriptor first on, after the
// end of its supervisor.
func (h *holds) adopt(pidfd, first int, what []string) error {
	for i, w := range what {
		fd, err := unix.PidfdGetfd(pidfd, first+i, 0)
		if err != nil {
			return os.NewSyscallError("pidfd_getfd", err)
		}
		h.fds, h.what = append(h.fds, fd), append(h.what, w)
		if err := h.tell(w); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether this run holds something.
func (h *holds) has(what string) bool { return slices.Contains(h.what, what) }

// drop lets go of what begins so; a target that has it keeps it.
func (h *holds) drop(begin string) {
	for i := len(h.what) - 1; i >= 0; i-- {
		if !strings.HasPrefix(h.what[i], begin) {
			continue
		}
		for _, list := range []*[]int{&h.fds, &h.tags, &h.own} { // in the order of what
			if i < len(*list) {
				unix.Close((*list)[i])
				*list = slices.Delete(*list, i, i+1)
			}
		}
		h.what = slices.Delete(h.what, i, i+1)
	}
}

// close lets go, unless there is a target that goes on.
func (h *holds) close() {
	if h == nil {
		return
	}
	for _, fd := range slices.Concat(h.fds, h.tags, h.own) {
		unix.Close(fd)
	}
	h.fds, h.tags, h.own = nil, nil, nil
}

// holder is who holds something.
type holder struct {
	what       string
	bench      string // as part of a file's name; "" it does not say
	supervisor int    // process id; 0: there is none
	target     int    // likewise
}

// holders lists what is held on this host, as far as its holders say so.
func holders() (list []holder) {
	for _, c := range sched.Claims("/") {
		what, bench := visible(c.What), fileName(c.Owner) // any user may have made the name
		i := slices.IndexFunc(list, func(h holder) bool { return h.what == what && h.bench == bench })
		if i < 0 {
			i = len(list)
			list = append(list, holder{what: what, bench: bench})
		}
		switch c.Role {
		case supervisorLabel:
			list[i].supervisor = c.Process
		case targetLabel:
			list[i].target = c.Process
		}
	}
	return list
}

// find looks for who holds something. It says so a moment after it took it.
func find(what string) *holder {
	for range 20 {
		list := holders()
		if i := slices.IndexFunc(list, func(h holder) bool { return h.what == what }); i >= 0 {
			return &list[i]
		}
		time.Sleep(time.Millisecond)
	}
	return &holder{what: what}
}

// String names the holder, and says how to end it.
func (h *holder) String() string {
	switch {
	case h.bench == "":
		return fmt.Sprintf("another run, which does not say its name (ss -xp | grep %s)", sched.ClaimRoot+h.what)
	case h.supervisor != 0:
		return fmt.Sprintf("%s, process %d: end that one (lockstep stop %d)", h.bench, h.supervisor, h.supervisor)
	}
	return fmt.Sprintf("%s, whose target, process %d, goes on without a supervisor: take it over (lockstep attach %d) or end it (lockstep stop %d)",
		h.bench, h.target, h.target, h.target)
}

// ReservedError says that somebody else has a CPU, an interface or the settings of the host.
type ReservedError struct {
	What       string // "cpu/3", "bus/vcan0", "host/settings"
	Owner      string // name of the bench or command as in a file's name; "" not known
	Supervisor int    // process id; 0 none
	Target     int    // likewise
	Err        error
}

func (e *ReservedError) Error() string { return e.Err.Error() }
func (e *ReservedError) Unwrap() error { return e.Err }

// reserved is the error that h has what is wanted.
func (h *holder) reserved(format string, args ...any) error {
	return &ReservedError{h.what, h.bench, h.supervisor, h.target, fmt.Errorf(format, args...)}
}

// renew makes what was held with a target that has ended ready for the next one.
func (h *holds) renew() error {
	for len(h.tags) < len(h.what) {
		tag, err := sched.Nameless()
		if err != nil {
			return err
		}
		h.tags = append(h.tags, tag)
	}
	return nil
}

// request is what a run asks to have for itself.
type request struct {
	buses    []wantedBus
	cpu      int  // of the loop; -1: the first that nobody has
	fallback int  // CPU of the loop where none can be had for itself
	share    bool // a CPU of another loop will do: -besteffort
	real     bool // a bus is outside of the run: -1 alone does not share a CPU
	timers   bool // the loop waits for the timers of its CPU
}

// wantedBus is a bus on an interface of this host.
type wantedBus struct{ name, iface string }

// reserve takes interfaces and the CPU of the loop, but for what a segment before has left.
// It returns the CPU and, where another loop has it, too, what that means.
func (h *holds) reserve(q request) (cpu int, shared *sched.Missing, err error) {
	if err := h.renew(); err != nil {
		return 0, nil, fmt.Errorf("run: %w", err)
	}
	for _, bus := range q.buses {
		what := heldBus + bus.iface
		if slices.Contains(h.what, what) {
			continue
		}
		by, err := h.take(what)
		if err != nil {
			return 0, nil, fmt.Errorf("run: interface %s: %w", bus.iface, err)
		}
		if by != nil {
			return 0, nil, by.reserved("run: interface %s is held by %s, or name another interface (-bus %s=NAME)", bus.iface, by, bus.name)
		}
	}
	if cpu, shared, err = h.reserveCPU(q); err != nil || !q.timers {
		return cpu, shared, err
	}
	return cpu, shared, timersOf(cpu, h).claim()
}

// polling is how often a host is asked for what may change.
const polling = 100 * time.Millisecond

// doctored is how long a run waits for who changes the settings of this host.
const doctored = 30 * time.Second

// awaitSettings waits, d at most, while somebody has the settings of this host, as lockstep
// doctor -fix does: it holds up CPUs, and moves interrupts. From here on it refuses, as
// the CPU of the loop is held. It tells out that it waits.
func awaitSettings(out io.Writer, settings string, d time.Duration) error {
	told := false
	for until := time.Now().Add(d); ; time.Sleep(polling) {
		list := holders()
		i := slices.IndexFunc(list, func(h holder) bool { return h.what == settings })
		if i < 0 {
			return nil
		}
		who := fmt.Sprintf("lockstep %s, process %d,", list[i].bench, list[i].pid())
		if time.Now().After(until) {
			return list[i].reserved("run: %s still changes the settings of this host after %v: start the run again when it has ended", who, d)
		}
		if !told {
			fmt.Fprintf(out, "%s changes the settings of this host: waiting for it, %v at most\n", who, d)
		}
		told = true
	}
}

// reserveCPU takes the CPU of the loop.
func (h *holds) reserveCPU(q request) (int, *sched.Missing, error) {
	for _, what := range h.what {
		if name, ok := strings.CutPrefix(what, heldCPU); ok {
			cpu, err := strconv.Atoi(name)
			return cpu, nil, err // of nil: it is a number
		}
	}
	cpus := []int{q.cpu}
	if q.cpu < 0 {
		cpus = sched.CPUs()
	}
	var first *holder
	for _, cpu := range cpus {
		by, err := h.take(heldCPU + strconv.Itoa(cpu))
		if err != nil {
			return 0, nil, fmt.Errorf("run: CPU %d: %w", cpu, err)
		}
		if by == nil {
			return cpu, nil, nil
		}
		if first == nil {
			first = by
		}
	}
	if first == nil {
		return q.fallback, nil, nil // the host does not say which CPUs there are
	}
	shared, err := first.share(q, len(cpus))
	return q.fallback, shared, err
}

// FreeCPU is the CPU that the loop of a run would get now: cpu or, where that is -1, the
// first that nobody has; where each is held, the first.
func FreeCPU(cpu int) int {
	cpus := sched.CPUs()
	if cpu >= 0 || len(cpus) == 0 {
		return cpu
	}
	taken := holders()
	for _, cpu := range cpus {
		if !slices.ContainsFunc(taken, func(h holder) bool { return h.what == heldCPU+strconv.Itoa(cpu) }) {
			return cpu
		}
	}
	return cpus[0]
}

// share settles for the CPU that a loop has, one of so many, where the run may.
func (h *holder) share(q request, cpus int) (*sched.Missing, error) {
	auto, cpu := q.cpu < 0, strings.TrimPrefix(h.what, heldCPU)
	switch {
	case q.share || auto && !q.real:
		shared := &sched.Missing{
			What: fmt.Sprintf("the loop shares CPU %s with that of %s, process %d: each delays the other%s", cpu, h.bench, h.pid(), sched.Throttling()),
			Help: "cpu: auto in the bench takes a free one, if there is one; end another run (lockstep ps, lockstep stop NAME)",
		}
		if auto {
			shared.What = fmt.Sprintf("there are more loops than CPUs, %d: ", cpus) + shared.What
		}
		return shared, nil
	case auto:
		return nil, h.reserved("run: each of the %d CPUs of this process is held by a loop; CPU %s by %s, or share it with -besteffort", cpus, cpu, h)
	}
	return nil, h.reserved("run: CPU %s is held by %s, or let the run choose a free CPU (cpu: auto in the bench), or share it with -besteffort", cpu, h)
}

// otherLoops are the CPUs that loops of other runs have, in their order.
func (h *holds) otherLoops() (cpus []int) {
	for _, other := range holders() {
		name, ok := strings.CutPrefix(other.what, heldCPU)
		if cpu, err := strconv.Atoi(name); ok && err == nil && !slices.Contains(h.what, other.what) {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// pid is the process that speaks for the holder.
func (h *holder) pid() int {
	if h.supervisor != 0 {
		return h.supervisor
	}
	return h.target
}
