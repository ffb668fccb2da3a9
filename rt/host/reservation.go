package host

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

// Reservations are what a run has for itself: the CPU of its loop and its interfaces, as
// sched.Claim has it: the supervisor holds the sockets, and the target, which inherits them
// and does not know of them. So nothing is left when both have ended, however they ended,
// and nothing is free while an orphaned target ticks. Sockets that are there for their names
// alone say whose it is, see label.
//
// What this does not cover: a run in a container with a network of its own does not see the
// CPUs that others hold; an interface that is renamed is held by its old name; and any user
// of the host can take a name and keep a run from starting, as he can open the interface
// itself and send what he wants.
type Reservations struct {
	Owner string // the bench
	fds   []int  // of the names that are held
	tags  []int  // sockets that will say that the target has one of them
	What  []string
	own   []int // those that say so of this process
}

// What is held.
const (
	CPUPrefix = "cpu/"
	BusPrefix = "bus/"
)

// The holders that a label tells apart.
const (
	supervisorLabel = "supervisor"
	targetLabel     = "target"
)

// take holds something; by is who has it instead.
func (h *Reservations) take(what string) (by *Holder, err error) {
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
	h.tags, h.What = append(h.tags, tag), append(h.What, what)
	return nil, h.tell(what)
}

// tell says that this process holds something.
func (h *Reservations) tell(what string) error {
	fd, err := sched.Claim(h.label(what, supervisorLabel, os.Getpid()))
	if err == nil {
		h.own = append(h.own, fd)
	}
	return err
}

// label is the name that tells who holds something.
func (h *Reservations) label(what, role string, pid int) string {
	return sched.Claimed{What: what, Role: role, Process: pid, Owner: FileName(h.Owner)}.String()
}

// Files are what the target inherits.
func (h *Reservations) Files() (list []*os.File, err error) {
	for _, fd := range slices.Concat(h.fds, h.tags) {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return list, os.NewSyscallError("fcntl", err)
		}
		list = append(list, os.NewFile(uintptr(own), "held"))
	}
	return list, nil
}

// Inherited says that the target has what this run holds: from now on its end, and not
// this one's, lets go.
func (h *Reservations) Inherited(target int) {
	for i, fd := range h.tags {
		_ = sched.Name(fd, h.label(h.What[i], targetLabel, target)) // that only informs
		unix.Close(fd)
	}
	h.tags = nil
}

// Adopt holds with a target what it has inherited, from descriptor first on, after the
// end of its supervisor.
func (h *Reservations) Adopt(pidfd, first int, what []string) error {
	for i, w := range what {
		fd, err := unix.PidfdGetfd(pidfd, first+i, 0)
		if err != nil {
			return os.NewSyscallError("pidfd_getfd", err)
		}
		h.fds, h.What = append(h.fds, fd), append(h.What, w)
		if err := h.tell(w); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether this run holds something.
func (h *Reservations) has(what string) bool { return slices.Contains(h.What, what) }

// drop lets go of what begins so; a target that has it keeps it.
func (h *Reservations) drop(begin string) {
	for i := len(h.What) - 1; i >= 0; i-- {
		if !strings.HasPrefix(h.What[i], begin) {
			continue
		}
		for _, list := range []*[]int{&h.fds, &h.tags, &h.own} { // in the order of what
			if i < len(*list) {
				unix.Close((*list)[i])
				*list = slices.Delete(*list, i, i+1)
			}
		}
		h.What = slices.Delete(h.What, i, i+1)
	}
}

// Close lets go, unless there is a target that goes on.
func (h *Reservations) Close() {
	if h == nil {
		return
	}
	for _, fd := range slices.Concat(h.fds, h.tags, h.own) {
		unix.Close(fd)
	}
	h.fds, h.tags, h.own = nil, nil, nil
}

// Holder is who holds something.
type Holder struct {
	What       string
	Bench      string // as part of a file's name; "" it does not say
	Supervisor int    // process id; 0: there is none
	Target     int    // likewise
}

// Holders lists what is held on this host, as far as its holders say so.
func Holders() (list []Holder) {
	for _, c := range sched.Claims("/") {
		what, bench := Printable(c.What), FileName(c.Owner) // any user may have made the name
		i := slices.IndexFunc(list, func(h Holder) bool { return h.What == what && h.Bench == bench })
		if i < 0 {
			i = len(list)
			list = append(list, Holder{What: what, Bench: bench})
		}
		switch c.Role {
		case supervisorLabel:
			list[i].Supervisor = c.Process
		case targetLabel:
			list[i].Target = c.Process
		}
	}
	return list
}

// find looks for who holds something. It says so a moment after it took it.
func find(what string) *Holder {
	for range 20 {
		list := Holders()
		if i := slices.IndexFunc(list, func(h Holder) bool { return h.What == what }); i >= 0 {
			return &list[i]
		}
		time.Sleep(time.Millisecond)
	}
	return &Holder{What: what}
}

// String names the holder, and says how to end it.
func (h *Holder) String() string {
	switch {
	case h.Bench == "":
		return fmt.Sprintf("another run, which does not say its name (ss -xp | grep %s)", sched.ClaimRoot+h.What)
	case h.Supervisor != 0:
		return fmt.Sprintf("%s, process %d: end that one (lockstep stop %d)", h.Bench, h.Supervisor, h.Supervisor)
	}
	return fmt.Sprintf("%s, whose target, process %d, goes on without a supervisor: take it over (lockstep attach %d) or end it (lockstep stop %d)",
		h.Bench, h.Target, h.Target, h.Target)
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
func (h *Holder) reserved(format string, args ...any) error {
	return &ReservedError{h.What, h.Bench, h.Supervisor, h.Target, fmt.Errorf(format, args...)}
}

// renew makes what was held with a target that has ended ready for the next one.
func (h *Reservations) renew() error {
	for len(h.tags) < len(h.What) {
		tag, err := sched.Nameless()
		if err != nil {
			return err
		}
		h.tags = append(h.tags, tag)
	}
	return nil
}

// Request is what a run asks to have for itself.
type Request struct {
	Buses    []Interface
	CPU      int  // of the loop; -1: the first that nobody has
	Fallback int  // CPU of the loop where none can be had for itself
	Share    bool // a CPU of another loop will do: -besteffort
	Real     bool // a bus is outside of the run: -1 alone does not share a CPU
	Timers   bool // the loop waits for the timers of its CPU
}

// Interface is a bus on an interface of this host.
type Interface struct{ Bus, Name string }

// Reserve takes interfaces and the CPU of the loop, but for what a segment before has left.
// It returns the CPU and, where another loop has it, too, what that means.
func (h *Reservations) Reserve(q Request) (cpu int, shared *sched.Missing, err error) {
	if err := h.renew(); err != nil {
		return 0, nil, fmt.Errorf("run: %w", err)
	}
	for _, bus := range q.Buses {
		what := BusPrefix + bus.Name
		if slices.Contains(h.What, what) {
			continue
		}
		by, err := h.take(what)
		if err != nil {
			return 0, nil, fmt.Errorf("run: interface %s: %w", bus.Name, err)
		}
		if by != nil {
			return 0, nil, by.reserved("run: interface %s is held by %s, or name another interface (-bus %s=NAME)", bus.Name, by, bus.Bus)
		}
	}
	if cpu, shared, err = h.reserveCPU(q); err != nil || !q.Timers {
		return cpu, shared, err
	}
	return cpu, shared, TimersOf(cpu, h).claim()
}

// polling is how often a host is asked for what may change.
const polling = 100 * time.Millisecond

// SettingsTimeout is how long a run waits for who changes the settings of this host.
const SettingsTimeout = 30 * time.Second

// AwaitSettings waits, d at most, while somebody has the settings of this host, as lockstep
// doctor -fix does: it holds up CPUs, and moves interrupts. From here on it refuses, as
// the CPU of the loop is held. It tells out that it waits.
func AwaitSettings(out io.Writer, settings string, d time.Duration) error {
	told := false
	for until := time.Now().Add(d); ; time.Sleep(polling) {
		list := Holders()
		i := slices.IndexFunc(list, func(h Holder) bool { return h.What == settings })
		if i < 0 {
			return nil
		}
		who := fmt.Sprintf("lockstep %s, process %d,", list[i].Bench, list[i].PID())
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
func (h *Reservations) reserveCPU(q Request) (int, *sched.Missing, error) {
	for _, what := range h.What {
		if name, ok := strings.CutPrefix(what, CPUPrefix); ok {
			cpu, err := strconv.Atoi(name)
			return cpu, nil, err // of nil: it is a number
		}
	}
	cpus := []int{q.CPU}
	if q.CPU < 0 {
		cpus = sched.CPUs()
	}
	var first *Holder
	for _, cpu := range cpus {
		by, err := h.take(CPUPrefix + strconv.Itoa(cpu))
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
		return q.Fallback, nil, nil // the host does not say which CPUs there are
	}
	shared, err := first.share(q, len(cpus))
	return q.Fallback, shared, err
}

// FreeCPU is the CPU that the loop of a run would get now: cpu or, where that is -1, the
// first that nobody has; where each is held, the first.
func FreeCPU(cpu int) int {
	cpus := sched.CPUs()
	if cpu >= 0 || len(cpus) == 0 {
		return cpu
	}
	taken := Holders()
	for _, cpu := range cpus {
		if !slices.ContainsFunc(taken, func(h Holder) bool { return h.What == CPUPrefix+strconv.Itoa(cpu) }) {
			return cpu
		}
	}
	return cpus[0]
}

// share settles for the CPU that a loop has, one of so many, where the run may.
func (h *Holder) share(q Request, cpus int) (*sched.Missing, error) {
	auto, cpu := q.CPU < 0, strings.TrimPrefix(h.What, CPUPrefix)
	switch {
	case q.Share || auto && !q.Real:
		shared := &sched.Missing{
			What: fmt.Sprintf("the loop shares CPU %s with that of %s, process %d: each delays the other%s", cpu, h.Bench, h.PID(), sched.Throttling()),
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

// OtherLoops are the CPUs that loops of other runs have, in their order.
func (h *Reservations) OtherLoops() (cpus []int) {
	for _, other := range Holders() {
		name, ok := strings.CutPrefix(other.What, CPUPrefix)
		if cpu, err := strconv.Atoi(name); ok && err == nil && !slices.Contains(h.What, other.What) {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// PID is the process that speaks for the holder.
func (h *Holder) PID() int {
	if h.Supervisor != 0 {
		return h.Supervisor
	}
	return h.Target
}
