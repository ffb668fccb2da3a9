package doctor

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// readLimits returns the soft limits of a text as /proc/PID/limits has it, in
// columns of 26 and 21 characters; "unlimited" is the largest uint64.
func readLimits(text string) map[string]uint64 {
	limits := map[string]uint64{}
	for line := range strings.Lines(text) {
		if len(line) < 47 {
			continue
		}
		soft := strings.TrimSpace(line[26:47])
		value, err := strconv.ParseUint(soft, 10, 64)
		if soft == "unlimited" {
			value, err = math.MaxUint64, nil
		}
		if err == nil {
			limits[strings.TrimSpace(line[:26])] = value
		}
	}
	return limits
}

// thread is one of the host, proc_pid_stat(5).
type thread struct {
	pid      int
	name     string
	policy   int // see the constants below
	priority int // real-time, 1 to 99; 0 of the other policies
	nice     int // -20 to 19; what a real-time thread gets back without its priority
	cpus     []int
	start    uint64 // clock ticks after the boot
	fixed    bool   // on its CPUs: the kernel lets nobody move it (PF_NO_SETAFFINITY)
	dir      string // below the root: "proc/412/task/412"
}

// Policies of sched(7).
const (
	schedFIFO     = 1
	schedRR       = 2
	schedDeadline = 6
)

// policies are their names, by number; chrt(1) has the same.
var policies = []string{"OTHER", "FIFO", "RR", "BATCH", "", "IDLE", "DEADLINE"}

// policyText writes how a thread is scheduled: "FIFO 81", "OTHER".
func policyText(policy, priority int) string {
	switch {
	case policy == schedFIFO, policy == schedRR:
		return fmt.Sprintf("%s %d", policies[policy], priority)
	case policy >= 0 && policy < len(policies):
		return policies[policy]
	}
	return strconv.Itoa(policy)
}

// parsePolicy reads what policyText writes; a deadline is not in the text.
func parsePolicy(text string) (policy, priority int, err error) {
	name, number, realtime := strings.Cut(text, " ")
	policy = slices.Index(policies, name)
	if realtime {
		priority, err = strconv.Atoi(number)
	}
	known := policy >= 0 && policy != schedDeadline && name != "" && realtime == (policy == schedFIFO || policy == schedRR)
	if err != nil || !known || realtime && (priority < 1 || priority > 99) {
		return 0, 0, fmt.Errorf("doctor: %q is no policy that a thread can be given", text)
	}
	return policy, priority, nil
}

// parseStat reads a line as /proc/PID/stat has it. The name may hold spaces and
// parentheses: it ends at the last one.
func parseStat(text string) (thread, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return thread{}, fmt.Errorf("doctor: a stat line without a name: %.80q", text)
	}
	t := thread{name: text[open+1 : end]}
	rest := strings.Fields(text[end+1:]) // from the third field on
	if len(rest) < 39 {
		return thread{}, fmt.Errorf("doctor: a stat line of %d fields, wanted 41: %.80q", len(rest)+2, text)
	}
	var err error
	for _, f := range []struct {
		dst  *int
		text string
	}{{&t.pid, strings.TrimSpace(text[:open])}, {&t.nice, rest[19-3]}, {&t.priority, rest[40-3]}, {&t.policy, rest[41-3]}} {
		if *f.dst, err = strconv.Atoi(f.text); err != nil {
			return thread{}, fmt.Errorf("doctor: %q in the stat line of %q is no number", f.text, t.name)
		}
	}
	if t.start, err = strconv.ParseUint(rest[22-3], 10, 64); err != nil {
		return thread{}, fmt.Errorf("doctor: %q in the stat line of %q is no number", rest[22-3], t.name)
	}
	const noSetAffinity = 0x04000000 // linux/sched.h
	flags, err := strconv.ParseUint(rest[9-3], 10, 32)
	if err != nil {
		return thread{}, fmt.Errorf("doctor: %q in the stat line of %q is no number", rest[9-3], t.name)
	}
	t.fixed = flags&noSetAffinity != 0
	return t, nil
}

// scheduling says how a thread is scheduled: "FIFO 50".
func (t thread) scheduling() string {
	switch t.policy {
	case schedFIFO:
		return fmt.Sprintf("FIFO %d", t.priority)
	case schedRR:
		return fmt.Sprintf("RR %d", t.priority)
	case schedDeadline:
		return "DEADLINE"
	}
	return "no real-time priority"
}

// rank orders threads as the scheduler does: DEADLINE, 100, above FIFO and RR, 1
// to 99, above the rest, 0.
func (t thread) rank() int {
	switch t.policy {
	case schedFIFO, schedRR:
		return t.priority
	case schedDeadline:
		return 100
	}
	return 0
}

// interrupt is a line of /proc/interrupts.
type interrupt struct {
	number  string         // "27"
	counts  map[int]uint64 // by CPU, since the boot
	actions string         // who asked for it: "can0", "eth0-rx-0, eth0-tx-0"

	mask []int // CPUs that may take it
	cpus []int // CPUs that do
}

// parseInterrupts reads a text as /proc/interrupts has it; it leaves out those
// that every CPU has for itself, such as its timer's.
func parseInterrupts(text string) (list []interrupt) {
	var cpus []int
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if cpus == nil { // the first line: the CPUs that are online
			for _, name := range f {
				cpu, err := strconv.ParseUint(strings.TrimPrefix(name, "CPU"), 10, 31)
				if err != nil {
					return nil
				}
				cpus = append(cpus, int(cpu))
			}
			continue
		}
		number, colon := strings.CutSuffix(f[0], ":")
		if _, err := strconv.ParseUint(number, 10, 31); err != nil || !colon || len(f) < 1+len(cpus) {
			continue
		}
		signal := f[1+len(cpus):]
		if perCPU(signal) {
			continue
		}
		i := interrupt{number: number, counts: map[int]uint64{}}
		for k, cpu := range cpus {
			i.counts[cpu], _ = strconv.ParseUint(f[1+k], 10, 64)
		}
		i.actions = actionsOf(signal)
		list = append(list, i)
	}
	return list
}

// perCPU tells by the chip and its own number: the first 32 of ARM's are private
// to a CPU, all of RISC-V's are. On x86 they have letters for a number.
func perCPU(f []string) bool {
	if len(f) < 2 {
		return false
	}
	number, err := strconv.ParseUint(f[1], 10, 31)
	return strings.HasPrefix(f[0], "GIC") && err == nil && number < 32 || f[0] == "RISC-V" && f[1] == "INTC"
}

// actionsOf cuts the chip, its own number and the kind of signal off what follows
// the counts: "PCI-MSI 524288-edge eth0", "GICv2 30 Level arch_timer".
func actionsOf(f []string) string {
	if len(f) > 0 {
		f = f[1:]
	}
	for len(f) > 0 && (f[0][0] >= '0' && f[0][0] <= '9' || f[0] == "Level" || f[0] == "Edge") {
		f = f[1:]
	}
	return strings.Join(f, " ")
}
