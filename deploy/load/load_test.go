package load

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched/hostinfo"
)

// TestMain runs the test binary as a load process if its arguments say so.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "latency" && os.Args[2] == ChildWord {
		fmt.Fprintln(os.Stderr, Run(os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// processes returns the command lines of the running direct children of this process by pid.
func processes(t *testing.T) map[int]string {
	t.Helper()
	list := map[int]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		stat, _ := os.ReadFile(file)
		_, after, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(after) // state, parent, ...
		if len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(os.Getpid()) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			list[pid] = strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		}
	}
	return list
}

// cpuTime returns the processor time of a process, units of 10 ms.
func cpuTime(t *testing.T, pid int) int64 {
	t.Helper()
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	f := strings.Fields(after) // state is field 3 of proc_pid_stat(5); utime 14, stime 15
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return user + system
}

// anyCPU returns a CPU that this process may use.
func anyCPU(t *testing.T) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			return cpu
		}
	}
	t.Fatal("no CPU")
	return 0
}

func TestLoadsWorkOnTheirCPUsUntilStopped(t *testing.T) {
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		t.Fatal(err)
	}
	cpu := anyCPU(t)
	stop, err := Start([]int{cpu}, Kinds()...)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for pid, line := range processes(t) {
		kind := line[strings.LastIndex(line, " ")+1:]
		seen[kind] = true
		// Each of the four processes gets a share of the CPU within the deadline.
		for begin, deadline := cpuTime(t, pid), time.Now().Add(60*time.Second); cpuTime(t, pid) < begin+2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s does nothing", line)
			}
		}
		host := hostinfo.Files("/")
		tasks := fmt.Sprintf("proc/%d/task", pid)
		for _, task := range host.ReadDir(tasks) {
			if on := host.Fields(tasks + "/" + task + "/status")["Cpus_allowed_list"]; on != "" && on != strconv.Itoa(cpu) {
				t.Errorf("a thread of %s may run on %s, want %d", line, on, cpu)
			}
		}
	}
	for _, kind := range Kinds() {
		if !seen[kind] {
			t.Errorf("no process %s among %v", kind, seen)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if left := processes(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
	var now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &now); err != nil || now != mine {
		t.Errorf("the caller's CPUs have changed, %v", err)
	}
}

func TestStopNamesALoadThatHasEnded(t *testing.T) {
	stop, err := Start(nil, CPU, Garbage)
	if err != nil {
		t.Fatal(err)
	}
	for pid, line := range processes(t) {
		if strings.HasSuffix(line, " "+Garbage) {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := stop(); !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), Garbage) {
		t.Errorf("stop says %v", err)
	}
}

func TestUnknownLoadsAndCPUsAreRefused(t *testing.T) {
	if _, err := Start(nil, "disk"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"disk"`) {
		t.Errorf("load disk: %v", err)
	}
	if _, err := Start([]int{8000}, CPU); err == nil || !strings.Contains(err.Error(), "8000") {
		t.Errorf("load on CPU 8000: %v", err)
	}
	if left := processes(t); len(left) != 0 {
		t.Errorf("still running: %v", left)
	}
}
