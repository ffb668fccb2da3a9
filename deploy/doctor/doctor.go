package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Level is how much a check weighs.
type Level string

// What Must decides whether the host is fit; the rest is said and counted.
//
// Must is what no priority of the loop makes up for, and what a measurement of
// an afternoon may not show: a kernel that cannot be preempted, another host
// below this one, no CPU that other work keeps off, no real-time priority, memory
// that may be paged out, a frequency that follows the load (the dearest tick is
// measured at one frequency and served at another), a timer thread that every
// real-time task holds up, and a bus that was named and is not up.
//
// Should is jitter that shows in `lockstep latency` and has a bound: idle
// states, shared cores, interrupts, huge pages. RT throttling is among them: a
// loop never uses 95 % of a second unless it runs away, and then it is the
// throttling that ends it.
const (
	Must   Level = "must"
	Should Level = "should"
	Info   Level = "info"
)

// Verdict is what a check came to.
type Verdict string

// Unknown is what cannot be read: no right to, or a container hides it. With
// level Must it stands in the way as Wrong does.
const (
	OK      Verdict = "ok"
	Wrong   Verdict = "wrong"
	Unknown Verdict = "unknown"
)

// Can is whether the running kernel can do what is wanted, and when it holds.
type Can string

// Empty where nothing is to be changed, or not known what.
const (
	Now      Can = "now"      // at once, until the next boot
	Restart  Can = "restart"  // in this kernel, when lockstep is started anew
	Boot     Can = "boot"     // this kernel, started with another command line
	Kernel   Can = "kernel"   // another kernel
	Firmware Can = "firmware" // a setting or an update of the firmware (BIOS)
	Outside  Can = "outside"  // only outside of this container or virtual machine
	Hardware Can = "hardware" // not on this hardware
)

// Check is one property of the host. Wanted and Why are always filled, Command
// and Can only where the verdict is not OK.
type Check struct {
	Name    string  `json:"name"`
	Level   Level   `json:"level"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Wanted  string  `json:"wanted"`
	Why     string  `json:"why"`
	Command string  `json:"command,omitempty"`
	Can     Can     `json:"can,omitempty"`

	Changes []Change `json:"changes,omitempty"` // what -fix does about it
}

// Host is the box and what it was asked for.
type Host struct {
	Name       string `json:"name"`
	Kernel     string `json:"kernel"`
	CPUs       string `json:"cpus"`                 // online, as the kernel lists them: "0-3"
	Hypervisor string `json:"hypervisor,omitempty"` // empty: none seen
	Container  string `json:"container,omitempty"`  // empty: none seen
	CPU        int    `json:"cpu"`                  // of the loop
	Priority   int    `json:"priority"`             // of the loop, SCHED_FIFO
	Timer      string `json:"timer"`                // the loop sleeps with
}

// Diagnosis is what the doctor says.
type Diagnosis struct {
	Fit    bool    `json:"fit"` // every check of level Must is OK
	Host   Host    `json:"host"`
	Checks []Check `json:"checks"`
}

// Ask is what the loop wants of the host.
type Ask struct {
	CPU      int      // -1: the highest isolated one, else the highest allowed
	Priority int      // of SCHED_FIFO, 1 to 99
	Timer    string   // "timerfd" or "nanosleep"
	Buses    []string // CAN interfaces that must be there and up
	Loop     int      // thread of the loop where it ticks already: it is no rival of itself; 0: it does not
}

// interfaceName is what the kernel takes for one, and a command line bears.
var interfaceName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)

// checks are what is judged of every host, in the order of the report; {cpu} is the loop's,
// {priority} its priority, {wake} maxWake.
var checks = []struct {
	judge       func(h *host, c Check) Check
	name        string
	level       Level
	wanted, why string
}{
	{(*host).checkKernel, "kernel", Must,
		"a PREEMPT_RT kernel",
		"any other one holds the loop up as long as it likes, in every driver"},
	{(*host).checkVirtualisation, "virtualisation", Must,
		"a machine of its own",
		"the host of a virtual machine takes its CPUs away when it likes; nothing in here can see or forbid it"},
	{(*host).checkContainer, "container", Info,
		"none, or one that was given the rights",
		"the kernel is its host's: what concerns it is read and changed out there"},
	{(*host).checkCPU, "cpu", Must,
		"one for the loop and another one for everything else, within reach of this process",
		"another thread of the process on the CPU of the loop, and the two wait for each other"},
	{(*host).checkIsolation, "isolation", Must,
		"CPU {cpu} kept free by isolcpus=domain or an isolated cpuset partition",
		"what other work does in the kernel with preemption or interrupts off, no priority of the loop cuts short"},
	{(*host).checkPriority, "priority", Must,
		"the right to SCHED_FIFO {priority}: cap_sys_nice or an rtprio limit of {priority}",
		"without it the loop waits its turn among all other threads"},
	{(*host).checkMemlock, "memlock", Must,
		"the right to lock all memory: cap_ipc_lock or an unlimited memlock limit",
		"a page that was taken away costs a tick microseconds to milliseconds to get back"},
	{(*host).checkCapabilities, "capabilities", Should,
		"cap_sys_nice and cap_ipc_lock",
		"limits grant priority and memory; raising the timer thread and SCHED_DEADLINE take cap_sys_nice"},
	{(*host).checkKtimers, "ktimers", Must,
		"ktimers/{cpu} above FIFO {priority}, or nanosleep as the timer",
		"on PREEMPT_RT a timerfd expires in this thread: every real-time thread above it holds the loop up"},
	{(*host).checkKsoftirqd, "ksoftirqd", Should,
		"ksoftirqd/{cpu} below FIFO {priority}",
		"it does the work that the network puts off, as much as there is: " +
			"above the loop a flood of frames holds it up"},
	{(*host).checkRivals, "rivals", Should,
		"no thread of FIFO {priority} or more may run on CPU {cpu}",
		"it holds the loop up for as long as it runs"},
	{(*host).checkThrottling, "throttling", Should,
		"off, once the bench has passed its soak",
		"it takes the CPU away from a loop that runs 95 % of a second, for the rest of it: " +
			"no healthy loop does, and it ends one that runs away, so keep it until then"},
	{(*host).checkInterrupts, "interrupts", Should,
		"none of a device on CPU {cpu}, new ones included",
		"each one stops the loop for its handler, on PREEMPT_RT for the part that wakes the thread"},
	{(*host).checkCANInterrupts, "can interrupts", Should,
		"their threads on other CPUs than {cpu}, or above FIFO {priority}",
		"a frame waits in the card until its thread has run: " +
			"below the loop on its CPU, it misses the tick it came for"},
	{(*host).checkGovernor, "governor", Must,
		"performance",
		"a loop that sleeps most of the time gets the lowest frequency: " +
			"ticks take several times what was measured, and each change stalls"},
	{(*host).checkIdle, "idle states", Should,
		"none that takes more than {wake} us to leave, or /dev/cpu_dma_latency ours to write",
		"the loop wakes up later by what its CPU takes to leave its idle state"},
	{(*host).checkSMT, "smt", Should,
		"the core of the loop to itself",
		"what runs on the other thread of the core takes its caches and execution units: " +
			"a tick takes up to twice as long"},
	{(*host).checkClock, "clock source", Should,
		"one that is read without a system call (tsc, arch_sys_counter)",
		"the loop reads the clock several times a tick; " +
			"hpet and acpi_pm take 1 us and more each, and one CPU at a time"},
	{(*host).checkHugePages, "huge pages", Should,
		"madvise or never",
		"with always, khugepaged rebuilds the pages of the loop below it, locked or not"},
	{(*host).checkNUMA, "numa balancing", Should,
		"off",
		"it takes pages away to see who misses them: page faults in the loop, locked memory or not"},
}

// Examine reads the files of a host below root, "/" for the running one, and
// judges them. It fails where root is no host or a bus has no possible name; it
// changes nothing.
func Examine(root string, ask Ask) (Diagnosis, error) {
	h, err := visit(root, ask)
	if err != nil {
		return Diagnosis{}, err
	}
	return h.diagnosis(), nil
}

// visit reads a host, if root is one.
func visit(root string, ask Ask) (*host, error) {
	for _, name := range ask.Buses {
		if !interfaceName.MatchString(name) {
			return nil, fmt.Errorf("doctor: %q cannot be the name of a CAN interface: 1 to 15 letters, digits, \".\", \"_\" and \"-\", like can0", name)
		}
	}

	if _, err := os.Stat(filepath.Join(root, "proc", "version")); err != nil {
		return nil, fmt.Errorf("doctor: %s is not the root of a host: %w", root, err)
	}
	return newHost(root, ask), nil
}

func (h *host) diagnosis() Diagnosis {
	d := Diagnosis{Fit: true, Host: Host{
		Name:       h.Text("proc/sys/kernel/hostname"),
		Kernel:     h.Release,
		CPUs:       hostinfo.FormatCPUs(h.Online),
		Hypervisor: h.Hypervisor,
		Container:  h.Container,
		CPU:        h.CPU,
		Priority:   h.ask.Priority,
		Timer:      h.ask.Timer,
	}}
	fill := strings.NewReplacer("{cpu}", strconv.Itoa(h.CPU), "{priority}", strconv.Itoa(h.ask.Priority),
		"{wake}", strconv.Itoa(maxWake))
	for _, c := range checks {
		check := Check{Name: c.name, Level: c.level, Wanted: fill.Replace(c.wanted), Why: c.why}
		d.Checks = append(d.Checks, c.judge(h, check))
	}

	d.Checks = append(d.Checks, h.checkCAN()...)
	for i := range d.Checks {
		c := &d.Checks[i]
		// A container shares its host's kernel and mostly may not write to it.
		if h.Container != "" {
			c.Changes = nil
		}
		if h.Container != "" && c.Verdict != OK && c.Can != Restart && c.Can != Hardware {
			c.Can = Outside
		}
		d.Fit = d.Fit && (c.Level != Must || c.Verdict == OK)
	}

	return d
}

// Check returns the check of a name, nil if there is none.
func (d Diagnosis) Check(name string) *Check {
	i := slices.IndexFunc(d.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Checks[i]
}

func (c Check) ok(found string) Check {
	c.Verdict, c.Found = OK, found
	return c
}

func (c Check) wrong(found, command string, can Can) Check {
	c.Verdict, c.Found, c.Command, c.Can = Wrong, found, command, can
	return c
}

// hidden is a check of what this user, or this container, cannot read.
func (c Check) hidden(found string) Check {
	return c.unsure(found, "sudo "+hostinfo.Executable()+" doctor")
}

// unsure is a check of what does not say; command is how to look.
func (c Check) unsure(found, command string) Check {
	c.Verdict, c.Found, c.Command = Unknown, found, command
	return c
}

// host is what several checks need of a host, and what changes it.
type host struct {
	*hostinfo.Host
	ask   Ask
	hands hands
	claim string // of who changes its settings

	irqbalance bool              // the daemon runs
	limits     map[string]uint64 // soft ones of this process
	threads    []hostinfo.Thread // with a real-time policy, or the kernel's own of a CPU

	interrupts []interrupt
	canIRQs    map[string][]string // interrupt of a CAN card: its interfaces
}

func newHost(root string, ask Ask) *host {
	h := &host{Host: hostinfo.Read(root, ask.CPU), ask: ask, hands: hands{write: write}, claim: sched.HostSettings}
	if h.Live() {
		h.hands = running()
	}
	h.limits = h.Limits()
	h.threads = h.findThreads()
	h.interrupts = h.findInterrupts()
	h.canIRQs = h.findCANIRQs()
	return h
}

// refused says that a file is there, as far as can be told, and not for us.
func refused(err error) bool { return err != nil && !errors.Is(err, fs.ErrNotExist) }

// housekeeping are the CPUs for everything but loops: not this one's, nor another
// isolated one, which is another loop's, nor one that shares its core with this
// one's; what comes after is taken where nothing else is left.
func (h *host) housekeeping() []int {
	others := slices.DeleteFunc(slices.Clone(h.Online), func(c int) bool { return c == h.CPU })
	for _, kept := range [][]int{h.Isolated, h.Siblings()} {
		if rest := hostinfo.CPUsWithout(others, kept); len(rest) > 0 {
			others = rest
		}
	}

	return others
}

// rest is housekeeping as the kernel writes it.
func (h *host) rest() string { return hostinfo.FormatCPUs(h.housekeeping()) }
