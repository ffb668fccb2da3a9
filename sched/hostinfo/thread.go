package hostinfo

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is a thread of the host, or a process described by its first thread, proc_pid_stat(5).
type Thread struct {
	PID      int    // thread id
	Name     string // at most 15 letters
	State    string // "R" runs, "S" sleeps, "Z" has ended; other threads of the process may not have
	Parent   int    // id of the parent process
	Policy   int    // number of the policy, such as unix.SCHED_FIFO
	Priority int    // real-time priority, 1 to 99; 0 for other policies
	Nice     int    // nice value, -20 to 19; in force when a real-time thread loses its priority
	CPUs     []int  // CPUs that it may run on
	Start    uint64 // start, clock ticks after boot
	Fixed    bool   // true if the kernel refuses to change its CPUs (PF_NO_SETAFFINITY)
	Exiting  bool   // true if it executes no more instructions of its program (PF_EXITING)
	Dir      string // folder below the root: "proc/412/task/412"
}

// Thread reads the thread in a folder below the root: "proc/412/task/412", or "proc/412".
func (f Files) Thread(dir string) (Thread, error) {
	t, err := ParseStat(f.Text(path.Join(dir, "stat")))
	if err == nil {
		t.Dir = dir
		t.CPUs, err = ParseCPUs(f.Fields(path.Join(dir, "status"))["Cpus_allowed_list"])
	}

	return t, err
}

// ProcessesNamed returns the ids of the processes with this name, kernel threads included.
func (f Files) ProcessesNamed(name string) (list []int) {
	for _, dir := range f.ReadDir("proc") {
		if pid, err := strconv.Atoi(dir); err == nil && f.Text("proc/"+dir+"/comm") == name {
			list = append(list, pid)
		}
	}

	return list
}

// KernelThread returns the id of the kernel thread with a name; 0 if there is none.
func (f Files) KernelThread(name string) int {
	const kthreadd = 2 // parent of all kernel threads
	for _, pid := range f.ProcessesNamed(name) {
		if t, err := ParseStat(f.Text(fmt.Sprintf("proc/%d/stat", pid))); err == nil && t.Parent == kthreadd {
			return pid
		}
	}

	return 0
}

// ParseStat parses a line of /proc/PID/stat. The name of the thread may contain spaces and
// parentheses: the name ends at the last parenthesis.
func ParseStat(text string) (Thread, error) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return Thread{}, fmt.Errorf("hostinfo: invalid stat line, no name: %.80q", text)
	}
	name := text[open+1 : end]
	field := append([]string{"", strings.TrimSpace(text[:open]), name}, strings.Fields(text[end+1:])...)
	if len(field) < 42 { // fields are numbered from 1
		return Thread{}, fmt.Errorf("hostinfo: invalid stat line, expected 41 fields, got %d: %.80q", len(field)-1, text)
	}

	var bad error
	number := func(i int) int {
		n, err := strconv.Atoi(field[i])
		if err != nil && bad == nil {
			bad = fmt.Errorf("hostinfo: invalid number %q in the stat line of %q", field[i], name)
		}
		return n
	}

	const exiting, noSetAffinity = 0x4, 0x04000000 // linux/sched.h
	t := Thread{
		PID: number(1), Name: name, State: field[3], Parent: number(4),
		Fixed: number(9)&noSetAffinity != 0, Exiting: number(9)&exiting != 0,
		Nice: number(19), Start: uint64(number(22)), Priority: number(40), Policy: number(41),
	}
	if bad != nil {
		return Thread{}, bad
	}
	return t, nil
}

// policies lists the names of the policies by number, as in chrt(1).
var policies = []string{"OTHER", "FIFO", "RR", "BATCH", "", "IDLE", "DEADLINE"}

// FormatPolicy formats policy and priority: "FIFO 81", "OTHER".
func FormatPolicy(policy, priority int) string {
	switch {
	case policy == unix.SCHED_FIFO, policy == unix.SCHED_RR:
		return fmt.Sprintf("%s %d", policies[policy], priority)
	case policy >= 0 && policy < len(policies):
		return policies[policy]
	}

	return strconv.Itoa(policy)
}

// ParsePolicy parses the output of FormatPolicy, except SCHED_DEADLINE.
func ParsePolicy(text string) (policy, priority int, err error) {
	name, number, realtime := strings.Cut(text, " ")
	policy = slices.Index(policies, name)
	if realtime {
		priority, err = strconv.Atoi(number)
	}
	known := policy >= 0 && policy != unix.SCHED_DEADLINE && name != "" &&
		realtime == (policy == unix.SCHED_FIFO || policy == unix.SCHED_RR)
	if err != nil || !known || realtime && (priority < 1 || priority > 99) {
		return 0, 0, fmt.Errorf("hostinfo: invalid scheduling policy %q: use one like OTHER or FIFO 81", text)
	}
	return policy, priority, nil
}

// Scheduling formats the thread's policy and priority: "FIFO 50".
func (t Thread) Scheduling() string {
	if t.Rank() == 0 {
		return "no real-time priority"
	}
	return FormatPolicy(t.Policy, t.Priority)
}

// Rank returns the precedence of the thread: 100 for DEADLINE, 1 to 99 for FIFO and RR, 0 for other
// policies.
func (t Thread) Rank() int {
	switch t.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR:
		return t.Priority
	case unix.SCHED_DEADLINE:
		return 100
	}

	return 0
}
