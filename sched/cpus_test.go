package sched

import (
	"bufio"
	"errors"
	"fmt"
	"lockstep/sched/hostinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// tree writes files below a new root.
func tree(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
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

// highest returns the highest CPU in set.
func highest(set *unix.CPUSet) int {
	return candidates("/", set, func(int) error { return errors.New("only these") })[0]
}

func TestChoosePrefersAnIsolatedCPU(t *testing.T) {
	for _, c := range []struct {
		name, isolated, online, allowed, refused string
		want                                     []int
	}{
		{"none isolated", "", "0-3", "0-3", "", []int{3, 2, 1, 0}},
		{"none isolated, bound by taskset", "", "0-3", "0-1", "", []int{1, 0}},
		{"one isolated", "2", "0-3", "0-1,3", "", []int{2, 3, 1, 0}},
		{"several isolated", "1-2", "0-3", "0,3", "", []int{2, 1, 3, 0}},
		{"isolated, and allowed besides", "1-2", "0-3", "0-3", "", []int{2, 1, 3, 0}},
		{"the highest isolated is offline", "1,3", "0-2", "0,2", "", []int{1, 2, 0}},
		{"the highest isolated is refused", "1-2", "0-3", "0,3", "2", []int{1, 3, 0}},
		{"all isolated are refused", "1-2", "0-3", "0,3", "1-2", []int{3, 0}},
	} {
		root := tree(t, map[string]string{
			"sys/devices/system/cpu/isolated": c.isolated + "\n",
			"sys/devices/system/cpu/online":   c.online + "\n",
		})
		allowed, refused := cpuSet(t, c.allowed), cpuSet(t, c.refused)
		got := candidates(root, &allowed, func(cpu int) error {
			if refused.IsSet(cpu) {
				return errors.New("refused")
			}
			return nil
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: CPUs %d, want %d", c.name, got, c.want)
		}
	}
	allowed := cpuSet(t, "0-1")
	if got := candidates(t.TempDir(), &allowed, moveTo); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("a host without lists of CPUs: %d, want those allowed", got)
	}
}

// cpuSet is a list of CPUs as the kernel writes it, "0-2,5".
func cpuSet(t *testing.T, list string) (set unix.CPUSet) {
	t.Helper()
	cpus, err := hostinfo.ParseCPUs(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	return set
}

func TestChooseKeepsTheGivenCPU(t *testing.T) {
	for _, cpu := range []int{0, 700} {
		if got := (Thread{CPU: cpu}).ChooseCPU().CPU; got != cpu {
			t.Errorf("Choose makes CPU %d %d", cpu, got)
		}
	}
	only := onThread(func() [2]int {
		var set unix.CPUSet
		_ = unix.SchedGetaffinity(0, &set)
		if err := moveTo(highest(&set)); err != nil {
			t.Error(err)
		}
		return [2]int{Thread{CPU: -1}.ChooseCPU().CPU, LoopCPUs()[0]}
	})
	if only[0] != only[1] {
		t.Errorf("Choose gives CPU %d to a thread with CPU %d", only[0], only[1])
	}
	first := Thread{CPU: -1}.ChooseCPU()
	if again := first.ChooseCPU(); first.CPU < 0 || again != first {
		t.Errorf("Choose gives CPU %d, and chosen again %d", first.CPU, again.CPU)
	}
}

// threads starts a process whose threads, other than the runtime's, number three,
// and returns its id.
func threads(t *testing.T) (pid int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"=threads")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // it ends
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("child: %q, %v", line, err)
	}
	return cmd.Process.Pid
}

// cpusOf returns the CPUs of each thread of a process, by its id.
func cpusOf(t *testing.T, pid int) map[int]unix.CPUSet {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	of := map[int]unix.CPUSet{}
	for _, task := range tasks {
		list := hostinfo.Files("/").Fields(fmt.Sprintf("proc/%d/task/%s/status", pid, task.Name()))["Cpus_allowed_list"]
		if tid, err := strconv.Atoi(task.Name()); err == nil && list != "" {
			of[tid] = cpuSet(t, list)
		}
	}
	return of
}

func TestConfineKeepsAllThreadsButOneOffTheCPU(t *testing.T) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	cpu := Thread{CPU: -1}.ChooseCPU().CPU
	if allowed.Clear(cpu); allowed.Count() == 0 {
		t.Skip("a second CPU is missing: allow the test two")
	}
	pid := threads(t)
	before := cpusOf(t, pid)
	if len(before) < 4 {
		t.Fatalf("the child has %d threads, want 4 or more", len(before))
	}
	var only unix.CPUSet
	only.Set(cpu)
	except := 0
	for tid := range before {
		if tid == pid { // as the thread of a loop: only there
			continue
		}
		if except == 0 {
			except = tid
		}
		if err := unix.SchedSetaffinity(tid, &only); err != nil {
			t.Fatal(err)
		}
	}
	if err := Confine(pid, cpu, except); err != nil {
		t.Fatal(err)
	}
	for tid, got := range cpusOf(t, pid) {
		want := allowed
		if tid == except {
			want = only
		}
		if got != want {
			t.Errorf("thread %d of %d, all but %d off CPU %d, may run on %v, want %v", tid, pid, except, cpu, got[0], want[0])
		}
	}
	if err := Confine(pid, cpu, except); err != nil {
		t.Errorf("a second time: %v", err)
	}
}

func TestConfineReportsWhyItFails(t *testing.T) {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	one.Set(highest(&allowed))
	pid := threads(t)
	for tid := range cpusOf(t, pid) {
		if err := unix.SchedSetaffinity(tid, &one); err != nil {
			t.Fatal(err)
		}
	}
	err := onThread(func() error { // a caller that has one CPU
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			return err
		}
		return Confine(pid, highest(&one), 0)
	})
	if err == nil || !strings.Contains(err.Error(), "no other CPU") {
		t.Errorf("Confine of a caller with one CPU: %v", err)
	}
	if err := Confine(1<<22+1, 0, 0); err == nil { // above the largest process id
		t.Error("Confine of no process succeeds")
	}
}

// A supervisor that was started under chrt, or a thread of it.
func TestOrdinaryTakesEveryThreadOutOfTheRealTimeClasses(t *testing.T) {
	ready, leave, ended := make(chan error), make(chan bool), make(chan uint32)
	for _, policy := range []uint32{unix.SCHED_FIFO, unix.SCHED_RR} {
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready <- unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: policy, Priority: 1}, 0)
			<-leave
			attr, err := unix.SchedGetAttr(0, 0)
			if err != nil {
				t.Error(err)
			}
			ended <- attr.Policy
		}()
	}
	for range 2 {
		if err := <-ready; err != nil {
			t.Logf("this host grants no real-time policy: %v", err) // then there is nothing to take
		}
	}
	if err := UseOrdinaryPolicy(); err != nil {
		t.Error(err)
	}
	close(leave)
	for range 2 {
		if got := <-ended; got != unix.SCHED_NORMAL {
			t.Errorf("a thread has policy %d, want %d", got, unix.SCHED_NORMAL)
		}
	}
}

// A CPU that has gone offline since: the kernel grants the others.
func TestAllowGrantsTheExistingCPUsOfASet(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	set.Set(1000)
	if err := Allow(os.Getpid(), set, 0); err != nil {
		t.Error(err)
	}
}

// The child is another process: its threads move, those of the test stay.
func TestAllowMovesTheThreadsOfTheNamedProcess(t *testing.T) {
	var allowed, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	one.Set(highest(&allowed))
	pid, own := threads(t), cpusOf(t, os.Getpid())
	for _, set := range []unix.CPUSet{one, allowed} {
		if err := Allow(pid, set, pid); err != nil {
			t.Fatal(err)
		}
		for tid, got := range cpusOf(t, pid) {
			want := set
			if tid == pid { // the exception
				want = allowed
			}
			if got != want {
				t.Errorf("thread %d of %d may run on %v, want %v", tid, pid, got[0], want[0])
			}
		}
	}
	for tid, got := range cpusOf(t, os.Getpid()) {
		if was, ok := own[tid]; ok && got != was {
			t.Errorf("thread %d of this process was moved from %v to %v", tid, was[0], got[0])
		}
	}
	if err := Allow(1<<22+1, allowed, 0); err == nil { // above the largest process id
		t.Error("Allow of no process succeeds")
	}
	if err := Allow(pid, cpuSet(t, "1000"), 0); !errors.Is(err, unix.EINVAL) {
		t.Errorf("CPU 1000 alone: %v, want: %v", err, unix.EINVAL)
	}
}

// The child's threads are there before and after: the passes are those over its first thread.
func TestThreadsAreChangedUntilTwoPassesInARowChangeNothing(t *testing.T) {
	pid := threads(t)
	for _, c := range []struct {
		changing []int // passes in which the first thread reports a change
		passes   int
	}{{nil, 2}, {[]int{1}, 3}, {[]int{1, 2}, 4}, {[]int{1, 3}, 5}, {[]int{2, 4}, 6}} {
		n := 0
		err := changeThreads(pid, 0, func(tid int) (bool, error) {
			if tid != pid {
				return false, unix.ESRCH // a thread that has ended
			}
			n++
			return slices.Contains(c.changing, n), nil
		})
		if err != nil || n != c.passes {
			t.Errorf("changes in the passes %v: %d passes, %v; want %d", c.changing, n, err, c.passes)
		}
	}
	n := 0
	err := changeThreads(pid, 0, func(tid int) (bool, error) {
		if tid == pid {
			n++
		}
		return tid == pid, nil
	})
	if want := fmt.Sprintf("after %d passes there are still new threads", maxPasses); n != maxPasses || err == nil || err.Error() != want {
		t.Errorf("a change in every pass: %d passes, %v; want %s", n, err, want)
	}
	err = changeThreads(pid, pid, func(tid int) (bool, error) {
		if tid == pid {
			t.Error("the exception is changed")
		}
		return false, unix.EPERM
	})
	if !errors.Is(err, unix.EPERM) || !strings.HasPrefix(err.Error(), "thread ") {
		t.Errorf("a refused change: %v", err)
	}
}

func TestAllowedListsTheCPUsOfTheThread(t *testing.T) {
	list := onThread(func() []int {
		var set unix.CPUSet
		_ = unix.SchedGetaffinity(0, &set)
		if err := moveTo(highest(&set)); err != nil {
			t.Error(err)
		}
		return append(Allowed(), -1, highest(&set))
	})
	if len(list) != 3 || list[0] != list[2] {
		t.Errorf("a thread on CPU %d alone has the CPUs %v", list[len(list)-1], list[:len(list)-2])
	}
	all := hostinfo.Files("/").Fields("proc/thread-self/status")["Cpus_allowed_list"]
	if want, err := hostinfo.ParseCPUs(all); err != nil || !slices.Equal(Allowed(), want) {
		t.Errorf("CPUs %v, want those of /proc: %s, %v", Allowed(), all, err)
	}
}
