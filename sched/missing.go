package sched

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Missing is something the host does not grant, and the command that helps.
type Missing struct {
	Of   Resource // "" of what this package does not ask for
	What string   // for people
	Help string   // the command, or what to change
}

// Resource is what a loop asks the host for.
type Resource string

const (
	ResourceCPU       Resource = "cpu"             // the CPU of the loop
	ResourceSecondCPU Resource = "second cpu"      // one for all other threads
	ResourceFIFO      Resource = "fifo"            // SCHED_FIFO at the loop's priority
	ResourceDeadline  Resource = "deadline"        // SCHED_DEADLINE with the loop's runtime
	ResourceMemory    Resource = "memory"          // all memory locked
	ResourcePreemptRT Resource = "preempt_rt"      // a PREEMPT_RT kernel
	ResourceTimers    Resource = "timers"          // the thread of the timers above the loop
	ResourceLatency   Resource = "cpu_dma_latency" // CPUs kept out of deep sleep states
)

// executable returns the file of this program, for the commands of Missing.Help.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return filepath.Base(os.Args[0])
	}
	return path
}

// reason says why a thread does not get a CPU.
func reason(err error) string {
	if errors.Is(err, unix.EINVAL) {
		return "it is offline, or the cpuset of the control group is without it"
	}
	return err.Error()
}

func missingCPU(cpu int, why, online string) Missing {
	m := Missing{
		Of:   ResourceCPU,
		What: fmt.Sprintf("the loop cannot have CPU %d: %s", cpu, why),
		Help: "start with AllowedCPUs= that contain it, or choose another one",
	}
	if there := parseCPUs(online); online != "" && !there.IsSet(cpu) {
		m.Help = "choose a CPU that this host has: " + online
	}
	return m
}

func missingAlone(cpu int, online string) Missing {
	m := Missing{
		Of:   ResourceSecondCPU,
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
		Of:   ResourceFIFO,
		What: fmt.Sprintf("no real-time priority SCHED_FIFO %d: %s", priority, why),
		Help: fmt.Sprintf("sudo setcap cap_sys_nice,cap_ipc_lock=ep %s (again after each build), or LimitRTPRIO=%d in the unit file; "+
			"a control group with real-time scheduling needs cpu.rt_runtime_us > 0", executable(), priority),
	}
}

// missingDeadline explains the error of sched_setattr(2); capable: the process has
// CAP_SYS_NICE, without which no limit helps.
func (t Thread) missingDeadline(err error, capable bool) Missing {
	m := Missing{
		Of:   ResourceDeadline,
		What: fmt.Sprintf("no SCHED_DEADLINE of %v in %v: %v", time.Duration(t.RuntimeNs), time.Duration(t.PeriodNs), err),
		Help: fmt.Sprintf("sudo setcap cap_sys_nice,cap_ipc_lock=ep %s (again after each build)", executable()),
	}
	switch {
	case errors.Is(err, unix.EPERM) && capable:
		m.What += fmt.Sprintf(": CPU %d shares its root domain with others", t.CPU)
		m.Help = fmt.Sprintf("boot with isolcpus=domain,%d and no other CPU in it, or give the process an exclusive cpuset: cpuset.cpus.partition = root with CPU %d alone", t.CPU, t.CPU)
	case errors.Is(err, unix.EBUSY):
		m.What += ": the deadlines admitted already leave too little of the CPU"
		m.Help = "ask for less runtime, or raise the share: sysctl kernel.sched_rt_runtime_us of kernel.sched_rt_period_us"
	case errors.Is(err, unix.EINVAL):
		m.Help = "runtime from 1.024us to the period, period within sysctl kernel.sched_deadline_period_min_us and kernel.sched_deadline_period_max_us"
	}
	return m
}

func missingMemory(why string) Missing {
	return Missing{
		Of:   ResourceMemory,
		What: "memory cannot be locked: " + why,
		Help: fmt.Sprintf("sudo setcap cap_sys_nice,cap_ipc_lock=ep %s (again after each build), or `ulimit -l unlimited`, or LimitMEMLOCK=infinity in the unit file", executable()),
	}
}
