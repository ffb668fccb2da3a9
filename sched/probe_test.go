package sched

import (
	"fmt"
	"lockstep/sched/hostinfo"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// host writes the files that probe reads of a host below a new root.
func host(t *testing.T, caps, cpus, rtprio, memlock, realtime string) string {
	t.Helper()
	root := t.TempDir()
	pad := func(s string, n int) string { return s + strings.Repeat(" ", n-len(s)) }
	files := map[string]string{
		"proc/thread-self/status": "Name:\tlockstep\nCapEff:\t" + caps + "\nCpus_allowed_list:\t" + cpus + "\n",
		"proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units     \n" +
			pad("Max locked memory", 26) + pad(memlock, 21) + pad(memlock, 21) + "bytes     \n" +
			pad("Max realtime priority", 26) + pad(rtprio, 21) + pad("99", 21) + "\n",
	}
	switch {
	case strings.HasPrefix(realtime, "Linux"):
		files["proc/version"] = realtime + "\n"
	case realtime != "":
		files["sys/kernel/realtime"] = realtime + "\n"
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestProbeNamesWhatEachHostLacks(t *testing.T) {
	const all, none, nice, lock = "000001ffffffffff", "0000000000000000", "0000000000800000", "0000000000004000"
	at := Thread{CPU: 3, Priority: 80}
	for _, c := range []struct {
		name                                  string
		caps, cpus, rtprio, memlock, realtime string
		want                                  []Resource // in this order
		limit                                 string     // that a Missing.What names
	}{
		{"root on a real-time kernel", all, "0-3", "0", "8388608", "1", nil, ""},
		{"limits instead of capabilities", none, "0-3", "80", "unlimited", "1", nil, ""},
		{"two capabilities", "0000000000804000", "0-3", "0", "65536", "1", nil, ""},
		{"a limit that is enough", none, "0-3", "99", "67108864", "1", nil, ""},
		{"a limit a page below", none, "0-3", "99", "67104768", "1", []Resource{ResourceMemory}, "65532 kB"},
		{"stock desktop", none, "0-7", "0", "8388608", "", []Resource{ResourceFIFO, ResourceMemory, ResourcePreemptRT}, "8192 kB"},
		{"priority limit below", none, "0-3", "79", "unlimited", "1", []Resource{ResourceFIFO}, "SCHED_FIFO 80: the limit is 79"},
		{"only CAP_SYS_NICE", nice, "0-3", "0", "8388608", "1", []Resource{ResourceMemory}, ""},
		{"only CAP_IPC_LOCK", lock, "0-3", "0", "8388608", "1", []Resource{ResourceFIFO}, ""},
		{"the CPU is isolated", all, "0-2", "0", "unlimited", "1", nil, ""}, // the kernel grants it or not
		{"one CPU", all, "3", "0", "unlimited", "1", []Resource{ResourceSecondCPU}, "CPU 3"},
		{"a mainline real-time kernel", all, "0-3", "0", "unlimited", "Linux version 6.12.9 (gcc) #1 SMP PREEMPT_RT Debian 6.12.9-1", nil, ""},
		{"a preemptible kernel", all, "0-3", "0", "unlimited", "Linux version 6.12.9 (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.12.9-1", []Resource{ResourcePreemptRT}, ""},
		{"real-time patch switched off", all, "0-3,5", "0", "unlimited", "0", []Resource{ResourcePreemptRT}, ""},
	} {
		got, fifo := probe(host(t, c.caps, c.cpus, c.rtprio, c.memlock, c.realtime), at)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v is missing, want %q", c.name, got, c.want)
			continue
		}
		said := ""
		for i, m := range got {
			if m.Of != c.want[i] || m.What == "" || m.Help == "" {
				t.Errorf("%s: missing %+v, want %q", c.name, m, c.want[i])
			}
			said += m.What + "\n"
		}
		if !strings.Contains(said, c.limit) {
			t.Errorf("%s: %q does not name %q", c.name, said, c.limit)
		}
		if fifo == lacks(got, ResourceFIFO) {
			t.Errorf("%s: fifo %t, missing: %v", c.name, fifo, got)
		}
	}
}

func TestProbeOfAHostWithoutFilesMissesEverything(t *testing.T) {
	got, fifo := probe(t.TempDir(), Thread{CPU: 0, Priority: 1})
	for _, of := range []Resource{ResourceSecondCPU, ResourceFIFO, ResourceMemory, ResourcePreemptRT} {
		if !lacks(got, of) {
			t.Errorf("nothing is said about %s: %v", of, got)
		}
	}
	if fifo {
		t.Error("a host without files grants SCHED_FIFO")
	}
}

// ofThreads says of each thread of this process what Probe must not change.
func ofThreads(t *testing.T) map[int]string {
	of := map[int]string{}
	for tid, cpus := range cpusOf(t, os.Getpid()) {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			continue // it has ended
		}
		of[tid] = fmt.Sprintf("CPUs %x, policy %d, priority %d, locked %s", cpus[0], attr.Policy, attr.Priority, hostinfo.Files("/").Fields("proc/self/status")["VmLck"])
	}
	return of
}

// Probe and Enter agree about this host, and Probe changes nothing.
func TestProbeAgreesWithEnter(t *testing.T) {
	for _, at := range []Thread{
		{CPU: -1, Priority: 7},
		{CPU: 1000, Priority: 7},
		{CPU: -1, Priority: 7, Deadline: true, RuntimeNs: 1e6, PeriodNs: 5e6},
		{CPU: -1, Priority: 7, Deadline: true, RuntimeNs: 6e6, PeriodNs: 5e6},
	} {
		before := ofThreads(t)
		got := Probe(at)
		after := ofThreads(t)
		for tid, now := range after {
			if was, ok := before[tid]; ok && now != was {
				t.Errorf("Probe changed thread %d from %s to %s", tid, was, now)
			}
		}
		e := inChild(t, at, false)
		for _, of := range []Resource{ResourceFIFO, ResourceDeadline, ResourceMemory, ResourceCPU, ResourceSecondCPU} {
			if of == ResourceMemory && raceDetector { // Enter refuses to lock the race detector's
				continue
			}
			if lacks(got, of) != lacks(e.Missing, of) {
				t.Errorf("%+v: about %q Probe says %v, Enter %v", at, of, got, e.Missing)
			}
		}
	}
}

func TestHelpForACPUWorksOnThisHost(t *testing.T) {
	for _, c := range []struct {
		m         Missing
		want, not string
	}{
		{missingAlone(0, []int{0}), "this host has no second CPU", "taskset"},
		{missingAlone(1, []int{0, 1}), "`taskset -c 0-1`", ""},
		{missingAlone(1, nil), "AllowedCPUs=", "taskset"},
		{missingCPU(3, "x", []int{0, 1, 2, 3, 4, 5, 6, 7}), "AllowedCPUs=", "taskset"}, // its mask is no limit
		{missingCPU(3, "x", []int{0, 1}), "choose a CPU that this host has: 0-1", "AllowedCPUs="},
		{missingCPU(3, "x", nil), "AllowedCPUs=", "this host has"},
	} {
		if !strings.Contains(c.m.Help, c.want) || c.not != "" && strings.Contains(c.m.Help, c.not) {
			t.Errorf("%+v: want %q and not %q", c.m, c.want, c.not)
		}
	}
}

func TestThrottlingIsReportedWithItsShare(t *testing.T) {
	for runtime, want := range map[string]string{
		"950000":  ", and real-time throttling leaves them 95 % of it together (kernel.sched_rt_runtime_us)",
		"0":       ", and real-time throttling leaves them 0 % of it together (kernel.sched_rt_runtime_us)",
		"1000000": "", "-1": "", "NaN": "", "x": "",
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "proc/sys/kernel"), 0o777); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"sched_rt_runtime_us": runtime, "sched_rt_period_us": "1000000"} {
			if err := os.WriteFile(filepath.Join(root, "proc/sys/kernel", name), []byte(text+"\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := throttling(root); got != want {
			t.Errorf("%s: %q, want %q", runtime, got, want)
		}
	}
	if got := throttling(t.TempDir()); got != "" {
		t.Errorf("without /proc: %q", got)
	}
}

// Without rights the limits and the kernel both refuse the priority: it is reported once.
func TestProbeWithoutRightsNamesEachResourceOnce(t *testing.T) {
	var got []Missing
	childOutput(t, "probe", true, &got)
	count := map[Resource]int{}
	for _, m := range got {
		count[m.Of]++
	}
	for of, n := range count {
		if n != 1 {
			t.Errorf("%s is missing %d times: %v", of, n, got)
		}
	}
	if count[ResourceFIFO] != 1 || count[ResourceMemory] != 1 {
		t.Errorf("missing %v, want the priority and the memory", got)
	}
	device, err := os.Stat("/dev/cpu_dma_latency")
	if refused := err == nil && device.Mode().Perm()&0o006 == 0; refused && count[ResourceLatency] != 1 {
		t.Errorf("missing %v, want the sleep states", got)
	}
}

func TestProbeRestoresThePolicyThatTheProcessWasStartedWith(t *testing.T) {
	var got []uint32
	childOutput(t, "batch", false, &got)
	for _, policy := range got {
		if policy != unix.SCHED_BATCH {
			t.Errorf("a thread has policy %d, want %d as before", policy, unix.SCHED_BATCH)
		}
	}
	if len(got) == 0 {
		t.Error("no thread was seen")
	}
}

// The independent answer is that of capget(2).
func TestCapableAgreesWithTheKernel(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		t.Fatal(err)
	}
	for bit := range 64 {
		if want := data[bit/32].Effective>>(bit%32)&1 == 1; Capable(bit) != want {
			t.Errorf("capability %d: %t, want %t", bit, !want, want)
		}
	}
}
