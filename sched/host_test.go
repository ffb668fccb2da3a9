package sched

import (
	"bytes"
	"errors"
	"fmt"
	"lockstep/sched/hostinfo"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHoldLatencyHoldsZeroUntilItIsClosed(t *testing.T) {
	const device = "/dev/cpu_dma_latency"
	read := func() []byte {
		f, err := os.Open(device)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		us := make([]byte, 4)
		if _, err := f.Read(us); err != nil {
			t.Fatal(err)
		}
		return us
	}
	f, m := HoldLatency()
	switch {
	case m != nil:
		t.Skipf("%s: %s", m.What, m.Help)
	case f == nil:
		t.Skip("the host has no " + device)
	}
	if us := read(); !bytes.Equal(us, make([]byte, 4)) {
		t.Errorf("while it is held, %s reads % x, want 0", device, us)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestHoldLatencyWithoutDeviceOrRight(t *testing.T) {
	if f, m := holdLatency(t.TempDir()); f != nil || m != nil {
		t.Errorf("no device: %v, %v; want nothing held and nothing missing", f, m)
	}
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "dev/cpu_dma_latency"), 0o755); err != nil { // not even root writes to a folder
		t.Fatal(err)
	}
	f, m := holdLatency(root)
	if f != nil || m == nil || m.Of != ResourceLatency || !strings.Contains(m.Help, "cpu_dma_latency") {
		t.Errorf("a device that refuses: %v, %+v", f, m)
	}
	want := "DeviceAllow=/dev/cpu_dma_latency rw" // root lacks it only in a unit
	if uid := os.Geteuid(); uid != 0 {
		want = fmt.Sprintf("sudo chown %d /dev/cpu_dma_latency", uid)
	}
	if m != nil && !strings.HasPrefix(m.Help, want) {
		t.Errorf("a device that refuses: help %q, want %q", m.Help, want)
	}
}

// realtimeHost is a PREEMPT_RT host whose threads are given by id and name; kernel
// threads are children of 2.
func realtimeHost(t *testing.T, parent int, names map[int]string) (root string) {
	files := map[string]string{"sys/kernel/realtime": "1\n"}
	for pid, name := range names {
		files[fmt.Sprintf("proc/%d/comm", pid)] = name + "\n"
		files[fmt.Sprintf("proc/%d/stat", pid)] = fmt.Sprintf("%d (%s) S %d%s", pid, name, parent, strings.Repeat(" 0", 37))
	}
	return tree(t, files)
}

// The fixture names a real thread, this test's own, as the one of the timers.
func TestRaiseTimersRaisesAndRestores(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	self := unix.Gettid()
	policy := func() string {
		attr, err := unix.SchedGetAttr(self, 0)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("policy %d priority %d", attr.Policy, attr.Priority)
	}
	root := realtimeHost(t, 2, map[int]string{self: "ktimers/3", 4: "ktimers/0"})
	before := policy()
	timers, noted := Timers{root, 3}, ""
	note := func(r *Raised) { noted = fmt.Sprintf("%s, to be %d", policy(), r.Priority) }
	if m := timers.Probe(11); (m == nil) != Capable(unix.CAP_SYS_NICE) || policy() != before {
		t.Errorf("asked for: %s, %+v", policy(), m)
	}
	was, m := timers.Raise(11, note)
	if m != nil {
		if want := fmt.Sprintf("chrt -f -p 11 %d", self); policy() != before || !strings.Contains(m.Help, want) {
			t.Errorf("%s; %+v, want %q", policy(), m, want)
		}
		t.Skip(m.What)
	}
	if got := policy(); got != "policy 1 priority 11" {
		t.Errorf("raised: %s, want SCHED_FIFO 11", got)
	}
	if want := before + ", to be 11"; noted != want {
		t.Errorf("noted when it was %q, want %q", noted, want)
	}
	for _, priority := range []int{10, 11} {
		again, m := timers.Raise(priority, note)
		if got := policy(); m != nil || again != nil || got != "policy 1 priority 11" {
			t.Errorf("raised to %d, not more than it has: %s, %v, %v", priority, got, again, m)
		}
		timers.Restore(again) // nothing
	}
	timers.Restore(&Raised{was.Was, 12})
	if got := policy(); got != "policy 1 priority 11" {
		t.Errorf("what somebody else had made 11 was lowered: %s", got)
	}
	set := func(policy uint32) {
		if err := unix.SchedSetAttr(self, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: 11}, 0); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.SCHED_RR)
	timers.Restore(was)
	if got := policy(); got != "policy 2 priority 11" {
		t.Errorf("what somebody else had made SCHED_RR was lowered: %s", got)
	}
	set(unix.SCHED_FIFO)
	if err := timers.Restore(was); err != nil {
		t.Error(err)
	}
	if got := policy(); got != before {
		t.Errorf("restored: %s, want %s", got, before)
	}
}

// Without CAP_SYS_NICE the limit of real-time priorities decides, RLIMIT_RTPRIO of setrlimit(2). The fixture
// names this test's own thread as the one of the timers.
func TestProbeOfTimersFollowsThePriorityLimit(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all, less [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	less = all
	less[0].Effective &^= 1 << unix.CAP_SYS_NICE
	self := unix.Gettid()
	for limit, want := range map[string]bool{"0": false, "10": false, "11": true, "99": true, "unlimited": true} {
		root := realtimeHost(t, 2, map[int]string{self: "ktimers/3"})
		text := "Limit                     Soft Limit           Hard Limit           Units     \n" +
			fmt.Sprintf("%-26s%-21s%-21s\n", "Max realtime priority", limit, "99")
		path := filepath.Join(root, "proc/self/limits")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Capset(&header, &less[0]); err != nil {
			t.Fatal(err)
		}
		m := Timers{root, 3}.Probe(11)
		if err := unix.Capset(&header, &all[0]); err != nil {
			t.Fatal(err)
		}
		if (m == nil) != want || m != nil && !strings.Contains(m.What, "below SCHED_FIFO 11: operation not permitted") {
			t.Errorf("a limit of %s: %+v", limit, m)
		}
		if m := (Timers{root, 3}).Probe(11); Capable(unix.CAP_SYS_NICE) && m != nil {
			t.Errorf("a limit of %s, with CAP_SYS_NICE: %+v", limit, m)
		}
	}
}

// On PREEMPT_RT the kernel reports the requested priority of the timer thread until restore. Other
// kernels have no such thread.
func TestRaiseTimersOnThisHost(t *testing.T) {
	cpu := Thread{CPU: -1}.ChooseCPU().CPU
	pid := hostinfo.Files("/").KernelThread(fmt.Sprintf("ktimers/%d", cpu))
	priority := func() int {
		if pid == 0 {
			return 0
		}
		attr, err := unix.SchedGetAttr(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		return realtimePriority(attr)
	}
	before := priority()
	was, m := Timers{"/", cpu}.Raise(before+40, nil)
	raised := priority()
	Timers{"/", cpu}.Restore(was)
	t.Logf("ktimers/%d is thread %d: priority %d, then %d; missing: %v", cpu, pid, before, raised, m)
	if want := hostinfo.Files("/").PreemptRT() && m == nil; want != (raised == before+40) || priority() != before {
		t.Errorf("PREEMPT_RT %t, missing %v: priority %d, then %d, restored %d", hostinfo.Files("/").PreemptRT(), m, before, raised, priority())
	}
}

func TestRaiseTimersNamesTheRemedyWhereItFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		root   string
		what   string
		help   []string
		raised bool
	}{
		{"not PREEMPT_RT", t.TempDir(), "", nil, true},
		{"no thread for timers alone", realtimeHost(t, 2, map[int]string{30: "ksoftirqd/3"}), "expire in ksoftirqd/3", []string{"timer: nanosleep", "chrt -f -p 81 30"}, false},
		{"a container", realtimeHost(t, 2, nil), "does not see", []string{"on the host", "chrt -f -p 81"}, false},
		{"a program of that name", realtimeHost(t, 1, map[int]string{30: "ktimers/3"}), "does not see", []string{"chrt"}, false},
		{"the thread has ended", realtimeHost(t, 2, map[int]string{1<<22 + 1: "ktimers/3"}), "expire in ktimers/3 below SCHED_FIFO 81: no such process", []string{"chrt -f -p 81 4194305"}, false},
	} {
		was, m := Timers{c.root, 3}.Raise(81, nil)
		Timers{c.root, 3}.Restore(was)
		if raised := m == nil; raised != c.raised {
			t.Errorf("%s: %v", c.name, m)
		}
		if m == nil {
			continue
		}
		if m.Of != ResourceTimers || !strings.Contains(m.What, c.what) || slices.ContainsFunc(c.help, func(h string) bool { return !strings.Contains(m.Help, h) }) {
			t.Errorf("%s: %+v, want %q, %q", c.name, m, c.what, c.help)
		}
	}
}

func TestKernelWithoutPreemptRTHasNoThreadOfTimers(t *testing.T) {
	files := map[string]string{"proc/4/comm": "ktimers/3\n", "proc/4/stat": "4 (ktimers/3) S 2" + strings.Repeat(" 0", 37)}
	if id := (Timers{tree(t, files), 3}).Thread(); id != 0 {
		t.Errorf("not PREEMPT_RT: thread %d", id)
	}
	if id := (Timers{realtimeHost(t, 2, map[int]string{4: "ktimers/3"}), 3}).Thread(); id != 4 {
		t.Errorf("PREEMPT_RT: thread %d, want 4", id)
	}
}

func TestTimersPrecedeTheLoopUpToTheHighestPriority(t *testing.T) {
	for loop, want := range map[int]int{1: 2, 80: 81, 98: 99, 99: 99} {
		if got := TimerPriority(loop); got != want {
			t.Errorf("the timers of a loop at %d get %d, want %d", loop, got, want)
		}
	}
}

// A fresh page is a minor fault of the thread that touches it, a sleep a
// voluntary switch of it, and of no other.
func TestUsageCountsTheCallingThread(t *testing.T) {
	const pages, sleeps = 100, 1000
	touched, slept := make(chan Usage), make(chan Usage)
	reading, written, rested := make(chan bool), make(chan bool), make(chan bool)
	count := func(f func()) (u Usage) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var a Usage
		a.Read()
		f()
		u.Read()
		return Usage{u.Minor - a.Minor, u.Major - a.Major, u.Voluntary - a.Voluntary, u.Involuntary - a.Involuntary}
	}
	// One reads before the pages and after the sleeps, as does the other.
	go func() {
		touched <- count(func() {
			<-reading
			writeFresh(t, pages)
			close(written)
			<-rested
		})
	}()
	go func() {
		slept <- count(func() {
			close(reading)
			<-written
			for range sleeps {
				_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &unix.Timespec{Nsec: 1e5}, nil)
			}
			close(rested)
		})
	}()
	a, b := <-touched, <-slept
	if a.Minor < pages || b.Minor >= pages {
		t.Errorf("%d fresh pages: %d minor faults, %d of another thread", pages, a.Minor, b.Minor)
	}
	if b.Voluntary < sleeps/2 || a.Voluntary >= sleeps/2 { // a signal may cut some short
		t.Errorf("%d sleeps: %d voluntary switches, %d of another thread", sleeps, b.Voluntary, a.Voluntary)
	}
}

// The independent count is that of proc_pid_stat(5): fields 10 and 12.
func TestFaultsCountsThePagesOfTheProcess(t *testing.T) {
	const pages = 100
	stat := func() (minor, major int64) {
		text, err := os.ReadFile("/proc/self/stat")
		if err != nil {
			t.Fatal(err)
		}
		f := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
		if _, err := fmt.Sscan(f[8]+" "+f[10], &minor, &major); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return minor, major
	}
	for range 2 {
		lowMinor, lowMajor := stat()
		minor, major := Faults()
		highMinor, highMajor := stat()
		if !(lowMinor <= minor && minor <= highMinor && lowMajor <= major && major <= highMajor) {
			t.Errorf("%d minor, %d major faults; the kernel counts %d to %d, %d to %d",
				minor, major, lowMinor, highMinor, lowMajor, highMajor)
		}
		writeFresh(t, pages)
		readEvicted(t)
		if after, _ := Faults(); after < minor+pages {
			t.Errorf("%d fresh pages gave %d minor faults", pages, after-minor)
		}
	}
}

// readEvicted reads a page of a file that the kernel has dropped from memory: a major fault, except
// on a file system in memory.
func readEvicted(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "evicted"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, os.Getpagesize())); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	mem, err := unix.Mmap(int(f.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if mem[0] != 0 {
		t.Error("the file has changed")
	}
	_ = unix.Munmap(mem)
}

// writeFresh writes to fresh pages, a fault each.
func writeFresh(t *testing.T, pages int) {
	mem, err := unix.Mmap(-1, 0, pages*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Error(err)
		return
	}
	_ = unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	for i := 0; i < len(mem); i += os.Getpagesize() {
		mem[i] = 1
	}
	_ = unix.Munmap(mem)
}
