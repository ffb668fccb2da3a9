package sched

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe asks for what Enter, HoldLatency and Timers.Raise take, and for a real-time
// kernel, and keeps nothing: it returns what the host would refuse to a child of
// this process.
func Probe(t Thread) []Missing {
	t = t.Choose()
	missing, fifo := probe("/", t)
	if !fifo { // said already, with the limit
		t.Priority = 0
	}
	missing = append(missing, onThread(t.try)...)
	f, m := HoldLatency()
	if m != nil {
		missing = append(missing, *m)
	} else if f != nil {
		f.Close()
	}
	if t.Sleep != Nanosleep {
		if m := (Timers{"/", t.CPU}).Probe(min(t.Priority+1, 99)); m != nil {
			missing = append(missing, *m)
		}
	}
	return missing
}

// try asks the kernel for the CPU and the policy with the calling thread, because
// limits and capabilities do not say everything: a control group may be without
// the CPU, or have no real-time share.
func (t Thread) try() (missing []Missing) {
	if err := moveTo(t.CPU); err != nil {
		missing = append(missing, missingCPU(t.CPU, reason(err), online("/")))
	}
	return append(missing, t.enterPolicy()...)
}

// probe reads the rights from the files below root, "/" on the host itself;
// fifo says that nothing in them speaks against the priority.
func probe(root string, t Thread) (missing []Missing, fifo bool) {
	status := fields(filepath.Join(root, "proc/thread-self/status"))
	caps, _ := strconv.ParseUint(status["CapEff"], 16, 64)
	limits := readLimits(filepath.Join(root, "proc/self/limits"))

	allowed := parseCPUs(status["Cpus_allowed_list"])
	if t.CPU >= 0 {
		allowed.Clear(t.CPU)
	}
	if allowed.Count() == 0 {
		missing = append(missing, missingAlone(t.CPU, online(root)))
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
	if !realtime(root) {
		missing = append(missing, Missing{
			Of:   ResourcePreemptRT,
			What: "the kernel is not PREEMPT_RT",
			Help: "boot a PREEMPT_RT kernel (Debian: apt-get install linux-image-rt-amd64)",
		})
	}
	return missing, fifo
}

// Throttling says how much of a CPU the kernel leaves to its real-time threads together,
// as words behind a sentence; "" it holds none back.
func Throttling() string { return throttling("/") }

func throttling(root string) string {
	number := func(name string) (float64, error) {
		text, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel", name))
		if err != nil {
			return 0, err
		}
		return strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	}
	share, err1 := number("sched_rt_runtime_us")
	period, err2 := number("sched_rt_period_us")
	if err1 != nil || err2 != nil || !(share >= 0 && share < period) {
		return ""
	}
	return fmt.Sprintf(", and real-time throttling leaves them %.3g %% of it together (kernel.sched_rt_runtime_us)", 100*share/period)
}

// capable tells whether the calling thread has a capability, capabilities(7).
func capable(bit int) bool {
	caps, err := strconv.ParseUint(fields("/proc/thread-self/status")["CapEff"], 16, 64)
	return err == nil && caps&(1<<bit) != 0
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
