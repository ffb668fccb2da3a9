package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/sched/hostinfo"
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

// pattern is of settings of a kind.
type pattern struct {
	kind Kind
	file *regexp.Regexp
}

// touched is everything that -fix and -undo may ever write to.
var touched = []pattern{
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
	// Start is that of the thread, in clock ticks after the boot: its number may be another's later.
	Start uint64 `json:"start,omitempty"`
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
	return path.Clean(s.File) == s.File && slices.ContainsFunc(touched, func(t pattern) bool {
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
func of(t hostinfo.Thread, kind Kind) Setting {
	return Setting{Kind: kind, File: "/" + t.Dir, Thread: t.Name, Start: t.Start}
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

// set is a check of one setting that is not as wanted: it changes the setting, and says by which
// command a user would.
func (h *host) set(c Check, s Setting, then, found string) Check {
	return h.to(c, s, then).wrong(found, s.command(then), Now)
}

// value is the setting that is a file with one word, named below the root.
func value(file string) Setting { return Setting{Kind: Value, File: "/" + file} }

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
	t, err := h.Thread(strings.TrimPrefix(s.File, "/"))
	switch {
	case err != nil || t.Start != s.Start || t.Name != s.Thread:
		return "", errGone
	case s.Kind == Affinity:
		return hostinfo.FormatCPUs(t.CPUs), nil
	}

	return hostinfo.FormatPolicy(t.Policy, t.Priority), nil
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
		policy, priority, err := hostinfo.ParsePolicy(value)
		if err != nil {
			return err
		}
		t, err := h.Thread(strings.TrimPrefix(s.File, "/"))
		if err != nil {
			return err
		}
		return h.hands.schedule(number, policy, priority, t.Nice)
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

// hands are what changes a host. Below another root than "/" only files can be
// written: the threads and interfaces of a folder are text.
type hands struct {
	write      func(path, text string) error
	schedule   func(tid, policy, priority, nice int) error
	bind       func(tid int, cpus []int) error
	link       func(name string) (can.Link, error)
	setRestart func(name string, ms uint32) error
}

// running are the hands of the kernel below this process.
func running() hands {
	return hands{write: write, schedule: schedule, bind: moveTo, link: askLink, setRestart: setRestart}
}

// errGone is what is no longer there: a thread that has ended, a card unplugged.
var errGone = errors.New("it is gone")

// errUp is a card whose restart-ms the kernel keeps as long as it is up.
var errUp = errors.New("the interface is up, and the kernel changes it only while it is down")

// reason is an error without the path, which is said beside it.
func reason(err error) error {
	var file *fs.PathError
	var call *os.SyscallError
	switch {
	case errors.As(err, &file):
		err = file.Err
	case errors.As(err, &call):
		err = call.Err
	}

	if errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0 {
		return fmt.Errorf("%w: it takes root", fs.ErrPermission)
	}
	return err
}

// write gives a file of the kernel a value: one write, and no file is made.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

func schedule(tid, policy, priority, nice int) error {
	attr := unix.SchedAttr{Policy: uint32(policy), Priority: uint32(priority), Nice: int32(nice)}
	return os.NewSyscallError("sched_setattr", unix.SchedSetAttr(tid, &attr, 0))
}

func moveTo(tid int, cpus []int) error {
	set := unix.NewCPUSet(hostinfo.MaxCPUs)
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return os.NewSyscallError("sched_setaffinity", unix.SchedSetaffinityDynamic(tid, set))
}

func askLink(name string) (can.Link, error) {
	links, err := can.OpenLinks()
	if err != nil {
		return can.Link{}, err
	}
	defer links.Close()
	link, err := links.Query(name)
	if errors.Is(err, can.ErrNoInterface) {
		err = errGone
	}
	return link, err
}

func setRestart(name string, ms uint32) error {
	links, err := can.OpenLinks()
	if err != nil {
		return err
	}
	defer links.Close()
	link, err := links.Query(name)
	if err != nil {
		return err
	}
	if err = links.SetRestart(link, ms); errors.Is(err, syscall.EBUSY) {
		return errUp
	}
	return err
}
