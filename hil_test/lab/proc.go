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

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// host is the machine on which the tests run.
const host = hostinfo.Files("/")

// AwaitExit waits for the end of a process that is not a child of the test. The first thread of a
// killed process may end before the others, which still hold its files.
func AwaitExit(t *testing.T, pid int) {
	t.Helper()
	Await(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		p, err := host.Thread(fmt.Sprintf("proc/%d", pid))
		return err != nil || p.State == "Z" && len(host.ReadDir(fmt.Sprintf("proc/%d/task", pid))) <= 1
	})
}

// IsolatedCPU is the CPU of the loop in the lab; all other threads run on CPU 0.
const IsolatedCPU = "1"

// ReadTrimmed reads a file and removes white space at both ends.
func ReadTrimmed(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// CardCounters returns the statistics of the cards can0 and can1, by "CARD COUNTER".
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

// SIGURG is the signal with which the Go runtime preempts a thread.
const SIGURG = 23

// Threads returns the threads of a process.
func Threads(t *testing.T, pid int) (list []hostinfo.Thread) {
	t.Helper()
	tasks := fmt.Sprintf("proc/%d/task/", pid)
	for _, tid := range host.ReadDir(tasks) {
		if h, err := host.Thread(tasks + tid); err == nil { // else it has just ended
			list = append(list, h)
		}
	}

	if list == nil {
		t.Fatalf("process %d has no threads", pid)
	}
	return list
}

// Blocked returns the signals that a thread blocks: bit n-1 is signal n.
func Blocked(t *testing.T, thread hostinfo.Thread) uint64 {
	t.Helper()
	mask, err := strconv.ParseUint(StatusField(t, "/"+thread.Dir, "SigBlk"), 16, 64)
	if err != nil {
		t.Fatalf("%s/status: SigBlk: %v", thread.Dir, err)
	}
	return mask
}

// StatusField returns a field of the status file of a folder in /proc.
func StatusField(t *testing.T, folder, field string) string {
	t.Helper()
	value, there := host.Fields(folder + "/status")[field]
	if !there {
		t.Fatalf("%s/status has no line %s", folder, field)
	}
	return value
}

// Target returns the process id of the target of a bench.
func (b *Bench) Target() int {
	b.T.Helper()
	pid := TargetOf(b.T, b.Cmd.Process.Pid)
	if pid == 0 {
		b.T.Fatalf("%s: no child lockstep-target\n%s%s", b.Name, &b.Out, &b.Err)
	}
	return pid
}

// TargetOf returns the process id of the target of a supervisor; 0: it has none.
func TargetOf(t *testing.T, supervisor int) int {
	t.Helper()
	return childOf(supervisor, sched.TargetName)
}

// AwaitGuard returns the process id of the guard of a supervisor once it has its real-time priority.
func AwaitGuard(t *testing.T, supervisor int) (pid int) {
	t.Helper()
	Await(t, "the guard has its real-time priority", func() bool {
		pid = childOf(supervisor, "lockstep-guard")
		h, err := host.Thread(fmt.Sprintf("proc/%d", pid))
		return pid != 0 && err == nil && h.Priority > 0
	})
	return pid
}

// childOf returns the process id of the child with a name; 0: there is none.
func childOf(parent int, name string) int {
	for _, pid := range host.ProcessesNamed(name) {
		if p, err := host.Thread(fmt.Sprintf("proc/%d", pid)); err == nil && p.Parent == parent {
			return pid
		}
	}

	return 0
}

// KernelThread returns a thread of the kernel by name.
func KernelThread(t *testing.T, name string) hostinfo.Thread {
	t.Helper()
	h, err := host.Thread(fmt.Sprintf("proc/%d", host.KernelThread(name)))
	if err != nil {
		t.Fatalf("the kernel has no thread %s", name)
	}
	return h
}

// DMALatency returns the latency limit that /dev/cpu_dma_latency has in force, µs.
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

// StatusKilobytes returns a size in the status file of a process, kB.
func StatusKilobytes(t *testing.T, pid int, field string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSuffix(StatusField(t, fmt.Sprintf("/proc/%d", pid), field), " kB"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// LoopThread returns the thread of the loop: the only real-time thread of the target.
func LoopThread(t *testing.T, target int) hostinfo.Thread {
	t.Helper()
	list := slices.DeleteFunc(Threads(t, target), func(h hostinfo.Thread) bool { return h.Policy == unix.SCHED_NORMAL })
	if len(list) != 1 {
		t.Fatalf("the target has %d real-time threads, want only that of the loop: %v", len(list), list)
	}
	return list[0]
}

// asleep reports whether a process sleeps: proc(5), state S.
func asleep(pid int) bool {
	p, err := host.Thread(fmt.Sprintf("proc/%d", pid))
	return err == nil && p.State == "S"
}

// AwaitSocket waits until a process has a socket and sleeps. It is for programs that do not
// report when they listen.
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

// Child waits for the child of a process with a name and returns its process id.
func Child(t *testing.T, parent int, name string) (child int) {
	t.Helper()
	Await(t, fmt.Sprintf("process %d has a child %s", parent, name), func() bool {
		child = childOf(parent, name)
		return child != 0
	})
	return child
}
