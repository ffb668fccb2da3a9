package sched

import (
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// Thread is what the loop's thread needs from the host.
type Thread struct {
	CPU      int    // CPU of this thread alone; -1: ChooseCPU chooses
	Priority int    // SCHED_FIFO priority, 1 to 99; 0: ordinary policy
	Sleep    string // sleep of the timer, Timerfd or Nanosleep; "": Timerfd

	// Deadline asks for SCHED_DEADLINE, and for SCHED_FIFO if the host refuses it. Under
	// SCHED_DEADLINE the kernel grants RuntimeNs of CPU time in each PeriodNs and suspends a
	// thread that has used it up until the next period.
	Deadline  bool
	RuntimeNs int64 // ns; 1024 to PeriodNs
	PeriodNs  int64 // period and deadline, ns: the period of the grid
}

// Enter makes the calling goroutine the loop. Its thread gets a CPU without other threads of the
// process, locked and present memory, and a real-time policy that children do not inherit. Enter
// returns what the host refuses; everything else is in force. The goroutine stays locked to its
// thread. Call it when everything is allocated. unused is data of the executable that nothing writes and the
// loop does not read: Enter does not keep it in memory.
//
// The thread blocks SIGURG, by which the Go runtime preempts a goroutine that has run for 10 ms. To
// the runtime a loop of raw system calls runs all the time: it would get 100 signals a second and
// lose its thread outside nosplit code. So nothing else in the process may stop the world while the
// loop runs, least of all a garbage collection: it would wait for the loop.
func (t Thread) Enter(unused ...[]byte) []Missing {
	runtime.LockOSThread()
	// One processor of the runtime is for the loop, one for the rest of the process. Setting the
	// number also keeps the runtime from following the affinity below, which would stop the world.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	t = t.ChooseCPU()
	missing := t.enterCPU()
	var urgent unix.Sigset_t
	urgent.Val[0] = 1 << (unix.SIGURG - 1)
	_ = unix.PthreadSigmask(unix.SIG_BLOCK, &urgent, nil) // cannot fail: the arguments are right
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)    // ns; without a real-time policy it would be 50 us
	if m := keepPresent(unused); m != nil {
		missing = append(missing, *m)
	}
	return append(missing, t.enterPolicy()...)
}

// ChooseCPU returns the thread with its CPU decided. A given CPU stays. -1 becomes the highest
// isolated CPU (isolcpus=) that the process may have, else the highest CPU it starts with.
// Call it before Confine, once for both processes, because Confine changes the CPUs of the process.
func (t Thread) ChooseCPU() Thread {
	if list := LoopCPUs(); t.CPU < 0 && len(list) > 0 {
		t.CPU = list[0]
	}
	return t
}

// LoopCPUs lists the CPUs that a loop may have, the best first: isolated CPUs (isolcpus=) that
// the process gets, then the CPUs it starts with, each from the highest down.
func LoopCPUs() []int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return nil
	}
	return candidates("/", &allowed, func(cpu int) error {
		return onThread(func() error { return moveTo(cpu) })
	})
}

// enterCPU moves this thread to its CPU and all others away from it. A process does not
// start with isolated CPUs but may be granted one, so enterCPU asks the kernel.
func (t Thread) enterCPU() []Missing {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return []Missing{missingCPU(t.CPU, err.Error(), hostinfo.Files("/").CPUs("online"))}
	}
	if err := moveTo(t.CPU); err != nil {
		return []Missing{missingCPU(t.CPU, cpuRefusal(err), hostinfo.Files("/").CPUs("online"))}
	}
	allowed.Clear(t.CPU)
	if allowed.Count() == 0 {
		return []Missing{missingAlone(t.CPU, hostinfo.Files("/").CPUs("online"))}
	}
	if err := confine(os.Getpid(), t.CPU, unix.Gettid(), &allowed); err != nil {
		return []Missing{missingCPU(t.CPU, "other threads stay on it: "+err.Error(), hostinfo.Files("/").CPUs("online"))}
	}
	return nil
}

// enterPolicy gives the calling thread its real-time policy, which new threads and processes do not
// inherit.
func (t Thread) enterPolicy() (missing []Missing) {
	if t.Deadline {
		err := unix.SchedSetAttr(0, &unix.SchedAttr{
			Policy: unix.SCHED_DEADLINE, Flags: unix.SCHED_FLAG_RESET_ON_FORK,
			Runtime: uint64(t.RuntimeNs), Deadline: uint64(t.PeriodNs), Period: uint64(t.PeriodNs),
		}, 0)
		if err == nil {
			return nil
		}
		missing = append(missing, t.missingDeadline(err, Capable(unix.CAP_SYS_NICE)))
	}

	if t.Priority > 0 {
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: uint32(t.Priority), Flags: unix.SCHED_FLAG_RESET_ON_FORK}
		if err := unix.SchedSetAttr(0, &attr, 0); err != nil {
			missing = append(missing, missingFIFO(t.Priority, err.Error()))
		}
	}

	return missing
}

// onThread runs f on a thread of its own, restores the thread's policy and CPUs, and returns the
// result of f. So f can try rights without keeping them. The thread lives on, because its death may
// signal child processes.
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
		if err := unix.SchedSetAttr(0, policy, 0); err != nil { // no right to clear the reset-on-fork flag
			policy.Flags |= unix.SCHED_FLAG_RESET_ON_FORK
			_ = unix.SchedSetAttr(0, policy, 0)
		}

		if deadline {
			// The kernel returns the deadline share within a period, from the thread's present CPU:
			// on another CPU it would stay admitted for ever.
			time.Sleep(time.Duration(taken.Period))
		}

		_ = unix.SchedSetaffinity(0, &cpus)
		answer <- a
	}()

	return <-answer
}

// Usage holds the kernel's counts of one thread since its start.
type Usage struct {
	Minor       int64 // page faults: the page was in memory
	Major       int64 // page faults: the page had to be read
	Voluntary   int64 // context switches: the thread slept
	Involuntary int64 // context switches: another thread took its CPU
}

// Read reads the counts of the calling thread, getrusage(2).
//
//go:nosplit
func (u *Usage) Read() {
	var ru unix.Rusage
	// It cannot fail for the thread itself.
	_, _, _ = unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&ru)), 0)
	u.Minor, u.Major = int64(ru.Minflt), int64(ru.Majflt)
	u.Voluntary, u.Involuntary = int64(ru.Nvcsw), int64(ru.Nivcsw)
}

// Faults returns the page faults of the process so far: minor ones (the page
// was in memory) and major ones (it had to be read), getrusage(2).
func Faults() (minor, major int64) {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &ru) // cannot fail for the process itself
	return int64(ru.Minflt), int64(ru.Majflt)
}
