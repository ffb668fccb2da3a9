package latency

import (
	"fmt"
	"slices"
	"time"

	"lockstep/sched/hostinfo"
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
	b := h.Machine()
	return Host{b.Kernel, b.Realtime, b.Processor, b.CPUs, b.Hypervisor}
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

// Stolen is the time for which a hypervisor has not let a CPU run.
type Stolen struct {
	cpu   int
	begun time.Time
	ticks int64 // of /proc/stat, 10 ms, at the begin
}

// WatchStolen begins to watch a CPU.
func WatchStolen(cpu int) Stolen { return Stolen{cpu, time.Now(), hostinfo.StolenTicks("/", cpu)} }

// Text says what was stolen since; "": nothing.
func (s Stolen) Text() string {
	const tick = 10 * time.Millisecond
	stolen := time.Duration(hostinfo.StolenTicks("/", s.cpu)-s.ticks) * tick
	if stolen <= 0 {
		return ""
	}
	since := time.Since(s.begun).Round(time.Second)
	return fmt.Sprintf("the hypervisor kept CPU %d from running for %v of %v", s.cpu, stolen, since)
}
