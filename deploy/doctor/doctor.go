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

	"lockstep/deploy/latency"
	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// Level is the importance of a check.
type Level string

// A host is fit if all checks of level Must are OK.
//
// Must marks properties that no priority of the loop compensates, and that a short measurement may
// not show: a kernel without preemption, a hypervisor, a CPU shared with other work, no real-time
// priority, memory that may be paged out, a frequency that follows the load (the worst tick is
// measured at one frequency and runs at another), a timer thread that real-time threads delay,
// and a named bus that is not up.
//
// Should marks bounded jitter that `lockstep latency` shows: idle states, shared cores, interrupts,
// huge pages. RT throttling belongs here: only a runaway loop uses 95 % of a second, and
// throttling then protects the host.
const (
	Must   Level = "must"
	Should Level = "should"
	Info   Level = "info"
)

// Verdict is the result of a check.
type Verdict string

// Unknown marks a property that cannot be read, for lack of rights or because a container hides it.
// With level Must the host is not fit, as with Wrong.
const (
	OK      Verdict = "ok"
	Wrong   Verdict = "wrong"
	Unknown Verdict = "unknown"
)

// Can is the place where a property can be changed, and the time at which the change takes effect.
type Can string

// Can is "" if no change is needed, or if the change is not known.
const (
	Now      Can = "now"      // at once, until the next boot
	Restart  Can = "restart"  // in this kernel, after a restart of lockstep
	Boot     Can = "boot"     // after a boot of this kernel with another command line
	Kernel   Can = "kernel"   // after a boot of another kernel
	Firmware Can = "firmware" // after a change or an update of the firmware (BIOS)
	Outside  Can = "outside"  // only outside of this container or virtual machine
	Hardware Can = "hardware" // not on this hardware
)

// Check is the result for one property of the host. Wanted and Why are always set, Command and Can
// only if the verdict is not OK.
type Check struct {
	Name    string  `json:"name"`
	Level   Level   `json:"level"`
	Verdict Verdict `json:"verdict"`
	Found   string  `json:"found"`
	Wanted  string  `json:"wanted"`
	Why     string  `json:"why"`
	Command string  `json:"command,omitempty"`
	Can     Can     `json:"can,omitempty"`

	Changes []Change `json:"changes,omitempty"` // changes that -fix makes
}

// Host identifies the host and the loop that it is judged for.
type Host struct {
	Name       string `json:"name"`
	Kernel     string `json:"kernel"`
	CPUs       string `json:"cpus"`                 // online CPUs, like "0-3"
	Hypervisor string `json:"hypervisor,omitempty"` // "" if none is known
	Container  string `json:"container,omitempty"`  // "" if none is known
	CPU        int    `json:"cpu"`                  // CPU of the loop
	Priority   int    `json:"priority"`             // SCHED_FIFO priority of the loop
	Timer      string `json:"timer"`                // system call with which the loop sleeps
}

// Diagnosis is the result of all checks of a host.
type Diagnosis struct {
	Fit    bool    `json:"fit"` // true if every check of level Must is OK
	Host   Host    `json:"host"`
	Checks []Check `json:"checks"`
}

// Requirements describes the loop that a host is judged for.
type Requirements struct {
	CPU      int      // CPU of the loop; -1 for the highest isolated one, or else the highest allowed one
	Priority int      // SCHED_FIFO priority, 1 to 99
	Timer    string   // "timerfd" or "nanosleep"
	Buses    []string // CAN interfaces that must be up
	Loop     int      // thread of a running loop, which is not its own rival; 0 if none runs

	Timers *latency.TimerComparison // measured comparison of the timers; nil: not measured, no check
}

// interfaceName matches names that the kernel accepts and that need no quotes in a shell.
var interfaceName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)

// checks lists the checks of every host in the order of the report. {cpu} stands for the loop's CPU,
// {priority} for its priority, {wake} for maxWake.
var checks = []struct {
	run         func(h *host, c Check) Check
	name        string
	level       Level
	wanted, why string
}{
	{(*host).checkKernel, "kernel", Must,
		"a PREEMPT_RT kernel",
		"other kernels delay the loop without a bound, in every driver"},
	{(*host).checkVirtualisation, "virtualisation", Must,
		"a physical machine",
		"the hypervisor may stop the CPUs of a virtual machine at any time; the virtual machine cannot prevent it"},
	{(*host).checkContainer, "container", Info,
		"none, or a container with real-time rights",
		"the kernel belongs to the host: kernel settings are read and changed on the host"},
	{(*host).checkCPU, "cpu", Must,
		"one CPU for the loop and one for all other work, both allowed for this process",
		"without a second CPU, the loop and the other threads of lockstep delay each other"},
	{(*host).checkIsolation, "isolation", Must,
		"CPU {cpu} isolated by isolcpus=domain or an isolated cpuset partition",
		"other work runs kernel code with preemption or interrupts off; no priority of the loop interrupts it"},
	{(*host).checkPriority, "priority", Must,
		"the right to SCHED_FIFO {priority}: cap_sys_nice or an rtprio limit of {priority}",
		"without a real-time priority the loop waits for all other threads"},
	{(*host).checkMemlock, "memlock", Must,
		"the right to lock all memory: cap_ipc_lock or an unlimited memlock limit",
		"a page that was swapped out delays a tick by microseconds to milliseconds"},
	{(*host).checkCapabilities, "capabilities", Should,
		"cap_sys_nice and cap_ipc_lock",
		"limits grant priority and memory; raising the timer thread and SCHED_DEADLINE need cap_sys_nice"},
	{(*host).checkKtimers, "ktimers", Must,
		"ktimers/{cpu} above FIFO {priority}, or nanosleep as the timer",
		"on PREEMPT_RT a timerfd expires in this thread: every real-time thread above ktimers delays the loop"},
	{(*host).checkKsoftirqd, "ksoftirqd", Should,
		"ksoftirqd/{cpu} below FIFO {priority}",
		"ksoftirqd does deferred network work without a limit: " +
			"above the loop it delays the loop in a flood of frames"},
	{(*host).checkRivals, "rivals", Should,
		"no thread of FIFO {priority} or more may run on CPU {cpu}",
		"such a thread delays the loop for as long as it runs"},
	{(*host).checkThrottling, "throttling", Should,
		"off, once the bench has passed its soak",
		"throttling stops a loop that runs 95 % of a second for the rest of the second. " +
			"Only a runaway loop runs that long: keep throttling on until the soak has passed"},
	{(*host).checkInterrupts, "interrupts", Should,
		"no interrupts of devices on CPU {cpu}, new ones included",
		"each interrupt stops the loop for its handler, on PREEMPT_RT for the part that wakes the thread"},
	{(*host).checkCANInterrupts, "can interrupts", Should,
		"their threads on other CPUs than {cpu}, or above FIFO {priority}",
		"a frame waits in the card until this thread has run: " +
			"below the loop on the same CPU, the frame misses its tick"},
	{(*host).checkGovernor, "governor", Must,
		"performance",
		"a loop that sleeps most of the time gets the lowest frequency: " +
			"ticks take several times the measured time, and each change of frequency stalls the CPU"},
	{(*host).checkIdle, "idle states", Should,
		"no state with an exit latency above {wake} us, or the right to write /dev/cpu_dma_latency",
		"the loop wakes up later by the exit latency of the idle state"},
	{(*host).checkSMT, "smt", Should,
		"no other CPU on the core of the loop",
		"work on the other thread of the core uses its caches and execution units: " +
			"a tick takes up to twice as long"},
	{(*host).checkClock, "clock source", Should,
		"a clock that is read without a system call (tsc, arch_sys_counter)",
		"the loop reads the clock several times a tick; " +
			"hpet and acpi_pm take 1 us or more for each read, one CPU at a time"},
	{(*host).checkHugePages, "huge pages", Should,
		"madvise or never",
		"with always, khugepaged moves the pages of the loop, also locked ones"},
	{(*host).checkNUMA, "numa balancing", Should,
		"off",
		"the kernel unmaps pages to see which CPU uses them: page faults in the loop, also with locked memory"},
	{(*host).checkRTLA, "rtla", Info,
		"rtla, and the tracers timerlat and osnoise in the kernel",
		"latency then shows the latency of timer interrupts and threads, and what takes the CPU"},
	{(*host).checkHwlatdetect, "hwlatdetect", Info,
		"hwlatdetect, and the tracer hwlat in the kernel",
		"latency then shows how long the hardware and its firmware stop the CPU"},
	{(*host).checkTracing, "tracing", Info,
		"no active tracer, except while causes of late ticks are recorded",
		"a tracer delays what it traces: osnoise adds about 1 us to each interrupt and each switch of a thread"},
}

// Examine reads the files of a host below root, "/" for the running one, and judges them. It fails
// if root is not a host or a bus has an invalid name. It changes nothing.
func Examine(root string, req Requirements) (Diagnosis, error) {
	h, err := openHost(root, req)
	if err != nil {
		return Diagnosis{}, err
	}
	return h.diagnose(), nil
}

// openHost reads the host below root.
func openHost(root string, req Requirements) (*host, error) {
	for _, name := range req.Buses {
		if !interfaceName.MatchString(name) {
			return nil, fmt.Errorf("doctor: invalid name %q of a CAN interface: use 1 to 15 letters, digits, \".\", \"_\" and \"-\", like can0", name)
		}
	}

	if _, err := os.Stat(filepath.Join(root, "proc", "version")); err != nil {
		return nil, fmt.Errorf("doctor: %s is not the root of a host: %w", root, err)
	}
	return newHost(root, req), nil
}

func (h *host) diagnose() Diagnosis {
	d := Diagnosis{Fit: true, Host: Host{
		Name:       h.Text("proc/sys/kernel/hostname"),
		Kernel:     h.Release,
		CPUs:       hostinfo.FormatCPUs(h.Online),
		Hypervisor: h.Hypervisor,
		Container:  h.Container,
		CPU:        h.CPU,
		Priority:   h.req.Priority,
		Timer:      h.req.Timer,
	}}
	fill := strings.NewReplacer("{cpu}", strconv.Itoa(h.CPU), "{priority}", strconv.Itoa(h.req.Priority),
		"{wake}", strconv.Itoa(maxWake))
	for _, c := range checks {
		check := Check{Name: c.name, Level: c.level, Wanted: fill.Replace(c.wanted), Why: c.why}
		d.Checks = append(d.Checks, c.run(h, check))
	}

	if h.req.Timers != nil {
		d.Checks = append(d.Checks, h.checkTimer())
	}

	d.Checks = append(d.Checks, h.checkCAN()...)
	for i := range d.Checks {
		c := &d.Checks[i]
		// A container shares the kernel of its host and usually may not change its settings.
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

// Check returns the check called name; nil if there is none.
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

// unreadable returns the check with verdict Unknown: this user or container cannot read the property.
func (c Check) unreadable(found string) Check {
	return c.unknown(found, "sudo "+hostinfo.Executable()+" doctor")
}

// unknown returns the check with verdict Unknown; command shows the property to the user.
func (c Check) unknown(found, command string) Check {
	c.Verdict, c.Found, c.Command = Unknown, found, command
	return c
}

// host holds the properties of a host that several checks need, and the operations that change it.
type host struct {
	*hostinfo.Host
	req         Requirements
	operations  operations
	reservation string // name of the lock on the host's settings

	irqbalance bool              // true if the daemon irqbalance runs
	limits     map[string]uint64 // soft limits of this process
	threads    []hostinfo.Thread // threads with a real-time policy, and ksoftirqd

	interrupts []interrupt
	canIRQs    map[string][]string // interfaces by interrupt of a CAN card
}

func newHost(root string, req Requirements) *host {
	h := &host{Host: hostinfo.Read(root, req.CPU), req: req, operations: operations{write: write}, reservation: sched.HostSettings}
	if h.Live() {
		h.operations = kernelOperations()
	}
	h.limits = h.Limits()
	h.threads = h.findThreads()
	h.interrupts = h.findInterrupts()
	h.canIRQs = h.findCANIRQs()
	return h
}

// readFailed reports whether err is an error other than a missing file.
func readFailed(err error) bool { return err != nil && !errors.Is(err, fs.ErrNotExist) }

// housekeeping returns the CPUs for all work except loops. It leaves out the loop's CPU, then the
// other isolated CPUs, which belong to other loops, then the siblings of the loop's CPU; the last
// two only if other CPUs remain.
func (h *host) housekeeping() []int {
	others := slices.DeleteFunc(slices.Clone(h.Online), func(c int) bool { return c == h.CPU })
	for _, avoid := range [][]int{h.Isolated, h.Siblings()} {
		if rest := hostinfo.CPUsWithout(others, avoid); len(rest) > 0 {
			others = rest
		}
	}

	return others
}

// housekeepingList formats the housekeeping CPUs, like "0-2".
func (h *host) housekeepingList() string { return hostinfo.FormatCPUs(h.housekeeping()) }
