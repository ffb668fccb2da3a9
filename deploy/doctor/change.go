package doctor

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockstep/deploy/hostinfo"
)

// Kind is how the value of a setting is written and compared.
type Kind string

// A thread and an interface are named by their folders.
const (
	Value      Kind = "value"      // a file with one word
	Choice     Kind = "choice"     // a file that lists words, the chosen one in brackets
	CPUList    Kind = "cpus"       // a file with CPUs: "0-2"
	CPUMask    Kind = "mask"       // a file with CPUs in hexadecimal: "7"
	Scheduling Kind = "scheduling" // of a thread: "FIFO 81", "OTHER"
	Affinity   Kind = "affinity"   // CPUs of a thread: "0-2"
	RestartMs  Kind = "restart_ms" // of a CAN interface that is down, ms
)

// touched is everything that -fix and -undo may ever write to.
var touched = []struct {
	kind Kind
	file *regexp.Regexp
}{
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

// Setting is one thing of the running kernel that has a value.
type Setting struct {
	Kind   Kind   `json:"kind"`
	File   string `json:"file"`             // or the folder of a thread or an interface
	Thread string `json:"thread,omitempty"` // its name
	Start  uint64 `json:"start,omitempty"`  // of the thread, in clock ticks after the boot: its number may be another's later
}

// Change is what -fix does to a setting.
type Change struct {
	Setting
	Check   string `json:"check"` // that asks for it
	Now     string `json:"now"`
	Then    string `json:"then"`
	Command string `json:"command"` // does the same
}

// known reports whether a setting is among those that may be written to.
func (s Setting) known() bool {
	return path.Clean(s.File) == s.File && slices.ContainsFunc(touched, func(t struct {
		kind Kind
		file *regexp.Regexp
	}) bool {
		return t.kind == s.Kind && t.file.MatchString(s.File)
	})
}

// String names a setting for a reader.
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

// command is what a user would type for a value.
func (s Setting) command(value string) string {
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

// same compares two values of a setting as the kernel means them.
func (s Setting) same(a, b string) bool {
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

// of is the setting of a thread.
func (t thread) of(kind Kind) Setting {
	return Setting{Kind: kind, File: "/" + t.dir, Thread: t.name, Start: t.start}
}

// to adds to a check what changes a setting; nothing where it has the value, and
// where the host has no such setting.
func (h *host) to(c Check, s Setting, then string) Check {
	now, err := h.now(s)
	if err != nil || s.same(now, then) {
		return c
	}
	c.Changes = append(c.Changes, Change{Setting: s, Check: c.Name, Now: now, Then: then, Command: s.command(then)})
	return c
}

// toValue is to for a file with one word, named below the root.
func (h *host) toValue(c Check, file, then string) Check {
	return h.to(c, Setting{Kind: Value, File: "/" + file}, then)
}

// now reads a setting. A thread that has ended is errGone.
func (h *host) now(s Setting) (string, error) {
	switch s.Kind {
	case Scheduling, Affinity:
		return h.threadNow(s)
	case RestartMs:
		if h.hands.link == nil {
			return "", errGone
		}
		link, err := h.hands.link(path.Base(s.File))
		return strconv.Itoa(link.RestartMs), err
	}
	text, err := h.ReadFile(s.File)
	if _, rest, found := strings.Cut(text, "["); found && s.Kind == Choice {
		text, _, _ = strings.Cut(rest, "]")
	}
	return text, err
}

func (h *host) threadNow(s Setting) (string, error) {
	t, err := h.thread(strings.TrimPrefix(s.File, "/"))
	switch {
	case err != nil || t.start != s.Start || t.name != s.Thread:
		return "", errGone
	case s.Kind == Affinity:
		return hostinfo.FormatCPUs(t.cpus), nil
	}
	return policyText(t.policy, t.priority), nil
}

// put writes a setting and reads it back.
func (h *host) put(s Setting, value string) error {
	var err error
	if !s.known() {
		return fmt.Errorf("%s is none of the settings that lockstep changes", s)
	}
	if _, err = h.now(s); err == nil {
		err = h.write(s, value)
	}
	if err != nil {
		return reason(err)
	}
	switch now, err := h.now(s); {
	case err != nil:
		return reason(err)
	case !s.same(now, value):
		return &readBackError{now}
	}
	return nil
}

// readBackError is a value that was written without an error and reads otherwise.
type readBackError struct{ got string }

func (e *readBackError) Error() string { return fmt.Sprintf("it was written, and reads %q", e.got) }

func (h *host) write(s Setting, value string) error {
	number, _ := strconv.Atoi(path.Base(s.File)) // of a thread
	switch s.Kind {
	case Scheduling:
		policy, priority, err := parsePolicy(value)
		if err != nil {
			return err
		}
		t, err := h.thread(strings.TrimPrefix(s.File, "/"))
		if err != nil {
			return err
		}
		return h.hands.schedule(number, policy, priority, t.nice)
	case Affinity:
		cpus, err := hostinfo.ParseCPUs(value)
		if err != nil {
			return err
		}
		return h.hands.bind(number, cpus)
	case RestartMs:
		ms, err := strconv.ParseUint(value, 10, 32)
		if err != nil {
			return err
		}
		return h.hands.setRestart(path.Base(s.File), uint32(ms))
	}
	return h.hands.write(h.Path(s.File), value)
}
