package sched

import (
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Thread is what the thread of the loop asks of the host.
type Thread struct {
	CPU      int    // where it runs, and nothing else of the process; -1: Choose chooses
	Priority int    // of SCHED_FIFO, 1 to 99; 0: none
	Sleep    string // what it waits with, Timerfd or Nanosleep; "": Timerfd

	// Deadline asks for SCHED_DEADLINE, and for SCHED_FIFO where that is
	// refused. The kernel then grants RuntimeNs of CPU time in each PeriodNs,
	// and takes the CPU away for the rest of the period when they are used up.
	Deadline  bool
	RuntimeNs int64 // ns; 1024 to PeriodNs
	PeriodNs  int64 // period and deadline, ns: the period of the grid
}

// Enter makes the calling goroutine the loop: its thread gets a CPU of its own,
// away from all other threads of the process, memory that is locked and present,
// and a real-time policy that children do not inherit. It returns what the host
// refuses; everything else is in force. There is no way back: the goroutine
// stays locked to its thread. Call it when everything is allocated.
//
// The thread no longer takes SIGURG, by which the Go runtime preempts what has
// run for 10 ms. To the runtime a loop of raw system calls runs all the time: it
// would be signalled 100 times a second, and be taken from its thread whenever it
// is outside nosplit code. So nothing else in the process may stop the world
// while the loop runs, a garbage collection least of all: it would wait for it.
func (t Thread) Enter() []Missing {
	runtime.LockOSThread()
	// One processor of the runtime is the loop's for good, one is for the rest of
	// the process. Setting the number also keeps the runtime from following the
	// affinity below, which would stop the world.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	t = t.Choose()
	missing := t.enterCPU()
	var urgent unix.Sigset_t
	urgent.Val[0] = 1 << (unix.SIGURG - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &urgent, nil) // cannot fail: the arguments are right
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)    // ns; without a real-time policy it would be 50 us
	if m := lockMemory(); m != nil {
		missing = append(missing, *m)
	}
	prefault()
	return append(missing, t.enterPolicy()...)
}

// Choose returns the thread with its CPU settled: one that is given stays; for -1
// it is the highest isolated CPU (isolcpus=) that the process may have, and
// without one the highest of those it starts with. Call it before Confine, once
// for both processes: what the process starts with is what threads are then kept
// away from.
func (t Thread) Choose() Thread {
	if list := CPUs(); t.CPU < 0 && len(list) > 0 {
		t.CPU = list[0]
	}
	return t
}

// CPUs lists those that a loop may have, the best first: the isolated ones
// (isolcpus=) that the process gets, then those it starts with, the highest first.
func CPUs() []int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return nil
	}
	return candidates("/", &allowed, func(cpu int) error {
		return onThread(func() error { return moveTo(cpu) })
	})
}

// enterCPU moves this thread to its CPU and all others away from it. An isolated
// CPU is not among those that a process starts with, but may be asked for, so
// the kernel decides.
func (t Thread) enterCPU() []Missing {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return []Missing{missingCPU(t.CPU, err.Error(), online("/"))}
	}
	if err := moveTo(t.CPU); err != nil {
		return []Missing{missingCPU(t.CPU, reason(err), online("/"))}
	}
	allowed.Clear(t.CPU)
	if allowed.Count() == 0 {
		return []Missing{missingAlone(t.CPU, online("/"))}
	}
	if err := confine(os.Getpid(), t.CPU, unix.Gettid(), &allowed); err != nil {
		return []Missing{missingCPU(t.CPU, "other threads stay on it: "+err.Error(), online("/"))}
	}
	return nil
}

// enterPolicy gives the calling thread its real-time policy, which neither its
// threads nor its processes inherit.
func (t Thread) enterPolicy() (missing []Missing) {
	if t.Deadline {
		err := unix.SchedSetAttr(0, &unix.SchedAttr{
			Policy: unix.SCHED_DEADLINE, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
			Runtime: uint64(t.RuntimeNs), Deadline: uint64(t.PeriodNs), Period: uint64(t.PeriodNs),
		}, 0)
		if err == nil {
			return nil
		}
		missing = append(missing, t.missingDeadline(err, capable(unix.CAP_SYS_NICE)))
	}
	if t.Priority > 0 {
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: uint32(t.Priority), Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			missing = append(missing, missingFIFO(t.Priority, err.Error()))
		}
	}
	return missing
}

// onThread runs f on a thread that nothing else runs on meanwhile, gives it its
// policy and its CPUs back, and returns what f does: a way to ask the kernel and
// keep nothing. The thread lives on: a child process may be told of its death.
func onThread[T any](f func() T) T {
	answer := make(chan T)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var cpus unix.CPUSet
		_ = unix.SchedGetaffinity(0, &cpus)
		policy, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			policy = new(unix.SchedAttr)
		}
		a := f()
		taken, err := unix.SchedGetAttr(0, 0)
		deadline := err == nil && taken.Policy == unix.SCHED_DEADLINE
		if err := unix.SchedSetAttr(0, policy, 0); err != nil { // no right to take the flag away
			policy.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
			_ = unix.SchedSetAttr(0, policy, 0)
		}
		if deadline {
			// The kernel takes the share back within a period, from the CPU that the
			// thread is on by then: elsewhere it would stay admitted for ever.
			time.Sleep(time.Duration(taken.Period))
		}
		_ = unix.SchedSetaffinity(0, &cpus)
		answer <- a
	}()
	return <-answer
}
