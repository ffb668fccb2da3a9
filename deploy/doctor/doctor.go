package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"lockstep/deploy/hostinfo"
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
	d.Checks = []Check{
		h.checkKernel(), h.checkVirtualisation(), h.checkContainer(),
		h.checkCPU(), h.checkIsolation(),
		h.checkPriority(), h.checkMemlock(), h.checkCapabilities(),
		h.checkKtimers(), h.checkKsoftirqd(), h.checkRivals(), h.checkThrottling(),
		h.checkInterrupts(), h.checkCANInterrupts(),
		h.checkGovernor(), h.checkIdle(), h.checkSMT(), h.checkClock(),
		h.checkHugePages(), h.checkNUMA(),
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
	return c.unsure(found, "sudo "+executable()+" doctor")
}

// unsure is a check of what does not say; command is how to look.
func (c Check) unsure(found, command string) Check {
	c.Verdict, c.Found, c.Command = Unknown, found, command
	return c
}

// executable is the file of this program, for the commands.
func executable() string {
	path, err := os.Executable()
	if err != nil {
		return filepath.Base(os.Args[0])
	}
	return path
}
