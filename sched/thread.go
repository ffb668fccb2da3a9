package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is what the thread of the loop asks of the host.
type Thread struct {
	CPU       int   // where it runs, and nothing else of the process; -1: the highest allowed
	Priority  int   // of SCHED_FIFO, 1 to 99; 0: none
	Deadline  bool  // SCHED_DEADLINE instead, and SCHED_FIFO where it is refused
	RuntimeNs int64 // of SCHED_DEADLINE: CPU time in each period, ns; 1024 to PeriodNs
	PeriodNs  int64 // of SCHED_DEADLINE: period and deadline, ns: the period of the grid
}

// Missing is something the host does not grant, and the command that helps.
type Missing struct {
	What string
	Help string
}

// Enter makes the calling goroutine the loop: its thread gets a CPU of its own,
// away from all other threads of the process, a real-time priority that children
// do not inherit, and memory that is locked and present. It returns what the
// host refuses; everything else is in force. There is no way back: the goroutine
// stays locked to its thread. Call it when everything is allocated.
func (t Thread) Enter() []Missing {
	runtime.LockOSThread()
	// One processor of the runtime is with the loop, one is free for the rest of
	// the runtime and for the loop when it wakes up. Setting the number also
	// keeps the runtime from following the affinity below, which would stop it.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	missing := t.enterCPU()
	if t.Priority > 0 {
		if err := t.enterFIFO(0); err != nil {
			missing = append(missing, missingFIFO(t.Priority, err.Error()))
		}
	}
	if m := lockMemory(); m != nil {
		missing = append(missing, *m)
	}
	prefault()
	return missing
}

// enterCPU moves this thread to its CPU and all others away from it.
func (t Thread) enterCPU() []Missing {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return []Missing{missingCPU(t.CPU, err.Error(), online("/"))}
	}
	cpu := t.CPU
	if cpu < 0 {
		cpu = highest(&allowed)
	}
	if !allowed.IsSet(cpu) {
		return []Missing{missingCPU(cpu, "it is not among those allowed to the process", online("/"))}
	}
	var missing []Missing
	if allowed.Count() > 1 {
		others := allowed
		others.Clear(cpu)
		if err := confine(&others); err != nil {
			missing = append(missing, missingCPU(cpu, "other threads stay on it: "+err.Error(), online("/")))
		}
	} else {
		missing = append(missing, missingAlone(cpu, online("/")))
	}
	var own unix.CPUSet
	own.Set(cpu)
	if err := unix.SchedSetaffinity(0, &own); err != nil {
		missing = append(missing, missingCPU(cpu, err.Error(), online("/")))
	}
	return missing
}

// highest returns the highest CPU in set, -1 if it is empty.
func highest(set *unix.CPUSet) int {
	for cpu := len(set)*64 - 1; cpu >= 0; cpu-- {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	return -1
}

// confine keeps all other threads of the process on the CPUs of set. A thread
// inherits them from the one that starts it, so a second walk catches those
// that were being started during the first.
func confine(set *unix.CPUSet) error {
	self := unix.Gettid()
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil || tid == self {
				continue
			}
			if err := unix.SchedSetaffinity(tid, set); err != nil && err != unix.ESRCH {
				return os.NewSyscallError("sched_setaffinity", err)
			}
		}
	}
	return nil
}

// enterFIFO gives thread tid (0: the calling one) its real-time priority, which
// neither its threads nor its processes inherit.
func (t Thread) enterFIFO(tid int) error {
	attr := unix.SchedAttr{
		Policy:   unix.SCHED_FIFO,
		Priority: uint32(t.Priority),
		Flags:    unix.SCHED_FLAG_RESET_ON_FORK,
	}
	return unix.SchedSetAttr(tid, &attr, 0)
}

// executable returns the file of this program, for the commands of Missing.Help.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return filepath.Base(os.Args[0])
	}
	return path
}

// online lists the CPUs of the host below root as the kernel does, "0-3"; "" if it
// does not say.
func online(root string) string {
	text, _ := os.ReadFile(filepath.Join(root, "sys/devices/system/cpu/online"))
	return strings.TrimSpace(string(text))
}

func missingCPU(cpu int, why, online string) Missing {
	m := Missing{
		What: fmt.Sprintf("the loop cannot have CPU %d: %s", cpu, why),
		Help: fmt.Sprintf("start under `taskset -c %s`, or with AllowedCPUs= that contain it", online),
	}
	switch there := parseCPUs(online); {
	case online == "":
		m.Help = "start with AllowedCPUs= that contain it, or choose another one"
	case !there.IsSet(cpu):
		m.Help = "choose a CPU that this host has: " + online
	}
	return m
}

func missingAlone(cpu int, online string) Missing {
	m := Missing{
		What: fmt.Sprintf("CPU %d is the only one allowed to the process: the loop shares it", cpu),
		Help: fmt.Sprintf("allow a second CPU: start under `taskset -c %s`, or with AllowedCPUs= of two", online),
	}
	switch there := parseCPUs(online); {
	case online == "":
		m.Help = "allow a second CPU: start with AllowedCPUs= of two"
	case there.Count() == 1:
		m.Help = "this host has no second CPU: give it one, or live with best effort"
	}
	return m
}

func missingFIFO(priority int, why string) Missing {
	return Missing{
		What: fmt.Sprintf("no real-time priority SCHED_FIFO %d: %s", priority, why),
		Help: fmt.Sprintf("sudo setcap cap_sys_nice,cap_ipc_lock=ep %s (again after each build), or LimitRTPRIO=%d in the unit file; "+
			"a control group with real-time scheduling needs cpu.rt_runtime_us > 0", executable(), priority),
	}
}

func missingMemory(why string) Missing {
	return Missing{
		What: "memory cannot be locked: " + why,
		Help: fmt.Sprintf("sudo setcap cap_sys_nice,cap_ipc_lock=ep %s (again after each build), or `ulimit -l unlimited`, or LimitMEMLOCK=infinity in the unit file", executable()),
	}
}
