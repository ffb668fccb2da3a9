package sched

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// Probe returns what the host would refuse to a child of this process: it tries what Enter,
// HoldLatency and Timers.Raise need, checks for a real-time kernel, and undoes everything.
func Probe(t Thread) []Missing {
	t = t.ChooseCPU()
	missing, fifo := probe("/", t)
	if !fifo { // reported already, with the limit
		t.Priority = 0
	}
	missing = append(missing, onThread(t.tryRights)...)
	f, m := HoldLatency()
	if m != nil {
		missing = append(missing, *m)
	} else if f != nil {
		f.Close()
	}

	if t.Sleep != Nanosleep {
		if m := (Timers{"/", t.CPU}).Probe(TimerPriority(t.Priority)); m != nil {
			missing = append(missing, *m)
		}
	}

	return missing
}

// tryRights asks the kernel for the CPU and the policy with the calling thread. Limits and
// capabilities do not tell everything: a control group may lack the CPU or have no real-time share.
func (t Thread) tryRights() (missing []Missing) {
	if err := moveTo(t.CPU); err != nil {
		missing = append(missing, missingCPU(t.CPU, cpuRefusal(err), hostinfo.Files("/").CPUs("online")))
	}
	return append(missing, t.enterPolicy()...)
}

// probe reads the rights from the files below root, "/" on the host itself. fifo: nothing in them
// prevents the priority.
func probe(root string, t Thread) (missing []Missing, fifo bool) {
	files := hostinfo.Files(root)
	status := files.Fields("proc/thread-self/status")
	caps, _ := strconv.ParseUint(status["CapEff"], 16, 64)
	limits := files.Limits()

	allowed, _ := hostinfo.ParseCPUs(status["Cpus_allowed_list"])
	if len(hostinfo.CPUsWithout(allowed, []int{t.CPU})) == 0 {
		missing = append(missing, missingAlone(t.CPU, files.CPUs("online")))
	}

	fifo = caps&(1<<unix.CAP_SYS_NICE) != 0 || limits["Max realtime priority"] >= uint64(t.Priority)
	if !fifo {
		missing = append(missing, missingFIFO(t.Priority, fmt.Sprintf("the limit is %d", limits["Max realtime priority"])))
	}
	if limit := limits["Max locked memory"]; caps&(1<<unix.CAP_IPC_LOCK) == 0 && limit < LockedMemory {
		missing = append(missing, missingMemory(fmt.Sprintf("the limit is %d kB", limit>>10)))
	}
	if !files.PreemptRT() {
		missing = append(missing, Missing{
			Of:   ResourcePreemptRT,
			What: "the kernel is not PREEMPT_RT",
			Help: "boot a PREEMPT_RT kernel (Debian: apt-get install linux-image-rt-amd64)",
		})
	}

	return missing, fifo
}

// Throttling returns, as the end of a sentence, the share of a CPU that all real-time threads
// together may use; "": no throttling.
func Throttling() string { return throttling("/") }

func throttling(root string) string {
	number := func(name string) (float64, error) {
		return strconv.ParseFloat(hostinfo.Files(root).Text("proc/sys/kernel/"+name), 64)
	}
	share, err1 := number("sched_rt_runtime_us")
	period, err2 := number("sched_rt_period_us")
	if err1 != nil || err2 != nil || !(share >= 0 && share < period) {
		return ""
	}
	return fmt.Sprintf(", and real-time throttling leaves them %.3g %% of it together (kernel.sched_rt_runtime_us)",
		100*share/period)
}

// Capable reports whether the calling thread has a capability, capabilities(7).
func Capable(bit int) bool {
	caps, err := strconv.ParseUint(hostinfo.Files("/").Fields("proc/thread-self/status")["CapEff"], 16, 64)
	return err == nil && caps&(1<<bit) != 0
}

// Missing is something that the host does not grant, with the remedy.
type Missing struct {
	Of   Resource // "" for something that this package does not ask for
	What string   // message
	Help string   // remedy: a command or a setting
}

// Resource is something that a loop needs from the host.
type Resource string

const (
	ResourceCPU       Resource = "cpu"             // the CPU of the loop
	ResourceSecondCPU Resource = "second cpu"      // a CPU for all other threads
	ResourceFIFO      Resource = "fifo"            // SCHED_FIFO at the loop's priority
	ResourceDeadline  Resource = "deadline"        // SCHED_DEADLINE with the loop's runtime
	ResourceMemory    Resource = "memory"          // the memory that the tick reaches locked
	ResourcePreemptRT Resource = "preempt_rt"      // a PREEMPT_RT kernel
	ResourceTimers    Resource = "timers"          // the thread of the timers above the loop
	ResourceLatency   Resource = "cpu_dma_latency" // CPUs kept out of deep sleep states
)

// cpuRefusal returns why a thread does not get a CPU.
func cpuRefusal(err error) string {
	if errors.Is(err, unix.EINVAL) {
		return "it is offline, or not in the cpuset of the control group"
	}
	return err.Error()
}

func missingCPU(cpu int, why string, online []int) Missing {
	m := Missing{
		Of:   ResourceCPU,
		What: fmt.Sprintf("the loop cannot have CPU %d: %s", cpu, why),
		Help: "start with AllowedCPUs= that contain it, or choose another one",
	}
	if len(online) > 0 && !slices.Contains(online, cpu) {
		m.Help = "choose a CPU that this host has: " + hostinfo.FormatCPUs(online)
	}
	return m
}

func missingAlone(cpu int, online []int) Missing {
	m := Missing{
		Of:   ResourceSecondCPU,
		What: fmt.Sprintf("CPU %d is the only one allowed to the process: the loop shares it", cpu),
		Help: "allow a second CPU: start under `taskset -c " + hostinfo.FormatCPUs(online) +
			"`, or with AllowedCPUs= of two",
	}
	switch len(online) {
	case 0:
		m.Help = "allow a second CPU: start with AllowedCPUs= of two"
	case 1:
		m.Help = "this host has no second CPU: give it one, or live with best effort"
	}

	return m
}

// grantCommand returns the command that gives this program the rights.
func grantCommand() string {
	return "sudo setcap cap_sys_nice,cap_ipc_lock=ep " + hostinfo.Executable() + " (again after each build)"
}

func missingFIFO(priority int, why string) Missing {
	return Missing{
		Of:   ResourceFIFO,
		What: fmt.Sprintf("no real-time priority SCHED_FIFO %d: %s", priority, why),
		Help: fmt.Sprintf("%s, or LimitRTPRIO=%d in the unit file; "+
			"a control group with real-time scheduling needs cpu.rt_runtime_us > 0", grantCommand(), priority),
	}
}

// missingDeadline explains the error of sched_setattr(2). capable: the process has CAP_SYS_NICE,
// without which no limit helps.
func (t Thread) missingDeadline(err error, capable bool) Missing {
	m := Missing{
		Of:   ResourceDeadline,
		What: fmt.Sprintf("no SCHED_DEADLINE of %v in %v: %v", time.Duration(t.RuntimeNs), time.Duration(t.PeriodNs), err),
		Help: grantCommand(),
	}
	switch {
	case errors.Is(err, unix.EPERM) && capable:
		m.What += fmt.Sprintf(": CPU %d shares its root domain with others", t.CPU)
		m.Help = fmt.Sprintf("boot with isolcpus=domain,%[1]d and no other CPU in it, or give the process "+
			"an exclusive cpuset: cpuset.cpus.partition = root with CPU %[1]d alone", t.CPU)
	case errors.Is(err, unix.EBUSY):
		m.What += ": the deadlines admitted already leave too little of the CPU"
		m.Help = "ask for less runtime, or raise the share: sysctl kernel.sched_rt_runtime_us of kernel.sched_rt_period_us"
	case errors.Is(err, unix.EINVAL):
		m.Help = "runtime from 1.024us to the period, period within sysctl kernel.sched_deadline_period_min_us " +
			"and kernel.sched_deadline_period_max_us"
	}

	return m
}

func missingMemory(why string) Missing {
	return Missing{
		Of:   ResourceMemory,
		What: "memory cannot be locked: " + why,
		Help: grantCommand() + ", or `ulimit -l unlimited`, or LimitMEMLOCK=64M or more in the unit file",
	}
}
