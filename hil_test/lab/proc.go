package lab

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// AwaitExit waits for the end of a process that is nobody's child here.
func AwaitExit(t *testing.T, pid int) {
	t.Helper()
	Await(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(text), ") Z ")
	})
}

// IsolatedCPU is the lab's CPU for the loop; everything else lives on CPU 0.
const IsolatedCPU = "1"

func ReadTrimmed(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// CardCounters are the counters of both, by card and name.
func CardCounters(t *testing.T) map[string]int {
	t.Helper()
	counters := map[string]int{}
	files, _ := filepath.Glob("/sys/class/net/can[01]/statistics/*")
	for _, file := range files {
		n, err := strconv.Atoi(ReadTrimmed(t, file))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		folder := strings.Split(file, "/")
		counters[folder[4]+" "+folder[6]] = n
	}
	return counters
}

// Scheduling policies, as sched(7) numbers them.
const (
	PolicyOther    = 0
	PolicyFIFO     = 1
	PolicyDeadline = 6
)

// SIGURG is the signal with which the Go runtime preempts a thread.
const SIGURG = 23

// Thread is what /proc tells of one.
type Thread struct {
	Tid              int
	name             string
	Policy, Priority int    // priority 1 to 99; 0 for those without
	Cpus             string // that it may run on, as a list
	Blocked          uint64 // signals: bit n-1 is signal n
}

func (t Thread) String() string {
	return fmt.Sprintf("%d %s: policy %d, priority %d, CPUs %s", t.Tid, t.name, t.Policy, t.Priority, t.Cpus)
}

// Threads reads those of a process.
func Threads(t *testing.T, pid int) (list []Thread) {
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
		h := Thread{name: name, Cpus: StatusField(t, folder, "Cpus_allowed_list")}
		h.Tid, _ = strconv.Atoi(filepath.Base(folder))
		h.Priority, _ = strconv.Atoi(field[40-3])
		h.Policy, _ = strconv.Atoi(field[41-3])
		if h.Blocked, err = strconv.ParseUint(StatusField(t, folder, "SigBlk"), 16, 64); err != nil {
			t.Fatalf("%s/status: SigBlk: %v", folder, err)
		}
		list = append(list, h)
	}
	if list == nil {
		t.Fatalf("process %d has no threads", pid)
	}
	return list
}

// StatusField is one field of a status file in /proc.
func StatusField(t *testing.T, folder, field string) string {
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

// Target is the process that a bench's supervisor has started.
func (b *Bench) Target() int {
	b.T.Helper()
	pid := TargetOf(b.T, b.Cmd.Process.Pid)
	if pid == 0 {
		b.T.Fatalf("%s: no child is called lockstep-target\n%s%s", b.Name, &b.Out, &b.Err)
	}
	return pid
}

// TargetOf is the target of a supervisor, 0 if it has none.
func TargetOf(t *testing.T, supervisor int) int {
	t.Helper()
	for _, pid := range ProcessesNamed("lockstep-target") {
		if StatusField(t, fmt.Sprintf("/proc/%d", pid), "PPid") == strconv.Itoa(supervisor) {
			return pid
		}
	}
	return 0
}

// ProcessesNamed are those of a name.
func ProcessesNamed(name string) (list []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, file := range files {
		if text, _ := os.ReadFile(file); strings.TrimSpace(string(text)) == name {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list = append(list, pid)
		}
	}
	return list
}

// KernelThread is the priority and the policy of a thread of the kernel.
func KernelThread(t *testing.T, name string) Thread {
	t.Helper()
	for _, pid := range ProcessesNamed(name) {
		return Threads(t, pid)[0]
	}
	t.Fatalf("the kernel has no thread %s", name)
	return Thread{}
}

// DMALatency is what all who hold /dev/cpu_dma_latency ask for together, µs.
func DMALatency(t *testing.T) int32 {
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

// StatusKilobytes is a size in a status file of /proc.
func StatusKilobytes(t *testing.T, pid int, field string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(StatusField(t, fmt.Sprintf("/proc/%d", pid), field), " kB"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// LoopThread finds the one thread of the target that is no ordinary one.
func LoopThread(t *testing.T, target int) Thread {
	t.Helper()
	list := slices.DeleteFunc(Threads(t, target), func(h Thread) bool { return h.Policy == PolicyOther })
	if len(list) != 1 {
		t.Fatalf("%d threads of the target are real-time ones, want the loop's alone: %v", len(list), list)
	}
	return list[0]
}

// asleep reports whether a process waits for something: proc(5), state S.
func asleep(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, ok := strings.Cut(string(stat), ") ")
	return ok && strings.HasPrefix(rest, "S ")
}

// AwaitSocket waits until a process has a socket and sleeps: it listens. For programs that
// do not say when they are ready.
func AwaitSocket(p *Process) {
	p.T.Helper()
	Await(p.T, p.Name+" listens at a socket", func() bool {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Cmd.Process.Pid))
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); strings.HasPrefix(to, "socket:") {
				return asleep(p.Cmd.Process.Pid)
			}
		}
		return false
	})
}

// Child returns the process id of the child of a process that has a name, once there is one.
func Child(t *testing.T, parent int, name string) (child int) {
	t.Helper()
	Await(t, fmt.Sprintf("process %d has a child %s", parent, name), func() bool {
		for _, pid := range ProcessesNamed(name) {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // "7 (name) S parent ..."
			_, rest, _ := strings.Cut(string(stat), ") ")
			if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(parent) {
				child = pid
				return true
			}
		}
		return false
	})
	return child
}
