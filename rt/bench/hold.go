package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// holds are what a run has for itself: the CPU of its loop and its interfaces. Each is
// the name of a socket in the kernel's abstract namespace, which is there as long as
// somebody has the socket: the supervisor, and the target, which inherits it and does
// not know of it. So nothing is left when both have ended, however they ended, and
// nothing is free while an orphaned target ticks. Sockets that are there for their names
// alone say whose it is, see label.
//
// The namespace is that of the network: it is shared by all users, and so are the
// interfaces in it. What that does not cover: a run in a container with a network of its
// own does not see the CPUs that others hold; an interface that is renamed is held by its
// old name; and any user of the host can take a name and keep a run from starting, as he
// can open the interface itself and send what he wants.
type holds struct {
	owner string // the bench
	fds   []int  // of the names that are held
	tags  []int  // sockets that will say that the target has one of them
	what  []string
	own   []int // those that say so of this process
}

// The names of what is held; label appends who holds it.
const (
	heldRoot = "@lockstep/"
	heldCPU  = "cpu/"
	heldBus  = "bus/"
)

// The holders that a label tells apart.
const (
	supervisorLabel = "supervisor"
	targetLabel     = "target"
)

// nameless makes a socket that is good for a name only.
func nameless() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	return fd, os.NewSyscallError("socket", err)
}

// take holds something; by is who has it instead.
func (h *holds) take(what string) (by *holder, err error) {
	fd, err := nameless()
	if err != nil {
		return nil, err
	}
	switch err := unix.Bind(fd, &unix.SockaddrUnix{Name: heldRoot + what}); err {
	case nil:
	case unix.EADDRINUSE:
		unix.Close(fd)
		return find(what), nil
	default:
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	h.fds = append(h.fds, fd)
	tag, err := nameless()
	if err != nil {
		return nil, err
	}
	h.tags, h.what = append(h.tags, tag), append(h.what, what)
	return nil, h.tell(what)
}

// tell says that this process holds something.
func (h *holds) tell(what string) error {
	fd, err := nameless()
	if err == nil {
		h.own = append(h.own, fd)
		err = label(fd, what, supervisorLabel, os.Getpid(), h.owner)
	}
	return err
}

// label gives a socket the name that tells who holds something.
func label(fd int, what, role string, pid int, owner string) error {
	name := fmt.Sprintf("%s%s/%s/%d/%s", heldRoot, what, role, pid, fileName(owner))
	return os.NewSyscallError("bind", unix.Bind(fd, &unix.SockaddrUnix{Name: name[:min(len(name), maxPath)]}))
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
		_ = label(fd, h.what[i], targetLabel, target, h.owner) // a name that only informs
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
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		at := strings.Index(line, heldRoot)
		if at < 0 {
			continue
		}
		parts := strings.SplitN(strings.TrimSpace(line[at+len(heldRoot):]), "/", 5)
		if len(parts) != 5 { // kind, name, role, process, bench
			continue
		}
		pid, err := strconv.Atoi(parts[3])
		if err != nil {
			continue
		}
		what, bench := visible(parts[0]+"/"+parts[1]), fileName(parts[4]) // any user may have made the name
		i := slices.IndexFunc(list, func(h holder) bool { return h.what == what && h.bench == bench })
		if i < 0 {
			i = len(list)
			list = append(list, holder{what: what, bench: bench})
		}
		switch parts[2] {
		case supervisorLabel:
			list[i].supervisor = pid
		case targetLabel:
			list[i].target = pid
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
		return fmt.Sprintf("another run, which does not say its name (ss -xp | grep %s)", heldRoot+h.what)
	case h.supervisor != 0:
		return fmt.Sprintf("%s, process %d: end that one (lockstep stop %d)", h.bench, h.supervisor, h.supervisor)
	}
	return fmt.Sprintf("%s, whose target, process %d, goes on without a supervisor: take it over (lockstep attach %d) or end it (lockstep stop %d)",
		h.bench, h.target, h.target, h.target)
}

// renew makes what was held with a target that has ended ready for the next one.
func (h *holds) renew() error {
	for len(h.tags) < len(h.what) {
		tag, err := nameless()
		if err != nil {
			return err
		}
		h.tags = append(h.tags, tag)
	}
	return nil
}

// hold takes the run's interfaces and the CPU of its loop, but for what it has from a leg
// before it. A CPU that the bench leaves open is the first that nobody has.
func (r *run) hold() error {
	if r.holds == nil {
		r.holds = &holds{owner: r.bench.Name}
	}
	if err := r.holds.renew(); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	for i := range r.bench.Buses {
		bus := &r.bench.Buses[i]
		what := heldBus + bus.Interface.Text
		if !named(bus.Interface.Text) || slices.Contains(r.holds.what, what) {
			continue
		}
		by, err := r.holds.take(what)
		if err != nil {
			return fmt.Errorf("run: interface %s: %w", bus.Interface.Text, err)
		}
		if by != nil {
			return fmt.Errorf("run: interface %s is held by %s, or name another interface (-bus %s=NAME)", bus.Interface.Text, by, bus.Name.Text)
		}
	}
	return r.holdCPU()
}

func (r *run) holdCPU() error {
	for _, what := range r.holds.what {
		if cpu, ok := strings.CutPrefix(what, heldCPU); ok {
			r.h.Thread.CPU, _ = strconv.Atoi(cpu) // it is one
			return nil
		}
	}
	cpus := []int{r.bench.CPU}
	if r.bench.CPU < 0 {
		cpus = sched.CPUs()
	}
	var first *holder
	for _, cpu := range cpus {
		by, err := r.holds.take(heldCPU + strconv.Itoa(cpu))
		if err != nil {
			return fmt.Errorf("run: CPU %d: %w", cpu, err)
		}
		if by == nil {
			r.h.Thread.CPU = cpu
			return nil
		}
		if first == nil {
			first = by
		}
	}
	if first == nil {
		return nil // the host does not say which CPUs there are
	}
	return r.shareCPU(first, len(cpus))
}

// FreeCPU is the CPU that the loop of a run would get now: that of the bench, or the
// first that nobody has; where each is held, the first.
func (b *Bench) FreeCPU() int {
	cpus := sched.CPUs()
	if b.CPU >= 0 || len(cpus) == 0 {
		return b.CPU
	}
	taken := holders()
	for _, cpu := range cpus {
		if !slices.ContainsFunc(taken, func(h holder) bool { return h.what == heldCPU+strconv.Itoa(cpu) }) {
			return cpu
		}
	}
	return cpus[0]
}

// shareCPU settles for a CPU that another loop has, where the run may.
func (r *run) shareCPU(by *holder, held int) error {
	auto, cpu := r.bench.CPU < 0, strings.TrimPrefix(by.what, heldCPU)
	switch {
	case r.options.BestEffort || auto && !r.named():
		r.shared = &sched.Missing{
			What: fmt.Sprintf("the loop shares CPU %s with that of %s, process %d: each delays the other%s", cpu, by.bench, by.pid(), sched.Throttling()),
			Help: "cpu: auto in the bench takes a free one, if there is one; end another run (lockstep ps, lockstep stop NAME)",
		}
		if auto {
			r.shared.What = fmt.Sprintf("there are more loops than CPUs, %d: ", held) + r.shared.What
		}
		return nil
	case auto:
		return fmt.Errorf("run: each of the %d CPUs of this process is held by a loop; CPU %s by %s, or share it with -besteffort", held, cpu, by)
	}
	return fmt.Errorf("run: CPU %s is held by %s, or let the run choose a free CPU (cpu: auto in the bench), or share it with -besteffort", cpu, by)
}

// otherLoops are the CPUs that loops of other runs have.
func (h *holds) otherLoops() (cpus []int) {
	for _, other := range holders() {
		name, ok := strings.CutPrefix(other.what, heldCPU)
		if cpu, err := strconv.Atoi(name); ok && err == nil && !slices.Contains(h.what, other.what) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// pid is the process that speaks for the holder.
func (h *holder) pid() int {
	if h.supervisor != 0 {
		return h.supervisor
	}
	return h.target
}
