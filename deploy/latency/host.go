package latency

import (
	"fmt"
	"slices"
	"time"

	"lockstep/sched/hostinfo"
)

// Host identifies the measured host in a report.
type Host struct {
	Kernel     string `json:"kernel"` // release and version
	Realtime   bool   `json:"realtime"`
	Processor  string `json:"processor"`
	CPUs       string `json:"cpus"`       // online CPUs, like "0-3"
	Hypervisor string `json:"hypervisor"` // "" if none is known
}

// hostOf returns the report's description of a host.
func hostOf(h *hostinfo.Host) Host {
	b := h.Machine()
	return Host{b.Kernel, b.Realtime, b.Processor, b.CPUs, b.Hypervisor}
}

// Objection is a reason why latencies measured on the loop's CPU are not those of a tuned real-time
// host.
type Objection struct {
	Check string // name of the doctor's check on the same subject
	Text  string
}

// Objections lists the objections that the host's files show. `lockstep doctor` checks more.
func Objections(h *hostinfo.Host) (list []Objection) {
	if !h.Realtime {
		list = append(list, Objection{"kernel", "the kernel is not PREEMPT_RT"})
	}
	governor := h.Text(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", h.CPU))
	if governor != "" && governor != "performance" { // no file: the kernel does not control the frequency
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

// Stolen measures the time for which a hypervisor kept a CPU from running.
type Stolen struct {
	cpu   int
	begun time.Time
	ticks int64 // stolen time at begun, 10 ms units of /proc/stat
}

// WatchStolen starts the measurement for a CPU.
func WatchStolen(cpu int) Stolen { return Stolen{cpu, time.Now(), hostinfo.StolenTicks("/", cpu)} }

// Text describes the time stolen since the start; "" if there was none.
func (s Stolen) Text() string {
	const tick = 10 * time.Millisecond
	stolen := time.Duration(hostinfo.StolenTicks("/", s.cpu)-s.ticks) * tick
	if stolen <= 0 {
		return ""
	}
	since := time.Since(s.begun).Round(time.Second)
	return fmt.Sprintf("the hypervisor kept CPU %d from running for %v of %v", s.cpu, stolen, since)
}
