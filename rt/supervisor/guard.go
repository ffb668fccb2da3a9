package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/rt"
	"lockstep/rt/bench"
	"lockstep/rt/host"
	"lockstep/rt/target"
	"lockstep/sched"
)

// GuardCommand is the first argument of a guard process; the process id of the target, its start
// time and the priority of the guard follow.
const GuardCommand = "guard"

// guardName is the process name of a guard in ps; 15 letters at most.
const guardName = "lockstep-guard"

// guardLimit is the longest time that a thread of the guard may run without sleeping. The guard
// needs about 0.1 ms at a time.
const guardLimit = 200 * time.Millisecond

// withoutGC is the environment of a process that never collects garbage. Its runtime has a second
// processor for its own threads.
var withoutGC = []string{"GOGC=off", "GOMEMLIMIT=off", "GOMAXPROCS=2"}

// startGuard starts the guard: this binary as a process of its own, which is the watchdog at a
// real-time priority below the loop's. The supervisor cannot have that priority: its garbage
// collector would starve on that CPU, and the watchdog would wait for the collector. Where the
// host refuses SCHED_FIFO there is no guard, and the supervisor is the watchdog.
func (r *Session) startGuard() {
	if slices.ContainsFunc(r.missing, func(m sched.Missing) bool { return m.Of == sched.ResourceFIFO }) {
		return
	}
	files := r.inherit.target[:target.FirstBusFD-target.HandoverFD+len(r.Bench.Buses)]
	guard, err := host.Spawn("", withoutGC, files, GuardCommand, strconv.Itoa(r.Target.PID),
		strconv.FormatUint(uint64(r.Target.Since), 10), strconv.Itoa(max(1, r.Handover.Thread.Priority-1)))
	if err != nil {
		r.watchdog.guardError = err.Error()
		return
	}
	r.Guard = guard
}

// Guard runs the guard process until the end of the target or of the supervisor. It writes the
// result of its watchdog to standard output. A *host.Exit carries exit code 1 if it cannot guard.
func Guard(args []string) error {
	w, err := openGuard(args)
	if err != nil {
		return &host.Exit{Code: 1, Err: fmt.Errorf("guard: %w", err)}
	}
	if !w.supervise() {
		return &host.Exit{Code: 1, Err: errors.New("guard: the supervisor has ended")}
	}
	_ = json.NewEncoder(os.Stdout).Encode(w.protection) // fails only after the end of the supervisor
	return nil
}

// openGuard reads the inherited descriptors and enters the guard's priority.
func openGuard(args []string) (*watchdog, error) {
	if len(args) != 3 {
		return nil, errors.New("a guard is started by `lockstep run` only")
	}
	pid, err1 := strconv.Atoi(args[0])
	since, err2 := strconv.ParseUint(args[1], 10, 32)
	priority, err3 := strconv.Atoi(args[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	// The terminal and the service manager signal the supervisor, with which the guard ends.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGPIPE)
	_ = os.WriteFile("/proc/self/comm", []byte(guardName), 0) // best effort
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), -20) // while it prepares; best effort

	w := &watchdog{}
	handover := os.NewFile(target.HandoverFD, "handover")
	info, err := handover.Stat()
	if err != nil {
		return nil, err
	}
	// The target reads the same open file: the position of the file is not used.
	if w.Handover, err = bench.LoadHandover(io.NewSectionReader(handover, 0, info.Size())); err != nil {
		return nil, err
	}
	if w.Status, err = rt.MapStatusBlock(os.NewFile(target.StatusFD, "status block")); err != nil {
		return nil, err
	}
	for i := range w.Handover.Maps {
		bus, err := can.Inherit(os.NewFile(uintptr(target.FirstBusFD+i), fmt.Sprintf("bus %d", i)))
		if err != nil {
			return nil, err
		}
		if err := useWire(w.Handover, i, bus); err != nil {
			return nil, err
		}
		w.buses = append(w.buses, bus)
	}
	if w.target, err = host.OpenProcess(pid, uint32(since)); err != nil {
		return nil, err
	}
	w.supervisor, _ = rt.SplitIdentity(w.Status.Supervisor.Load())
	return w, sched.EnterGuard(priority, guardLimit)
}

// missingGuard tells that the guard ended before the target; nil: it did not.
func (w *watchdog) missingGuard() *sched.Missing {
	if w.guardError == "" {
		return nil
	}
	return &sched.Missing{
		What: fmt.Sprintf("the guard process failed (%s): the supervisor guarded the target without real-time priority", w.guardError),
		Help: "find out what ended the guard: journalctl -k | grep -i -e oom -e rlimit",
	}
}
