package hiltest

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Scheduling policies, as sched(7) numbers them.
const (
	policyOther    = 0
	policyFIFO     = 1
	policyDeadline = 6
)

// sigurg is the signal with which the Go runtime preempts a thread.
const sigurg = 23

// thread is what /proc tells of one.
type thread struct {
	tid              int
	name             string
	policy, priority int    // priority 1 to 99; 0 for those without
	cpus             string // that it may run on, as a list
	blocked          uint64 // signals: bit n-1 is signal n
}

func (t thread) String() string {
	return fmt.Sprintf("%d %s: policy %d, priority %d, CPUs %s", t.tid, t.name, t.policy, t.priority, t.cpus)
}

// threads reads those of a process.
func threads(t *testing.T, pid int) (list []thread) {
	t.Helper()
	folders, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, folder := range folders {
		stat, err := os.ReadFile(folder + "/stat")
		if err != nil { // it has just ended
			continue
		}
		// The name, in parentheses, may hold anything; proc(5) counts fields from 1.
		name, rest, _ := strings.Cut(string(stat[strings.IndexByte(string(stat), '(')+1:]), ") ")
		field := strings.Fields(rest) // from field 3
		h := thread{name: name, cpus: status(t, folder, "Cpus_allowed_list")}
		h.tid, _ = strconv.Atoi(filepath.Base(folder))
		h.priority, _ = strconv.Atoi(field[40-3])
		h.policy, _ = strconv.Atoi(field[41-3])
		if h.blocked, err = strconv.ParseUint(status(t, folder, "SigBlk"), 16, 64); err != nil {
			t.Fatalf("%s/status: SigBlk: %v", folder, err)
		}
		list = append(list, h)
	}
	if list == nil {
		t.Fatalf("process %d has no threads", pid)
	}
	return list
}

// status is one field of a status file in /proc.
func status(t *testing.T, folder, field string) string {
	t.Helper()
	text, err := os.ReadFile(folder + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("%s/status has no line %s", folder, field)
	return ""
}

// target is the process that a bench's supervisor has started.
func (b *bench) target() int {
	b.t.Helper()
	pid := targetOf(b.t, b.cmd.Process.Pid)
	if pid == 0 {
		b.t.Fatalf("%s: no child is called lockstep-target\n%s%s", b.name, &b.out, &b.err)
	}
	return pid
}

// targetOf is the target of a supervisor, 0 if it has none.
func targetOf(t *testing.T, supervisor int) int {
	t.Helper()
	for _, pid := range processes("lockstep-target") {
		if status(t, fmt.Sprintf("/proc/%d", pid), "PPid") == strconv.Itoa(supervisor) {
			return pid
		}
	}
	return 0
}

// processes are those of a name.
func processes(name string) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.TrimSpace(string(text)) == name {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}

// kernelThread is the priority and the policy of a thread of the kernel.
func kernelThread(t *testing.T, name string) thread {
	t.Helper()
	for _, pid := range processes(name) {
		return threads(t, pid)[0]
	}
	t.Fatalf("the kernel has no thread %s", name)
	return thread{}
}

// dmaLatency is what all who hold /dev/cpu_dma_latency ask for together, µs.
func dmaLatency(t *testing.T) int32 {
	t.Helper()
	data := make([]byte, 4)
	f, err := os.Open("/dev/cpu_dma_latency")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := f.Read(data); n != 4 {
		t.Fatalf("/dev/cpu_dma_latency: %d bytes, %v", n, err)
	}
	return int32(binary.NativeEndian.Uint32(data))
}

// kilobytes is a size in a status file of /proc.
func kilobytes(t *testing.T, pid int, field string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(status(t, fmt.Sprintf("/proc/%d", pid), field), " kB"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// loopThread finds the one thread of the target that is no ordinary one.
func loopThread(t *testing.T, target int) thread {
	t.Helper()
	list := slices.DeleteFunc(threads(t, target), func(h thread) bool { return h.policy == policyOther })
	if len(list) != 1 {
		t.Fatalf("%d threads of the target are real-time ones, want the loop's alone: %v", len(list), list)
	}
	return list[0]
}

// await waits until something is so, and fails the test if it does not come true.
func await(t *testing.T, what string, d time.Duration, so func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// online takes CPU 1 away, or gives it back.
func online(t *testing.T, value string) {
	t.Helper()
	if err := os.WriteFile("/sys/devices/system/cpu/cpu"+isolated+"/online", []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

func cpuOffline(t *testing.T) {
	b := runRT(t)
	online(t, "0")
	defer online(t, "1")
	select {
	case <-b.done:
	case <-time.After(3 * time.Second):
		r := b.stop()
		if !r.BestEffort || !strings.Contains(b.out.String(), "the loop lost CPU "+isolated) {
			t.Errorf("the run went on, best effort %t, and does not say that the loop lost its CPU:\n%s", r.BestEffort, &b.out)
		}
		return
	}
	said := strings.TrimSpace(b.err.String())
	t.Logf("the run has ended: %s", said)
	if code := b.wait(0); code != 1 || !strings.HasPrefix(said, "lockstep: run: ") || strings.Contains(said, "\n") {
		t.Errorf("exit %d, want 1 and the reason in a line: %q", code, said)
	}
}
