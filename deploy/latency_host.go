package deploy

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"lockstep/sched"
)

// LatencyHost is where the figures come from.
type LatencyHost struct {
	Kernel     string `json:"kernel"` // release and version
	Realtime   bool   `json:"realtime"`
	Processor  string `json:"processor"`
	CPUs       string `json:"cpus"`       // online: "0-3"
	Hypervisor string `json:"hypervisor"` // empty: none seen
}

// facts are those of a host.
func facts(h *SysHost) LatencyHost {
	processor := fields(h.text("proc/cpuinfo"))["model name"]
	if processor == "" { // other architectures name it otherwise, or not
		processor = runtime.GOARCH
	}
	return LatencyHost{
		Kernel:     strings.TrimSpace(h.release + " " + h.text("proc/sys/kernel/version")),
		Realtime:   h.realtime,
		Processor:  processor,
		CPUs:       formatCPUs(h.online),
		Hypervisor: h.hypervisor,
	}
}

// Objection is why latencies measured on the CPU of the loop are not those of a tuned
// real-time host.
type Objection struct {
	Check string // of the doctor, on the same matter
	Text  string
}

// Objections lists those that the host's files tell of. `lockstep doctor` says more.
func Objections(h *SysHost) (list []Objection) {
	if !h.realtime {
		list = append(list, Objection{"kernel", "the kernel is not PREEMPT_RT"})
	}
	governor := h.text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", h.cpu))
	if governor != "" && governor != "performance" { // without the file the frequency is not the kernel's to change
		list = append(list, Objection{"governor", fmt.Sprintf("the frequency governor of CPU %d is %s, not performance", h.cpu, governor)})
	}
	if !slices.Contains(h.isolated, h.cpu) {
		list = append(list, Objection{"isolation", fmt.Sprintf("CPU %d is not isolated: isolcpus= or a cpuset partition keeps other work off it", h.cpu)})
	}
	if h.hypervisor != "" {
		list = append(list, Objection{"virtualisation", "the host is a virtual machine: " + h.hypervisor})
	}
	return list
}

// raise puts the timers of the CPU above those who wake up there.
func (l *Latency) raise(priority int) (lower func(), m *sched.Missing) {
	if l.Raise != nil {
		return l.Raise(l.CPU, priority)
	}
	t := sched.Timers{Root: "/", CPU: l.CPU}
	r, m := t.Raise(priority, nil)
	return func() { t.Lower(r) }, m
}
