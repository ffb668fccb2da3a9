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

// running is the host that the tests run on.
const running = hostinfo.Files("/")

// AwaitExit waits for the end of a process that is nobody's child here.
func AwaitExit(t *testing.T, pid int) {
	t.Helper()
	Await(t, fmt.Sprintf("process %d has ended", pid), func() bool {
		p, err := running.Thread(fmt.Sprintf("proc/%d", pid))
		return err != nil || p.State == "Z"
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

// SIGURG is the signal with which the Go runtime preempts a thread.
const SIGURG = 23

// Threads reads those of a process.
func Threads(t *testing.T, pid int) (list []hostinfo.Thread) {
	t.Helper()
	tasks := fmt.Sprintf("proc/%d/task/", pid)
	for _, tid := range running.ReadDir(tasks) {
		if h, err := running.Thread(tasks + tid); err == nil { // else it has just ended
			list = append(list, h)
		}
	}

	if list == nil {
		t.Fatalf("process %d has no threads", pid)
	}
	return list
}

// Blocked are the signals that a thread does not take: bit n-1 is signal n.
func Blocked(t *testing.T, thread hostinfo.Thread) uint64 {
	t.Helper()
	mask, err := strconv.ParseUint(StatusField(t, "/"+thread.Dir, "SigBlk"), 16, 64)
	if err != nil {
		t.Fatalf("%s/status: SigBlk: %v", thread.Dir, err)
	}
	return mask
}

// StatusField is one field of a status file in /proc.
func StatusField(t *testing.T, folder, field string) string {
	t.Helper()
	value, there := running.Fields(folder + "/status")[field]
	if !there {
		t.Fatalf("%s/status has no line %s", folder, field)
	}
	return value
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
	return childOf(supervisor, sched.TargetName)
}

// childOf is the child of a process that has a name; 0: there is none.
func childOf(parent int, name string) int {
	for _, pid := range running.ProcessesNamed(name) {
		if p, err := running.Thread(fmt.Sprintf("proc/%d", pid)); err == nil && p.Parent == parent {
			return pid
		}
	}

	return 0
}

// KernelThread is a thread of the kernel.
func KernelThread(t *testing.T, name string) hostinfo.Thread {
	t.Helper()
	h, err := running.Thread(fmt.Sprintf("proc/%d", running.KernelThread(name)))
	if err != nil {
		t.Fatalf("the kernel has no thread %s", name)
	}
	return h
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
func LoopThread(t *testing.T, target int) hostinfo.Thread {
	t.Helper()
	list := slices.DeleteFunc(Threads(t, target), func(h hostinfo.Thread) bool { return h.Policy == unix.SCHED_NORMAL })
	if len(list) != 1 {
		t.Fatalf("%d threads of the target are real-time ones, want the loop's alone: %v", len(list), list)
	}
	return list[0]
}

// asleep reports whether a process waits for something: proc(5), state S.
func asleep(pid int) bool {
	p, err := running.Thread(fmt.Sprintf("proc/%d", pid))
	return err == nil && p.State == "S"
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
		child = childOf(parent, name)
		return child != 0
	})
	return child
}
