package journal

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"lockstep/sched/hostinfo"
)

// Kind is the kind of a setting. It determines how a value is written and compared.
type Kind string

// The kinds of settings. The settings of threads and interfaces are named by their folders.
const (
	Value      Kind = "value"      // file with one word
	Choice     Kind = "choice"     // file with a list of words, the chosen one in brackets
	CPUList    Kind = "cpus"       // file with CPUs: "0-2"
	CPUMask    Kind = "mask"       // file with CPUs in hexadecimal: "7"
	Scheduling Kind = "scheduling" // policy and priority of a thread: "FIFO 81", "OTHER"
	Affinity   Kind = "affinity"   // CPUs of a thread: "0-2"
	RestartMs  Kind = "restart_ms" // restart-ms of a CAN interface that is down, ms
)

// allowedSetting matches settings of a kind.
type allowedSetting struct {
	kind Kind
	file *regexp.Regexp
}

// allowedSettings lists all settings that lockstep may write. A target, which locks its memory, does not call it.
var allowedSettings = sync.OnceValue(func() []allowedSetting {
	return []allowedSetting{
		{Value, regexp.MustCompile(`^/proc/sys/kernel/(sched_rt_runtime_us|numa_balancing)$`)},
		{Value, regexp.MustCompile(`^/sys/fs/cgroup/cpu(/[^/]+)*/cpu\.rt_runtime_us$`)},
		{Value, regexp.MustCompile(`^/sys/kernel/debug/sched/fair_server/cpu\d+/runtime$`)},
		{Value, regexp.MustCompile(`^/sys/devices/system/cpu/cpu\d+/(online|cpufreq/scaling_governor|cpuidle/state\d+/disable)$`)},
		{Value, regexp.MustCompile(`^/sys/devices/system/clocksource/clocksource0/current_clocksource$`)},
		{Value, regexp.MustCompile(`^/sys/class/net/[A-Za-z0-9_.-]+/tx_queue_len$`)},
		{Choice, regexp.MustCompile(`^/sys/kernel/mm/transparent_hugepage/enabled$`)},
		{CPUList, regexp.MustCompile(`^/proc/irq/\d+/smp_affinity_list$`)},
		{CPUMask, regexp.MustCompile(`^/proc/irq/default_smp_affinity$`)},
		{Scheduling, regexp.MustCompile(`^/proc/\d+/task/\d+$`)},
		{Affinity, regexp.MustCompile(`^/proc/\d+/task/\d+$`)},
		{RestartMs, regexp.MustCompile(`^/sys/class/net/[A-Za-z0-9_.-]+$`)},
	}
})

// Setting identifies a setting of the running kernel.
type Setting struct {
	Kind   Kind   `json:"kind"`
	File   string `json:"file"`             // file, or folder of a thread or an interface
	Thread string `json:"thread,omitempty"` // name of the thread
	// Start is the start of the thread, clock ticks after the boot; its number may be reused later.
	Start uint64 `json:"start,omitempty"`
}

// Allowed reports whether lockstep may write the setting.
func (s Setting) Allowed() bool {
	return path.Clean(s.File) == s.File && slices.ContainsFunc(allowedSettings(), func(t allowedSetting) bool {
		return t.kind == s.Kind && t.file.MatchString(s.File)
	})
}

// String names the setting for people.
func (s Setting) String() string {
	switch s.Kind {
	case Scheduling:
		return fmt.Sprintf("thread %s (%s), priority", s.Thread, path.Base(s.File))
	case Affinity:
		return fmt.Sprintf("thread %s (%s), CPUs", s.Thread, path.Base(s.File))
	case RestartMs:
		return path.Base(s.File) + ", restart-ms"
	}

	return s.File
}

// Command returns the shell command that sets a value.
func (s Setting) Command(value string) string {
	name := path.Base(s.File)
	key, isSysctl := strings.CutPrefix(s.File, "/proc/sys/")
	policy, priority, _ := strings.Cut(value, " ")
	switch {
	case isSysctl:
		return "sudo sysctl -w " + strings.ReplaceAll(key, "/", ".") + "=" + value
	case s.Kind == Scheduling && priority == "":
		return fmt.Sprintf("sudo chrt --%s -p 0 %s", strings.ToLower(policy), name)
	case s.Kind == Scheduling:
		return fmt.Sprintf("sudo chrt --%s -p %s %s", strings.ToLower(policy), priority, name)
	case s.Kind == Affinity:
		return fmt.Sprintf("sudo taskset -p -c %s %s", value, name)
	case s.Kind == RestartMs:
		return fmt.Sprintf("sudo ip link set %s type can restart-ms %s", name, value)
	}

	return fmt.Sprintf("echo %s | sudo tee %s", value, s.File)
}

// Equal reports whether the kernel treats two values of the setting alike.
func (s Setting) Equal(a, b string) bool {
	parse := hostinfo.ParseCPUs
	switch s.Kind {
	case CPUMask:
		parse = hostinfo.ParseMask
	case CPUList, Affinity:
	default:
		return a == b
	}

	first, err1 := parse(a)
	second, err2 := parse(b)
	return err1 == nil && err2 == nil && slices.Equal(first, second)
}
