package sched

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// maxPasses bounds how often changeThreads passes over the threads of a process that keeps starting
// new ones.
const maxPasses = 20

// Confine keeps every thread of process pid off CPU cpu, except thread except (0: no exception).
// It ignores threads that end meanwhile. A new thread inherits the setting from the thread that
// starts it. A thread without another CPU gets the CPUs of the caller; it is an error if the
// caller has no other CPU.
func Confine(pid, cpu, except int) error {
	var others unix.CPUSet
	if err := unix.SchedGetaffinity(0, &others); err != nil {
		return fmt.Errorf("sched: %w", os.NewSyscallError("sched_getaffinity", err))
	}
	others.Clear(cpu)
	if err := confine(pid, cpu, except, &others); err != nil {
		return fmt.Errorf("sched: process %d on CPU %d: %w", pid, cpu, err)
	}
	return nil
}

func confine(pid, cpu, except int, others *unix.CPUSet) error {
	return changeThreads(pid, except, func(tid int) (bool, error) { return removeCPU(tid, cpu, others) })
}

// Allowed lists the CPUs of this thread; isolated CPUs are not among them.
func Allowed() (list []int) {
	var set unix.CPUSet
	_ = unix.SchedGetaffinity(0, &set) // cannot fail for the thread itself
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}

	return list
}

// Allow gives every thread of process pid the CPUs of set, except thread except (0: no exception).
// New threads inherit them as with Confine.
func Allow(pid int, set unix.CPUSet, except int) error {
	err := changeThreads(pid, except, func(tid int) (bool, error) {
		var now unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &now); err != nil || now == set {
			return false, err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return false, err
		}
		was := now // the kernel grants only the online CPUs of set
		err := unix.SchedGetaffinity(tid, &now)
		return now != was, err
	})
	if err != nil {
		return fmt.Errorf("sched: CPUs of process %d: %w", pid, err)
	}
	return nil
}

// UseOrdinaryPolicy gives every thread of this process, and its future children, the policy
// SCHED_OTHER. It is for a supervisor started under another policy (chrt, CPUSchedulingPolicy= in a
// unit file): a whole Go process at real-time priority takes its CPU away from everything, its own
// garbage collector included.
func UseOrdinaryPolicy() error {
	err := changeThreads(os.Getpid(), 0, func(tid int) (bool, error) {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || realtimePriority(attr) == 0 {
			return false, err
		}
		return true, unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	})
	if err != nil {
		return fmt.Errorf("sched: ordinary policy: %w", err)
	}
	return nil
}

// EnterGuard makes this process one that sleeps until a rare event and then acts at once: its code is
// present, what it has touched stays in memory where the host allows it, and each of its threads,
// present and future, has SCHED_FIFO at a priority. The kernel kills the process when a thread runs for longest without
// sleeping (RLIMIT_RTTIME, setrlimit(2)), so that the process cannot take a CPU from the host. Call
// EnterGuard in a process without garbage collection, when everything is allocated, and lock no
// goroutine to its thread: the Go runtime would let that thread sleep when it preempts the goroutine.
func EnterGuard(priority int, longest time.Duration) error {
	runtime.GOMAXPROCS(1) // a goroutine that does not sleep keeps its thread
	// Locking all memory as the loop does would take 100 MB. The target reports a host that refuses it.
	_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	list, _ := reachable()
	for _, m := range list {
		if m.exec && m.populate() != nil {
			touch(uintptr(m.start), uintptr(m.end))
		}
	}
	limit := unix.Rlimit{Cur: uint64(longest.Microseconds()), Max: uint64(longest.Microseconds())}
	if err := unix.Setrlimit(unix.RLIMIT_RTTIME, &limit); err != nil {
		return fmt.Errorf("sched: %w", os.NewSyscallError("setrlimit(RLIMIT_RTTIME)", err))
	}
	err := changeThreads(os.Getpid(), 0, func(tid int) (bool, error) {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || attr.Policy == unix.SCHED_FIFO && int(attr.Priority) == priority {
			return false, err
		}
		return true, unix.SchedSetAttr(tid, &unix.SchedAttr{Policy: unix.SCHED_FIFO, Priority: uint32(priority)}, 0)
	})
	if err != nil {
		return fmt.Errorf("sched: SCHED_FIFO %d: %w", priority, err)
	}
	return nil
}

// changeThreads calls change for each thread of a process except one, until two passes in a row
// change nothing. A thread that starts during one pass is changed by a later pass. The pause between
// passes helps on busy hosts.
func changeThreads(pid, except int, change func(tid int) (bool, error)) error {
	quiet := 0
	for range maxPasses {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		changed := false
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || tid == except {
				continue
			}
			one, err := change(tid)
			if err != nil && err != unix.ESRCH {
				return fmt.Errorf("thread %d: %w", tid, err)
			}
			changed = changed || one
		}

		if quiet++; changed {
			quiet = 0
		}
		if quiet == 2 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}

	return fmt.Errorf("after %d passes there are still new threads", maxPasses)
}

// removeCPU removes cpu from the CPUs of thread tid; moved: the thread was allowed on it.
func removeCPU(tid, cpu int, others *unix.CPUSet) (moved bool, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil || !set.IsSet(cpu) {
		return false, err
	}
	if set.Clear(cpu); set.Count() == 0 {
		set = *others
	}
	if set.Count() == 0 {
		return false, fmt.Errorf("there is no other CPU for it: allow the process a second one")
	}
	return true, unix.SchedSetaffinity(tid, &set)
}

// candidates lists the CPUs for a loop on the host below root: isolated CPUs for which try succeeds,
// then the allowed CPUs, each from the highest down.
func candidates(root string, allowed *unix.CPUSet, try func(cpu int) error) (list []int) {
	files := hostinfo.Files(root)
	for _, cpu := range slices.Backward(hostinfo.CommonCPUs(files.CPUs("isolated"), files.CPUs("online"))) {
		if try(cpu) == nil {
			list = append(list, cpu)
		}
	}

	for cpu := len(allowed)*64 - 1; cpu >= 0; cpu-- {
		if allowed.IsSet(cpu) && !slices.Contains(list, cpu) {
			list = append(list, cpu)
		}
	}

	return list
}

// moveTo restricts the calling thread to CPU cpu.
func moveTo(cpu int) error {
	var own unix.CPUSet
	own.Set(cpu)
	return unix.SchedSetaffinity(0, &own)
}
