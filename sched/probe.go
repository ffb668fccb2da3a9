package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe asks for what Enter takes, and for a real-time kernel, and keeps
// nothing: it returns what the host would refuse to a child of this process.
func Probe(t Thread) []Missing {
	missing, fifo := probe("/", t)
	if fifo && t.Priority > 0 {
		if err := t.tryFIFO(); err != nil {
			missing = append(missing, missingFIFO(t.Priority, err.Error()))
		}
	}
	return missing
}

// tryFIFO asks the kernel for the priority with a thread that ends right after,
// because limits and capabilities do not say everything: a control group may
// have no real-time share.
func (t Thread) tryFIFO() error {
	answer := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		err := t.enterFIFO(0)
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
		answer <- err
	}()
	return <-answer
}

// probe reads the rights from the files below root, "/" on the host itself;
// fifo says that nothing in them speaks against the priority.
func probe(root string, t Thread) (missing []Missing, fifo bool) {
	status := fields(filepath.Join(root, "proc/self/status"))
	caps, _ := strconv.ParseUint(status["CapEff"], 16, 64)
	limits := readLimits(filepath.Join(root, "proc/self/limits"))

	allowed := parseCPUs(status["Cpus_allowed_list"])
	switch {
	case t.CPU >= 0 && !allowed.IsSet(t.CPU):
		missing = append(missing, missingCPU(t.CPU, fmt.Sprintf("the process may use %q", status["Cpus_allowed_list"]), online(root)))
	case allowed.Count() == 1:
		missing = append(missing, missingAlone(highest(&allowed), online(root)))
	}

	fifo = caps&(1<<unix.CAP_SYS_NICE) != 0 || limits["Max realtime priority"] >= uint64(t.Priority)
	if !fifo {
		missing = append(missing, missingFIFO(t.Priority, fmt.Sprintf("the limit is %d", limits["Max realtime priority"])))
	}
	// mlockall(2): without the capability, all that is mapped must fit the limit.
	size, _ := strconv.ParseUint(strings.TrimSuffix(status["VmSize"], " kB"), 10, 64)
	if limit := limits["Max locked memory"]; caps&(1<<unix.CAP_IPC_LOCK) == 0 && limit < max(size, 1)<<10 {
		missing = append(missing, missingMemory(fmt.Sprintf("the limit is %d kB", limit>>10)))
	}
	if text, err := os.ReadFile(filepath.Join(root, "sys/kernel/realtime")); err != nil || strings.TrimSpace(string(text)) != "1" {
		missing = append(missing, Missing{
			What: "the kernel is not PREEMPT_RT",
			Help: "boot a PREEMPT_RT kernel (Debian: apt-get install linux-image-rt-amd64)",
		})
	}
	return missing, fifo
}

// fields reads a file of lines "Name: value" as /proc/PID/status is; a file that
// cannot be read has none.
func fields(path string) map[string]string {
	text, _ := os.ReadFile(path)
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		values[name] = strings.TrimSpace(value)
	}
	return values
}

// readLimits returns the soft limits of a file as /proc/PID/limits is, in
// columns of 26 and 21 characters; "unlimited" is the largest uint64.
func readLimits(path string) map[string]uint64 {
	text, _ := os.ReadFile(path)
	limits := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		if len(line) < 47 {
			continue
		}
		soft := strings.TrimSpace(line[26:47])
		value, err := strconv.ParseUint(soft, 10, 64)
		if soft == "unlimited" {
			value, err = ^uint64(0), nil
		}
		if err == nil {
			limits[strings.TrimSpace(line[:26])] = value
		}
	}
	return limits
}

// parseCPUs reads a list of CPUs as the kernel writes it: "0-2,5".
func parseCPUs(list string) unix.CPUSet {
	var set unix.CPUSet
	for _, part := range strings.Split(list, ",") {
		lo, hi, span := strings.Cut(strings.TrimSpace(part), "-")
		first, err := strconv.Atoi(lo)
		last := first
		if err == nil && span {
			last, err = strconv.Atoi(hi)
		}
		if err != nil {
			continue
		}
		for cpu := first; cpu <= min(last, len(set)*64-1); cpu++ {
			set.Set(cpu)
		}
	}
	return set
}
