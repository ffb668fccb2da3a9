package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt/control"
	"lockstep/rt/host"
	"lockstep/sched"
)

// ps lists the runs on this host, including those of other tests.
func ps(t *testing.T) (list []control.ListedRun) {
	t.Helper()
	out, errors, code := lockstep(t, "ps", "-json")
	if err := json.Unmarshal([]byte(out), &list); code != 0 || errors != "" || err != nil {
		t.Fatalf("ps: code %d, %s, %v in %q", code, errors, err, out)
	}
	return list
}

// among returns the runs with a name.
func among(list []control.ListedRun, name string) (found []control.ListedRun) {
	return slices.DeleteFunc(slices.Clone(list), func(v control.ListedRun) bool { return v.Bench != name })
}

// freeCPU returns the number of a CPU that no host has and no other test reserves. Without the CPU
// a run on a pair is best effort.
func freeCPU(t *testing.T) int {
	t.Helper()
	return 600 + os.Getpid()%400
}

func TestThreeBenchesRunAtOnceAndEachReplaysBitForBit(t *testing.T) {
	dir, first := t.TempDir(), fmt.Sprintf("several-%d-", os.Getpid())
	var names, records []string
	var all []*session
	for i := range 3 {
		name := first + strconv.Itoa(i)
		names, records = append(names, name), append(records, filepath.Join(dir, name+".rec"))
		all = append(all, begin(t, nil, "run", patientBench(t, "bench: powershift-bench", "bench: "+name), "-record", records[i]))
	}
	for _, s := range all {
		s.running()
	}
	list := ps(t)
	cpus, targets := map[int]bool{}, map[int]bool{}
	for i, name := range names {
		found := among(list, name)
		if len(found) != 1 || found[0].Supervisor != all[i].cmd.Process.Pid || found[0].State != "running" || found[0].Ticks == 0 ||
			found[0].LateP99 == 0 || !slices.Equal(found[0].Buses, []string{"drive=pair"}) || time.Since(found[0].Since) > time.Hour {
			t.Fatalf("%s: %+v of %+v", name, found, list)
		}
		if v := found[0]; !v.Shared && cpus[v.CPU] || targets[v.Target] || v.Target != all[i].child("target") {
			t.Errorf("%+v: another one has its CPU or its target", v)
		}
		if !found[0].Shared {
			cpus[found[0].CPU] = true
		}
		targets[found[0].Target] = true
		if a := ctl(t, name, "fault", "name=own", "frame=Speeds", "drop", "for=2 frames"); len(a.Slots) != 1 {
			t.Errorf("%s: %+v", name, a)
		}
	}
	for _, name := range names {
		if a := ctl(t, name, "faults"); a.Bench != name || len(a.Faults) != 1 {
			t.Errorf("%s has %+v", name, a)
		}
	}
	for i, v := range among(ps(t), names[0]) {
		if before := among(list, names[0])[i]; v.Ticks <= before.Ticks {
			t.Errorf("%s stands at tick %d", names[0], v.Ticks)
		}
	}
	for i, name := range names {
		out, errors, code := lockstep(t, "stop", name)
		if code != 0 || !strings.HasPrefix(out, name+": ") || !has(out, "ctl") || strings.Count(out, "\n") != 1 {
			t.Errorf("stop: code %d, %q, %s", code, out, errors)
		}
		select { // the process has ended; its parent may not have noticed yet
		case <-all[i].over:
		case <-time.After(patience):
			t.Errorf("%s is still there", name)
		}
		if ticks, _, errors, code := replayed(t, records[i]); code != 0 || ticks == 0 {
			t.Errorf("replay of %s: code %d, %d ticks, %s", name, code, ticks, errors)
		}
	}
	if left := ps(t); len(among(left, names[0])) != 0 {
		t.Errorf("after the end: %+v", left)
	}
}

// More clients are connected than the door has places for.
func TestARunWithAFullDoorIsListedOnce(t *testing.T) {
	name := fmt.Sprintf("full-%d", os.Getpid())
	s := begin(t, nil, "run", patientBench(t, "bench: powershift-bench", "bench: "+name))
	s.running()
	for range 64 {
		c, err := net.Dial("unix", filepath.Join(host.ControlDir(), name+".sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	found := among(ps(t), name)
	if len(found) != 1 || found[0].Supervisor != s.cmd.Process.Pid || found[0].Target != s.child("target") || found[0].Ticks == 0 {
		t.Errorf("%+v", found)
	}
	if _, errors, code := lockstep(t, "stop", name); code != 0 {
		t.Errorf("stop: code %d, %s", code, errors)
	}
}

func TestTwoRunsOfOneNameAreDistinguishedByProcess(t *testing.T) {
	name := fmt.Sprintf("twice-%d", os.Getpid())
	file := patientBench(t, "bench: powershift-bench", "bench: "+name)
	one, two := begin(t, nil, "run", file), begin(t, nil, "run", file)
	one.running()
	two.running()
	first, second := strconv.Itoa(one.cmd.Process.Pid), strconv.Itoa(two.cmd.Process.Pid)
	for _, words := range [][]string{{"stop", name}, {"ctl", name, "status"}} {
		if _, errors, code := lockstep(t, words...); code != 2 || !has(errors, "lockstep: "+words[0]+": "+name, first, second) || strings.Count(errors, "\n") != 1 {
			t.Errorf("%q: code %d, %s", words, code, errors)
		}
	}
	if out, errors, code := lockstep(t, "stop", first); code != 0 || !strings.HasPrefix(out, name+": ") {
		t.Errorf("stop %s: code %d, %q, %s", first, code, out, errors)
	}
	if found := among(ps(t), name); len(found) != 1 || found[0].Supervisor != two.cmd.Process.Pid {
		t.Errorf("left are %+v, want process %s", found, second)
	}
	if out, errors, code := lockstep(t, "stop", name); code != 0 || !strings.HasPrefix(out, name+": ") {
		t.Errorf("stop %s: code %d, %q, %s", name, code, out, errors)
	}
	if code := one.end() + two.end(); code != 0 {
		t.Errorf("codes sum up to %d", code)
	}
}

// heldBench writes a bench with a CPU of its own; gone is its supervisor_gone.
func heldBench(t *testing.T, name, gone string) (file string, cpu int) {
	t.Helper()
	cpu = freeCPU(t)
	return patientBench(t, "bench: powershift-bench", "bench: "+name, "cpu: auto", "cpu: "+strconv.Itoa(cpu),
		"supervisor_gone: stop after 1 s", "supervisor_gone: "+gone), cpu
}

func TestAReservedCPUIsRefusedInALineThatNamesTheHolder(t *testing.T) {
	name := fmt.Sprintf("held-%d", os.Getpid())
	file, cpu := heldBench(t, name, "continue")
	s := begin(t, nil, "run", file)
	s.running()
	refused := func(wanted ...string) {
		t.Helper()
		_, errors, code := lockstep(t, "run", file, "-for", "100ms")
		wanted = append(wanted, "lockstep: run: ", fmt.Sprintf("CPU %d ", cpu), name)
		if code != 3 || strings.Count(errors, "\n") != 1 || !has(errors, wanted...) {
			t.Errorf("code %d, %q; want %q", code, errors, wanted)
		}
	}
	refused(fmt.Sprintf("(lockstep stop %d)", s.cmd.Process.Pid), "cpu: auto")
	report := filepath.Join(t.TempDir(), "r.json")
	out, errors, code := lockstep(t, "run", file, "-for", "100ms", "-besteffort", "-report", report)
	shared := func(why string) bool {
		return has(why, fmt.Sprintf("CPU %d ", cpu), name, strconv.Itoa(s.cmd.Process.Pid))
	}
	if code != 0 || !slices.ContainsFunc(readReport(t, report).BestEffortWhy, shared) {
		t.Errorf("best effort: code %d, %s\n%s", code, errors, out)
	}
	target := s.child("target")
	defer syscall.Kill(target, syscall.SIGKILL)
	s.cmd.Process.Kill()
	s.end()
	refused(fmt.Sprintf("(lockstep attach %d)", target), fmt.Sprintf("(lockstep stop %d)", target))
	if found := among(ps(t), name); len(found) != 1 || found[0].Supervisor != 0 || found[0].Target != target ||
		!has(found[0].Hint, fmt.Sprintf("lockstep attach %d", target)) || found[0].Ticks == 0 {
		t.Errorf("ps: %+v", found)
	}
	syscall.Kill(target, syscall.SIGKILL)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // init must adopt the process first
		_, errors, code = lockstep(t, "run", file, "-for", "100ms")
		if code == 0 || time.Now().After(end) {
			break
		}
	}
	if code != 0 {
		t.Errorf("after the kill of both: code %d, %s", code, errors)
	}
}

// unreserved returns the cpus that no loop has reserved.
func unreserved(cpus []int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool {
		return slices.ContainsFunc(sched.Reservations("/"), func(c sched.Reservation) bool { return c.What == fmt.Sprintf("cpu/%d", cpu) })
	})
}

// allowed returns the cpus on which any thread of a process may run.
func allowed(pid int, cpus []int) []int {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/[0-9]*", pid))
	return slices.DeleteFunc(slices.Clone(cpus), func(cpu int) bool {
		return !slices.ContainsFunc(threads, func(dir string) bool {
			tid, _ := strconv.Atoi(filepath.Base(dir))
			var set unix.CPUSet
			return unix.SchedGetaffinity(tid, &set) == nil && set.IsSet(cpu)
		})
	})
}

// The other threads return to the CPU of a loop when its run has ended.
func TestAllOtherThreadsOfARunStayOffTheLoopsCPUs(t *testing.T) {
	cpus := sched.LoopCPUs()
	if len(cpus) < 2 {
		t.Skip("it takes two CPUs: a larger machine")
	}
	file, _ := heldBench(t, fmt.Sprintf("room-%d", os.Getpid()), "stop after 1 s")
	s := begin(t, nil, "run", file)
	s.running()
	follows := func() { // the masks of the supervisor's threads follow all reservations, including other tests'
		t.Helper()
		var seen, want []int
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if want = unreserved(cpus); len(want) == 0 {
				want = cpus
			}
			seen = allowed(s.cmd.Process.Pid, cpus)
			if slices.Equal(seen, want) {
				return
			}
		}
		t.Fatalf("on CPUs %v, want %v", seen, want)
	}
	follows()
	fd, err := sched.Reserve(sched.Reservation{What: fmt.Sprintf("cpu/%d", cpus[len(cpus)-1]), Role: "supervisor", Process: os.Getpid(), Owner: "other"}.String())
	if err != nil {
		t.Fatal(err)
	}
	follows()
	syscall.Close(fd)
	follows()
	s.cmd.Process.Signal(syscall.SIGINT)
	if code := s.end(); code != 0 {
		t.Errorf("code %d", code)
	}
}

func TestASecondServiceOnOneCPUEndsWithOneLineAndIsNeverReady(t *testing.T) {
	file, cpu := heldBench(t, fmt.Sprintf("service-%d", os.Getpid()), "stop after 1 s")
	s := begin(t, nil, "run", file)
	s.running()
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	if _, errors, code := lockstep(t, "run", file); code != 3 || strings.Count(errors, "\n") != 1 || !has(errors, fmt.Sprintf("CPU %d ", cpu), strconv.Itoa(s.cmd.Process.Pid)) {
		t.Errorf("code %d, %q", code, errors)
	}
	manager.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := manager.Read(make([]byte, 1000)); err == nil {
		t.Errorf("the manager was told something, %d bytes", n)
	}
	if _, errors, code := lockstep(t, "stop", strconv.Itoa(s.cmd.Process.Pid)); code != 0 {
		t.Errorf("stop: code %d, %s", code, errors)
	}
}

// otherUser returns a folder with bench.yaml, and a function that runs the command there as another
// user, whose control sockets are below the folder run, and returns its output. It takes root.
func otherUser(t *testing.T, file string) (dir string, nobody func(args ...string) string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for from, to := range map[string]string{program: "lockstep", file: "bench.yaml"} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, func(args ...string) string {
		c := exec.Command(filepath.Join(dir, "lockstep"), args...)
		c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run")}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, _ := c.CombinedOutput()
		return string(out)
	}
}

func TestCommandsThatLookAtRunsNameWhatAKilledRunLeft(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	file, _ := heldBench(t, fmt.Sprintf("left-%d", os.Getpid()), "stop after 1 s")
	dir, nobody := otherUser(t, file)
	run := filepath.Join(dir, "run", "lockstep")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(run, "undo.json")
	text := fmt.Sprintf(`{"boot": %q, "entries": [{"kind": "scheduling", "file": "/proc/4194304/task/4194304", "thread": "ktimers/1",
		"start": 1, "before": "FIFO 1", "after": "FIFO 81", "owner": "car", "process": 4194304}]}`, host.BootID())
	for _, words := range [][]string{{"ps"}, {"stop", "nothing"}, {"doctor", "-measure=false"}, {"doctor", "-undo"}, {"run", "bench.yaml", "-bus", "nothing"}} {
		err := os.WriteFile(left, []byte(text), 0o644)
		for _, name := range []string{run, left} {
			err = errors.Join(err, os.Chown(name, 65534, 65534))
		}
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(strings.Fields(nobody(words...)), " ")
		if want := "lockstep: car, process 4194304, was killed and left thread ktimers/1 (4194304), priority at an unknown value: not restored to FIFO 1: the thread no longer exists"; !strings.Contains(got, want) {
			t.Errorf("%q: %q; want %q", words, got, want)
		}
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%q: the journal still names a thread that has ended", words)
		}
	}
}

func TestAnotherUserSeesTheReservationsOfARunAndCannotStopIt(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	name := fmt.Sprintf("roots-%d", os.Getpid())
	file, cpu := heldBench(t, name, "stop after 1 s")
	s := begin(t, nil, "run", file)
	s.running()
	_, nobody := otherUser(t, file)
	var list []control.ListedRun
	text := nobody("ps", "-json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if v := among(list, name); len(v) != 1 || v[0].CPU != cpu || v[0].Supervisor != s.cmd.Process.Pid || v[0].Target != s.child("target") || v[0].State == "running" || v[0].Ticks != 0 {
		t.Errorf("ps: %+v", v)
	}
	for _, c := range []struct{ words, want []string }{
		{[]string{"stop", name}, []string{"lockstep: stop: " + name, "sudo"}},
		{[]string{"run", "bench.yaml", "-for", "100ms"}, []string{"lockstep: run: ", fmt.Sprintf("CPU %d ", cpu), name, strconv.Itoa(s.cmd.Process.Pid)}},
	} {
		if got := nobody(c.words...); !has(got, c.want...) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q: %q, want %q", c.words, got, c.want)
		}
	}
	if _, errors, code := lockstep(t, "stop", name); code != 0 {
		t.Errorf("stop: code %d, %s", code, errors)
	}
}

func TestAStoppedTargetWithoutASupervisorReleasesItsReservations(t *testing.T) {
	name := fmt.Sprintf("alone-%d", os.Getpid())
	file, cpu := heldBench(t, name, "continue")
	orphan := func() int {
		s := begin(t, nil, "run", file)
		s.running()
		target := s.child("target")
		t.Cleanup(func() { syscall.Kill(target, syscall.SIGKILL) })
		s.cmd.Process.Kill()
		s.end()
		return target
	}
	orphan()
	out, errors, code := lockstep(t, "stop", name)
	if code != 0 || !strings.HasPrefix(out, name+": ") || strings.Count(out, "\n") != 1 || has(out, "ctl") {
		t.Errorf("code %d, %q, %s", code, out, errors)
	}
	target := orphan() // the CPU is free again
	report := filepath.Join(t.TempDir(), "r.json")
	again := begin(t, nil, "attach", name, "-report", report)
	again.running()
	if v := among(ps(t), name); len(v) != 1 || v[0].Supervisor != again.cmd.Process.Pid || v[0].Target != target || v[0].Hint != "" {
		t.Errorf("ps: %+v", v)
	}
	if _, errors, code := lockstep(t, "run", file, "-for", "100ms"); code != 3 ||
		!has(errors, fmt.Sprintf("CPU %d ", cpu), name, fmt.Sprintf("(lockstep stop %d)", again.cmd.Process.Pid)) {
		t.Errorf("code %d, %s", code, errors)
	}
	if out, errors, code := lockstep(t, "stop", "-now", name); code != 0 || !strings.HasPrefix(out, name+": ") || !has(out, "-now") || strings.Count(out, "\n") != 1 {
		t.Errorf("stop -now: code %d, %q, %s", code, out, errors)
	}
	if code, r := again.end(), readReport(t, report); code != 1 || r.Clean || r.SafeFrames == 0 {
		t.Errorf("code %d, clean %t, %d safe frames after the kill:\n%s", code, r.Clean, r.SafeFrames, &again.out)
	}
}

func TestWrongStopCommandsEndWithOneLine(t *testing.T) {
	name := fmt.Sprintf("stopped-%d", os.Getpid())
	rec := filepath.Join(t.TempDir(), "one.rec")
	file := patientBench(t, "bench: powershift-bench", "bench: "+name)
	s := begin(t, nil, "run", file, "-record", rec)
	s.running()
	for _, c := range []struct {
		line string
		code int
		want string // words of the line
	}{
		{"stop " + name[:len(name)-1] + "x", 3, "stop: " + name + "?)"},
		{"stop", 2, "stop: -all"},
		{"stop -all " + name, 2, "stop: -all"},
		{"stop nobody-runs-me", 3, `stop: "nobody-runs-me"`},
		{"ps " + name, 2, "ps: " + name + " [-json]"},
		{"run " + file + " -record " + rec, 3, rec + ":"},
		{"run " + file + " -report " + rec, 2, rec + " is a record;"},
	} {
		out, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != c.code || out != "" || strings.Count(errors, "\n") != 1 || !has(errors, strings.Fields(c.want)...) {
			t.Errorf("%s: code %d, %q, %q; want %d, %s", c.line, code, out, errors, c.code, c.want)
		}
	}
	lockstep(t, "stop", name)
	if code := s.end(); code != 0 {
		t.Errorf("code %d", code)
	}
	if _, _, errors, code := replayed(t, rec); code != 0 {
		t.Errorf("the record of the run that was there first: code %d, %s", code, errors)
	}
}
