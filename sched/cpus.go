package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxWalks bounds how often walk walks over the threads of a process that keeps
// starting new ones.
const maxWalks = 20

// Confine keeps every thread of process pid but thread except (0: none is) off
// CPU cpu; threads that end meanwhile do not matter. Threads that are started
// later inherit it from those that start them, unless these are the exception. A
// thread that may run on no other CPU gets those of the caller; it is an error
// if there is none.
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
	return walk(pid, except, func(tid int) (bool, error) { return keepOff(tid, cpu, others) })
}

// Allow gives every thread of process pid but thread except (0: none is) the CPUs of set.
// Threads that are started later inherit them as with Confine.
func Allow(pid int, set unix.CPUSet, except int) error {
	err := walk(pid, except, func(tid int) (bool, error) {
		var now unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &now); err != nil || now == set {
			return false, err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil {
			return false, err
		}
		was := now // of set the kernel grants what is there still: a CPU may have gone offline
		err := unix.SchedGetaffinity(tid, &now)
		return now != was, err
	})
	if err != nil {
		return fmt.Errorf("sched: CPUs of process %d: %w", pid, err)
	}
	return nil
}

// Ordinary gives every thread of this process, and what it starts from then on, the
// ordinary policy, SCHED_OTHER: for a supervisor that was started under another one
// (chrt, CPUSchedulingPolicy= in a unit file). A whole process of Go with a real-time
// priority takes its CPU away from everything, its own collector included.
func Ordinary() error {
	err := walk(os.Getpid(), 0, func(tid int) (bool, error) {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || attr.Policy != unix.SCHED_FIFO && attr.Policy != unix.SCHED_RR && attr.Policy != unix.SCHED_DEADLINE {
			return false, err
		}
		return true, unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, 0)
	})
	if err != nil {
		return fmt.Errorf("sched: ordinary policy: %w", err)
	}
	return nil
}

// walk calls change for each thread of a process but one, again and again until none
// was changed, twice: a thread that was being started during one walk is caught by the
// next, or by one a little later where the host is so busy that starting it takes long.
func walk(pid, except int, change func(tid int) (bool, error)) error {
	quiet := 0
	for range maxWalks {
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
	return fmt.Errorf("after %d walks there are still new threads", maxWalks)
}

// keepOff takes cpu from the CPUs of thread tid; moved: it was among them.
func keepOff(tid, cpu int, others *unix.CPUSet) (moved bool, err error) {
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

// candidates lists the CPUs for a loop on the host below root: the isolated ones that
// try gets, then the allowed ones, each from the highest down.
func candidates(root string, allowed *unix.CPUSet, try func(cpu int) error) (list []int) {
	isolated, there := parseCPUs(listed(root, "isolated")), parseCPUs(online(root))
	for cpu := len(isolated)*64 - 1; cpu >= 0; cpu-- {
		if isolated.IsSet(cpu) && there.IsSet(cpu) && try(cpu) == nil {
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

// moveTo makes cpu the only one of the calling thread.
func moveTo(cpu int) error {
	var own unix.CPUSet
	own.Set(cpu)
	return unix.SchedSetaffinity(0, &own)
}

// online lists the CPUs of the host below root as the kernel does, "0-3"; "" if it
// does not say.
func online(root string) string { return listed(root, "online") }

// listed returns one of the kernel's lists of CPUs of the host below root; "" if
// it is empty or not there.
func listed(root, name string) string {
	text, _ := os.ReadFile(filepath.Join(root, "sys/devices/system/cpu", name))
	return strings.TrimSpace(string(text))
}

// parseCPUs reads a list of CPUs as the kernel writes it: "0-2,5".
func parseCPUs(list string) unix.CPUSet {
	var set unix.CPUSet
	for _, part := range strings.Split(list, ",") {
		lo, hi, span := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && span {
			last, err = strconv.Atoi(hi)
		}
		if err != nil {
			continue
		}
		for cpu := first; cpu <= min(last, len(set)*64-1); cpu++ {
			set.Set(cpu)
		}
	}
	return set
}
