package host

import (
	"cmp"
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

// Reservations are what a run has reserved: the CPU of its loop and its interfaces, by
// sched.Reserve. The supervisor holds the sockets, and so does the target, which inherits them
// without using them. So a reservation ends when both processes have ended for any reason, and
// lasts while an orphaned target ticks. Further sockets carry the holder's name, see ownerName.
//
// Limits: a run in a container with its own network does not see the CPUs that other runs reserve.
// A renamed interface stays reserved by its old name. Any user of the host can bind a name and so
// keep a run from starting, just as he can open the interface and send frames. The refusal then
// names that user, and a reservation of one user never counts as that of another.
type Reservations struct {
	Owner         string // bench
	held          []reservation
	targetSockets []*os.File // sockets in Files that will name the target as the holder, in the order of held
}

// reservation is one reserved thing.
type reservation struct {
	what        string
	socket      int // socket with the name of the reservation
	ownerSocket int // socket that names this process as the holder; -1: another user has bound that name
}

// Prefixes of reserved things.
const (
	CPUPrefix = "cpu/"
	BusPrefix = "bus/"
)

// Roles of a holder.
const (
	supervisorRole = "supervisor"
	targetRole     = "target"
)

// reserve reserves what; by is the holder if another process has it.
func (h *Reservations) reserve(what string) (by *Holder, err error) {
	fd, err := sched.Reserve(what)
	if errors.Is(err, unix.EADDRINUSE) && awaitKilled(what) {
		fd, err = sched.Reserve(what)
	}
	if errors.Is(err, unix.EADDRINUSE) {
		return awaitHolder(what), nil
	}
	if err != nil {
		return nil, err
	}
	return nil, h.keep(what, fd)
}

// awaitKilled waits until killed processes no longer hold reservations whose names begin with
// prefix, at most exitTimeout. It reports whether there were such processes.
func awaitKilled(prefix string) (waited bool) {
	until := time.Now().Add(exitTimeout)
	for _, c := range sched.Reservations("/") {
		if strings.HasPrefix(c.What, prefix) && awaitExit(c.Process, until) {
			waited = true
		}
	}

	return waited
}

// keep stores the socket of a reservation and names this process as the holder.
func (h *Reservations) keep(what string, fd int) error {
	own, err := sched.Reserve(h.ownerName(what, supervisorRole, os.Getpid()))
	h.held = append(h.held, reservation{what, fd, own})
	if errors.Is(err, unix.EADDRINUSE) {
		return nil // the name only informs
	}
	return err
}

// ownerName returns the socket name that tells who holds a reservation.
func (h *Reservations) ownerName(what, role string, pid int) string {
	return sched.Reservation{What: what, Role: role, Process: pid, Owner: FileName(h.Owner)}.String()
}

// Names lists what is reserved.
func (h *Reservations) Names() (list []string) {
	for _, r := range h.held {
		list = append(list, r.what)
	}
	return list
}

// Files returns the sockets that the target inherits.
func (h *Reservations) Files() (list []*os.File, err error) {
	for _, r := range h.held {
		own, err := unix.FcntlInt(uintptr(r.socket), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return list, os.NewSyscallError("fcntl", err)
		}
		list = append(list, os.NewFile(uintptr(own), "held"))
	}

	for range h.held {
		tag, err := sched.NewReservationSocket()
		if err != nil {
			return list, err
		}
		list = append(list, os.NewFile(uintptr(tag), "held"))
	}

	h.targetSockets = list[len(h.held):]
	return list, nil
}

// NameTarget names the target as a holder. Call it before closing Files: from then on the
// reservations last until the target ends.
func (h *Reservations) NameTarget(target int) {
	for i, tag := range h.targetSockets {
		// an error is ignored: the name only informs
		_ = sched.NameReservation(int(tag.Fd()), h.ownerName(h.held[i].what, targetRole, target))
	}
	h.targetSockets = nil
}

// TakeOver holds, together with a target, the reservations that it inherited as descriptors from
// first on, after the end of its supervisor.
func (h *Reservations) TakeOver(pidfd, first int, what []string) error {
	for i, w := range what {
		fd, err := unix.PidfdGetfd(pidfd, first+i, 0)
		if err != nil {
			return os.NewSyscallError("pidfd_getfd", err)
		}
		if err := h.keep(w, fd); err != nil {
			return err
		}
	}

	return nil
}

// release releases the reservations with a prefix; a target that inherited one keeps it.
func (h *Reservations) release(begin string) {
	h.held = slices.DeleteFunc(h.held, func(r reservation) bool {
		gone := strings.HasPrefix(r.what, begin)
		if gone {
			unix.Close(r.socket)
			unix.Close(r.ownerSocket) // fails for -1
		}

		return gone
	})
}

// Close releases all reservations, except those of a target that goes on.
func (h *Reservations) Close() {
	if h != nil {
		h.release("")
	}
}

// Holder is the holder of a reservation.
type Holder struct {
	What       string
	Bench      string // as part of a file name; "": not known
	Supervisor int    // process id, a process of that user; 0: there is none
	Target     int    // process id, a process of that user; 0: there is none
	UID        int    // user who holds the reservation; -1: not known
}

// Holders lists the reservations on this host that name their holder.
func Holders() (list []Holder) {
	for _, c := range sched.Reservations("/") {
		what, bench := Printable(c.What), FileName(c.Owner) // any user may have made the name
		i := slices.IndexFunc(list, func(h Holder) bool { return h.What == what && h.Bench == bench && h.UID == c.UID })
		if i < 0 {
			i = len(list)
			list = append(list, Holder{What: what, Bench: bench, UID: c.UID})
		}

		switch {
		case !mayBelong(c.Process, c.UID): // a process of another user, or of another namespace
		case c.Role == supervisorRole:
			list[i].Supervisor = c.Process
		case c.Role == targetRole:
			list[i].Target = c.Process
		}
	}

	return list
}

// mayBelong reports whether a process may be one of a user, -1 an unknown one: it runs, and it is not
// known to be another user's.
func mayBelong(pid, uid int) bool {
	owner := OwnerOf(pid)
	if uid < 0 || owner >= 0 {
		return uid < 0 || owner == uid
	}
	return pid > 0 && unix.Kill(pid, 0) != unix.ESRCH // /proc may hide it
}

// holderOf returns the named holder of a reservation; nil: there is none.
func holderOf(what string) *Holder {
	for _, h := range Holders() {
		if h.What == what {
			return &h
		}
	}

	return nil
}

// awaitHolder returns the holder of a reservation. It waits up to 20 ms, because a holder is named
// a moment after it reserves.
func awaitHolder(what string) *Holder {
	for range 20 {
		if h := holderOf(what); h != nil {
			return h
		}
		time.Sleep(time.Millisecond)
	}

	return &Holder{What: what, UID: sched.ReservationUser(what)}
}

// String names the holder and the command that ends it.
func (h *Holder) String() string {
	switch {
	case h.Bench == "":
		who := "another run without a name"
		if h.UID >= 0 {
			who = fmt.Sprintf("a process of user %d without a name", h.UID)
		}
		return fmt.Sprintf("%s (sudo ss -xp | grep %s lists it)", who, sched.ReservationRoot+h.What)
	case h.PID() == 0: // in a container, or not true
		return fmt.Sprintf("%s of user %d, whose process is not visible here", h.Bench, h.UID)
	case h.Supervisor != 0:
		return fmt.Sprintf("%s, process %d: end that one (lockstep stop %d)", h.Bench, h.Supervisor, h.Supervisor)
	}

	return fmt.Sprintf("%s, whose target, process %d, runs without a supervisor: take it over (lockstep attach %d) or end it (lockstep stop %d)",
		h.Bench, h.Target, h.Target, h.Target)
}

// Request is what a run wants to reserve.
type Request struct {
	Buses    []Interface
	CPU      int  // CPU of the loop; -1: the first free one
	Fallback int  // CPU of the loop if none can be reserved
	Share    bool // a CPU with another loop is accepted: -besteffort
	Real     bool // a bus is outside of the run: CPU -1 does not imply sharing
	Timers   bool // the loop waits for the kernel timers of its CPU
}

// Interface is a bus and its interface on this host.
type Interface struct{ Bus, Name string }

// Reserve reserves the interfaces and the CPU of the loop, except those kept from a previous
// segment of a soak. It returns the CPU and, if another loop shares it, the consequence.
func (h *Reservations) Reserve(q Request) (cpu int, shared *sched.Missing, err error) {
	for _, bus := range q.Buses {
		what := BusPrefix + bus.Name
		if slices.Contains(h.Names(), what) {
			continue
		}
		by, err := h.reserve(what)
		if err != nil {
			return 0, nil, fmt.Errorf("run: interface %s: %w", bus.Name, err)
		}
		if by != nil {
			return 0, nil, fmt.Errorf("run: interface %s is held by %s, or name another interface (-bus %s=NAME)",
				bus.Name, by, bus.Bus)
		}
	}

	if cpu, shared, err = h.reserveCPU(q); err != nil || !q.Timers {
		return cpu, shared, err
	}
	return cpu, shared, TimersOf(cpu, h).reserve()
}

// pollInterval is how often a changing state of the host is read.
const pollInterval = 100 * time.Millisecond

// SettingsTimeout is how long a run waits while host settings change.
const SettingsTimeout = 30 * time.Second

// AwaitHostSettings waits, at most d, while another process holds the host settings, such as
// lockstep doctor -fix, which takes CPUs offline and moves interrupts. Afterwards that process is
// refused, because the CPU of the loop is reserved. AwaitHostSettings reports the wait to out.
func AwaitHostSettings(out io.Writer, settings string, d time.Duration) error {
	announced := false
	for until := time.Now().Add(d); ; time.Sleep(pollInterval) {
		h := holderOf(settings)
		if h == nil || h.UID > 0 && h.UID != os.Getuid() { // only root changes settings
			return nil
		}
		who := fmt.Sprintf("lockstep %s, process %d,", h.Bench, h.PID())
		if time.Now().After(until) {
			return fmt.Errorf(
				"run: %s still changes the settings of this host after %v: start the run again when it has ended", who, d)
		}

		if !announced {
			fmt.Fprintf(out, "%s changes the settings of this host: waiting at most %v\n", who, d)
		}
		announced = true
	}
}

// reserveCPU reserves the CPU of the loop.
func (h *Reservations) reserveCPU(q Request) (int, *sched.Missing, error) {
	for _, what := range h.Names() {
		if name, ok := strings.CutPrefix(what, CPUPrefix); ok {
			cpu, err := strconv.Atoi(name)
			return cpu, nil, err // nil: the name is a number
		}
	}

	cpus := []int{q.CPU}
	if q.CPU < 0 {
		cpus = sched.LoopCPUs()
	}
	var first *Holder
	for _, cpu := range cpus {
		by, err := h.reserve(CPUPrefix + strconv.Itoa(cpu))
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
		return q.Fallback, nil, nil // the host does not list its CPUs
	}
	shared, err := first.shareCPU(q, len(cpus))
	return q.Fallback, shared, err
}

// FreeCPU returns the CPU that the loop of a run would get now: cpu or, if that is -1, the first
// free one; if none is free, the first.
func FreeCPU(cpu int) int {
	cpus := sched.LoopCPUs()
	if cpu >= 0 || len(cpus) == 0 {
		return cpu
	}
	free := slices.IndexFunc(cpus, func(cpu int) bool { return holderOf(CPUPrefix+strconv.Itoa(cpu)) == nil })
	return cpus[max(0, free)]
}

// shareCPU accepts the CPU of another loop, one of cpus CPUs, if the run may share it.
func (h *Holder) shareCPU(q Request, cpus int) (*sched.Missing, error) {
	auto, cpu := q.CPU < 0, strings.TrimPrefix(h.What, CPUPrefix)
	switch {
	case q.Share || auto && !q.Real:
		shared := &sched.Missing{
			What: fmt.Sprintf("the loop shares CPU %s with the loop of %s, process %d: each delays the other%s",
				cpu, h.Bench, h.PID(), sched.Throttling()),
			Help: "cpu: auto in the bench chooses a free CPU; or end another run (lockstep ps, lockstep stop NAME)",
		}
		if auto {
			shared.What = fmt.Sprintf("there are more loops than CPUs, %d: ", cpus) + shared.What
		}
		return shared, nil
	case auto:
		return nil, fmt.Errorf("run: each of the %d CPUs of this process is held by a loop; CPU %s by %s, or share it with -besteffort", cpus, cpu, h)
	}

	return nil, fmt.Errorf("run: CPU %s is held by %s, or let the run choose a free CPU (cpu: auto in the bench), or share it with -besteffort", cpu, h)
}

// OtherLoops returns the CPUs of other runs' loops, sorted.
func (h *Reservations) OtherLoops() (cpus []int) {
	for _, other := range Holders() {
		name, ok := strings.CutPrefix(other.What, CPUPrefix)
		if cpu, err := strconv.Atoi(name); ok && err == nil && !slices.Contains(h.Names(), other.What) {
			cpus = append(cpus, cpu)
		}
	}

	slices.Sort(cpus)
	return slices.Compact(cpus)
}

// PID returns the supervisor's process id, or the target's if there is no supervisor.
func (h *Holder) PID() int { return cmp.Or(h.Supervisor, h.Target) }
