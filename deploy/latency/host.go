package latency

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"lockstep/deploy/hostinfo"
	"lockstep/sched"
)

// Host is where the figures come from.
type Host struct {
	Kernel     string `json:"kernel"` // release and version
	Realtime   bool   `json:"realtime"`
	Processor  string `json:"processor"`
	CPUs       string `json:"cpus"`       // online: "0-3"
	Hypervisor string `json:"hypervisor"` // empty: none seen
}

// facts are those of a host.
func facts(h *hostinfo.Host) Host {
	processor := hostinfo.ParseFields(h.Text("proc/cpuinfo"))["model name"]
	if processor == "" { // other architectures name it otherwise, or not
		processor = runtime.GOARCH
	}
	return Host{
		Kernel:     strings.TrimSpace(h.Release + " " + h.Text("proc/sys/kernel/version")),
		Realtime:   h.Realtime,
		Processor:  processor,
		CPUs:       hostinfo.FormatCPUs(h.Online),
		Hypervisor: h.Hypervisor,
	}
}

// Objection is why latencies measured on the CPU of the loop are not those of a tuned
// real-time host.
type Objection struct {
	Check string // of the doctor, on the same matter
	Text  string
}

// Objections lists those that the host's files tell of. `lockstep doctor` says more.
func Objections(h *hostinfo.Host) (list []Objection) {
	if !h.Realtime {
		list = append(list, Objection{"kernel", "the kernel is not PREEMPT_RT"})
	}
	governor := h.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", h.CPU))
	if governor != "" && governor != "performance" { // without the file the frequency is not the kernel's to change
		list = append(list, Objection{"governor", fmt.Sprintf("the frequency governor of CPU %d is %s, not performance", h.CPU, governor)})
	}
	if !slices.Contains(h.Isolated, h.CPU) {
		list = append(list, Objection{"isolation", fmt.Sprintf("CPU %d is not isolated: isolcpus= or a cpuset partition keeps other work off it", h.CPU)})
	}
	if h.Hypervisor != "" {
		list = append(list, Objection{"virtualisation", "the host is a virtual machine: " + h.Hypervisor})
	}
	return list
}

// raise puts the timers of the CPU above those who wake up there.
func (l *Measurement) raise(priority int) (lower func(), m *sched.Missing) {
	if l.Raise != nil {
		return l.Raise(l.CPU, priority)
	}
	t := sched.Timers{Root: "/", CPU: l.CPU}
	r, m := t.Raise(priority, nil)
	return func() { t.Lower(r) }, m
}
