package sched

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// host writes the files that probe reads of a host below a new root.
func host(t *testing.T, caps, cpus, rtprio, memlock, realtime string) string {
	t.Helper()
	root := t.TempDir()
	pad := func(s string, n int) string { return s + strings.Repeat(" ", n-len(s)) }
	files := map[string]string{
		"proc/self/status": "Name:\tlockstep\nVmSize:\t 1268240 kB\nCapEff:\t" + caps + "\nCpus_allowed_list:\t" + cpus + "\n",
		"proc/self/limits": "Limit                     Soft Limit           Hard Limit           Units     \n" +
			pad("Max locked memory", 26) + pad(memlock, 21) + pad(memlock, 21) + "bytes     \n" +
			pad("Max realtime priority", 26) + pad(rtprio, 21) + pad("99", 21) + "\n",
	}
	if realtime != "" {
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

func TestProbeSaysWhatEachHostLacks(t *testing.T) {
	const all, none, nice, lock = "000001ffffffffff", "0000000000000000", "0000000000800000", "0000000000004000"
	at := Thread{CPU: 3, Priority: 80}
	for _, c := range []struct {
		name                                  string
		caps, cpus, rtprio, memlock, realtime string
		want                                  []string // beginnings of Missing.What, in this order
	}{
		{"root on a real-time kernel", all, "0-3", "0", "8388608", "1", nil},
		{"limits instead of capabilities", none, "0-3", "80", "unlimited", "1", nil},
		{"two capabilities", "0000000000804000", "0-3", "0", "65536", "1", nil},
		{"a limit that all memory fits", none, "0-3", "99", "1298677760", "1", nil},
		{"stock desktop", none, "0-7", "0", "8388608", "", []string{"no real-time priority SCHED_FIFO 80", "memory cannot be locked: the limit is 8192 kB", "the kernel is not PREEMPT_RT"}},
		{"priority limit below", none, "0-3", "79", "unlimited", "1", []string{"no real-time priority SCHED_FIFO 80: the limit is 79"}},
		{"only CAP_SYS_NICE", nice, "0-3", "0", "8388608", "1", []string{"memory"}},
		{"only CAP_IPC_LOCK", lock, "0-3", "0", "8388608", "1", []string{"no real-time priority"}},
		{"container without the CPU", all, "0-2", "0", "unlimited", "1", []string{`the loop cannot have CPU 3: the process may use "0-2"`}},
		{"one CPU", all, "3", "0", "unlimited", "1", []string{"CPU 3 is the only one"}},
		{"real-time patch switched off", all, "0-3,5", "0", "unlimited", "0", []string{"the kernel is not PREEMPT_RT"}},
	} {
		got, fifo := probe(host(t, c.caps, c.cpus, c.rtprio, c.memlock, c.realtime), at)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v is missing, want %q", c.name, got, c.want)
			continue
		}
		for i, m := range got {
			if !strings.HasPrefix(m.What, c.want[i]) || m.Help == "" {
				t.Errorf("%s: missing %q, help %q; want %q", c.name, m.What, m.Help, c.want[i])
			}
		}
		if fifo == says(got, "SCHED_FIFO") {
			t.Errorf("%s: fifo %t, missing: %v", c.name, fifo, got)
		}
	}
}

func TestProbeOfAHostWithoutFilesMissesEverything(t *testing.T) {
	got, fifo := probe(t.TempDir(), Thread{CPU: 0, Priority: 1})
	for _, what := range []string{"CPU 0", "SCHED_FIFO 1", "memory", "PREEMPT_RT"} {
		if !says(got, what) {
			t.Errorf("nothing is said about %s: %v", what, got)
		}
	}
	if fifo {
		t.Error("a host without files grants SCHED_FIFO")
	}
}

// Probe and Enter agree about this host, and Probe changes nothing.
func TestProbeAnswersAsEnterDoes(t *testing.T) {
	before := fields("/proc/self/status")
	got := Probe(Thread{CPU: -1, Priority: 7})
	after := fields("/proc/self/status")
	if before["VmLck"] != after["VmLck"] || before["Cpus_allowed_list"] != after["Cpus_allowed_list"] {
		t.Errorf("Probe changed VmLck from %s to %s, CPUs from %s to %s", before["VmLck"], after["VmLck"], before["Cpus_allowed_list"], after["Cpus_allowed_list"])
	}
	if raceDetector {
		t.Skip("Enter refuses to lock the race detector's memory")
	}
	e := inChild(t, false)
	for _, what := range []string{"SCHED_FIFO", "memory", "cannot have CPU", "only one"} {
		if says(got, what) != says(e.Missing, what) {
			t.Errorf("about %q Probe says %v, Enter %v", what, got, e.Missing)
		}
	}
}

func TestHelpForACPUCanBeFollowedOnThisHost(t *testing.T) {
	for _, c := range []struct{ cpu, cpus, online, want, not string }{
		{"alone", "0", "0", "this host has no second CPU", "taskset"},
		{"alone", "1", "0-1", "`taskset -c 0-1`", ""},
		{"alone", "1", "", "AllowedCPUs=", "taskset"},
		{"3", "0-1", "0-7", "`taskset -c 0-7`", ""},
		{"3", "0-1", "0-1", "choose a CPU that this host has: 0-1", "taskset"},
		{"3", "0", "0", "choose a CPU that this host has: 0", "taskset"},
	} {
		root := host(t, "000001ffffffffff", c.cpus, "0", "unlimited", "1")
		if c.online != "" {
			dir := filepath.Join(root, "sys/devices/system/cpu")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "online"), []byte(c.online+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		at := Thread{CPU: -1, Priority: 1}
		if c.cpu == "3" {
			at.CPU = 3
		}
		got, _ := probe(root, at)
		if len(got) != 1 || !strings.Contains(got[0].Help, c.want) || c.not != "" && strings.Contains(got[0].Help, c.not) {
			t.Errorf("CPU %s of %s allowed, %q online: %+v; want %q and not %q", c.cpu, c.cpus, c.online, got, c.want, c.not)
		}
	}
}
