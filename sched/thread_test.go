package sched

import (
	"encoding/json"
	"fmt"
	"io"
	"lockstep/sched/hostinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// entered describes the thread of a child process after Enter, as the kernel reports it.
type entered struct {
	At       Thread // request, with the chosen CPU
	Missing  []Missing
	CPU      int    // CPU of the loop's thread
	Own      string // list of CPUs allowed to this thread
	Others   []string
	Policy   uint32
	Priority uint32
	Flags    uint64
	Deadline []uint64 // runtime, deadline, period, ns
	Blocked  string   // signals, hexadecimal
	Slack    string   // timer slack, ns
	Locked   int      // locked memory, kB
	Faults   int64
	Major    int64
	Procs    int // GOMAXPROCS
}

// fifo7 is the request of most tests.
var fifo7 = Thread{CPU: -1, Priority: 7}

const childVariable = "SCHED_TEST_CHILD"

func TestMain(m *testing.M) {
	switch at := os.Getenv(childVariable); at {
	case "":
		os.Exit(m.Run())
	case "threads":
		haveThreads()
	case "guard":
		guardWithoutSleep()
	case "batch":
		probeUnderBatch()
	case "probe":
		_ = json.NewEncoder(os.Stdout).Encode(Probe(fifo7))
	default:
		enterAndPrint(at)
	}
}

// enterAndPrint is the main function of the child. It calls Enter with a Thread in JSON, touches
// fresh memory, and prints an entered.
func enterAndPrint(at string) {
	fresh := make([]byte, 8<<20)
	stop := make(chan bool)
	for range 3 { // threads that Enter must move to other CPUs
		go func() {
			runtime.LockOSThread()
			<-stop
		}()
	}
	var e entered
	if err := json.Unmarshal([]byte(at), &e.At); err != nil {
		panic(err)
	}
	e.At = e.At.ChooseCPU()
	e.Missing = e.At.Enter()
	minor, major := Faults()
	for i := 0; i < len(fresh); i += 4096 {
		fresh[i] = 1
	}
	minor2, major2 := Faults()
	e.Faults, e.Major, e.Procs = minor2-minor, major2-major, runtime.GOMAXPROCS(0)

	var set unix.CPUSet
	_ = unix.SchedGetaffinity(0, &set)
	e.CPU = highest(&set)
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		e.Policy, e.Priority, e.Flags = attr.Policy, attr.Priority, attr.Flags
		e.Deadline = []uint64{attr.Runtime, attr.Deadline, attr.Period}
	}
	e.Blocked = hostinfo.Files("/").Fields("proc/thread-self/status")["SigBlk"]
	e.Slack = timerSlack()
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		list := hostinfo.Files("/").Fields("proc/self/task/" + task.Name() + "/status")["Cpus_allowed_list"]
		if task.Name() == strconv.Itoa(unix.Gettid()) {
			e.Own = list
			continue
		}
		e.Others = append(e.Others, list)
	}
	e.Locked, _ = strconv.Atoi(strings.TrimSuffix(hostinfo.Files("/").Fields("proc/self/status")["VmLck"], " kB"))
	_ = json.NewEncoder(os.Stdout).Encode(e)
	close(stop)
}

// haveThreads is the main function of a child with three threads more than the runtime has. It runs
// until its standard input ends.
func haveThreads() {
	ready, stop := make(chan bool), make(chan bool)
	for range 3 {
		go func() {
			runtime.LockOSThread()
			ready <- true
			<-stop
		}()
		<-ready
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// guardWithoutSleep is the main function of a child that enters the priority of a guard, prints the
// policy of a later thread, and then runs without sleeping.
func guardWithoutSleep() {
	if err := EnterGuard(1, 50*time.Millisecond); err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan bool)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		attr, err := unix.SchedGetAttr(0, 0)
		fmt.Println(attr.Policy, attr.Priority, err)
		close(done)
	}()
	<-done
	for n := 0; ; n++ { // with and without points at which the runtime preempts a goroutine
		_ = fmt.Sprint(n)
		for k := range 1 << 20 {
			n += k & 1
		}
	}
}

// probeUnderBatch is the main function of a child whose threads have SCHED_BATCH, which needs no right. It
// calls Probe and prints the policies of its threads.
func probeUnderBatch() {
	err := changeThreads(os.Getpid(), 0, func(tid int) (bool, error) {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil || attr.Policy == unix.SCHED_BATCH {
			return false, err
		}
		return true, unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
	})
	if err != nil {
		panic(err)
	}
	Probe(fifo7)
	policies := []uint32{}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		tid, _ := strconv.Atoi(task.Name())
		if attr, err := unix.SchedGetAttr(tid, 0); err == nil {
			policies = append(policies, attr.Policy)
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(policies)
}

// timerSlack returns the timer slack of the calling thread, ns, prctl(2).
func timerSlack() string {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	return fmt.Sprint(ns, err)
}

// inChild runs enterAndPrint in a separate process, without any right if plain.
func inChild(t *testing.T, at Thread, plain bool) (e entered) {
	t.Helper()
	text, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	childOutput(t, string(text), plain, &e)
	return e
}

// childOutput runs this program as a child with a value of childVariable, without any right if plain,
// and reads its output.
func childOutput(t *testing.T, value string, plain bool, output any) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), childVariable+"="+value)
	cmd.Stderr = os.Stderr
	if plain && os.Geteuid() == 0 {
		dir := t.TempDir() // user nobody must be able to read the binary
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(exe)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = filepath.Join(dir, "sched.test")
		if err := os.WriteFile(cmd.Path, data, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("child: %v", err)
	}
	if err := json.Unmarshal(out, output); err != nil {
		t.Fatalf("child: %v: %s", err, out)
	}
}

// lacks reports whether one of resources is missing.
func lacks(missing []Missing, resources ...Resource) bool {
	return slices.ContainsFunc(missing, func(m Missing) bool { return slices.Contains(resources, m.Of) })
}

// checkEntered checks that the kernel has granted each part of the request, or that Enter reports
// the part as missing, with a command that helps.
func checkEntered(t *testing.T, e entered) {
	t.Helper()
	fifo := e.Policy == unix.SCHED_FIFO && e.Priority == 7 && e.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0
	if fifo == lacks(e.Missing, ResourceFIFO) && e.Policy != unix.SCHED_DEADLINE {
		t.Errorf("policy %d, priority %d, flags %#x; missing: %v", e.Policy, e.Priority, e.Flags, e.Missing)
	}
	if locked := e.Locked > 0; locked == lacks(e.Missing, ResourceMemory) {
		t.Errorf("%d kB locked; missing: %v", e.Locked, e.Missing)
	}
	if own := e.Own == strconv.Itoa(e.CPU); own == lacks(e.Missing, ResourceCPU) {
		t.Errorf("the thread may run on %q; missing: %v", e.Own, e.Missing)
	}
	if len(e.Others) < 3 {
		t.Errorf("the process has only %d other threads, want those of three goroutines", len(e.Others))
	}
	for _, list := range e.Others {
		cpus := cpuSet(t, list)
		if alone := !cpus.IsSet(e.CPU); alone == lacks(e.Missing, ResourceCPU, ResourceSecondCPU) {
			t.Errorf("another thread may run on %q, the loop on %d; missing: %v", list, e.CPU, e.Missing)
		}
	}
	if e.CPU != e.At.CPU && !lacks(e.Missing, ResourceCPU) {
		t.Errorf("the thread runs on CPU %d, chosen was %d", e.CPU, e.At.CPU)
	}
	if mask, err := strconv.ParseUint(e.Blocked, 16, 64); err != nil || mask != 1<<(unix.SIGURG-1) {
		t.Errorf("the thread blocks signals %q, want SIGURG alone", e.Blocked)
	}
	if e.Slack != "1 <nil>" && e.Slack != "0 <nil>" { // 0: a real-time thread has none (Linux 6.10)
		t.Errorf("timer slack of the thread: %s ns, want 1 or 0", e.Slack)
	}
	for _, m := range e.Missing {
		if m.What == "" || m.Help == "" {
			t.Errorf("missing %q, help %q: want both", m.What, m.Help)
		}
	}
}

func TestEnterGetsOrReportsEachRight(t *testing.T) {
	e := inChild(t, fifo7, false)
	t.Logf("missing: %v; %d kB locked", e.Missing, e.Locked)
	checkEntered(t, e)
}

// A sleeping timer keeps its processor of the Go runtime.
func TestLoopLeavesAProcessorOfTheRuntimeToTheRest(t *testing.T) {
	for procs, want := range map[string]int{"1": 2, "2": 2, "5": 5} {
		t.Setenv("GOMAXPROCS", procs)
		if e := inChild(t, fifo7, false); e.Procs != want {
			t.Errorf("GOMAXPROCS %s becomes %d, want %d", procs, e.Procs, want)
		}
	}
}

func TestEnterWithoutRightsStillGetsItsCPU(t *testing.T) {
	e := inChild(t, fifo7, true)
	checkEntered(t, e)
	if lacks(e.Missing, ResourceCPU) {
		t.Errorf("no right is needed for a CPU; missing: %v", e.Missing)
	}
}

// Either the deadline is granted, according to sched_getattr(2), or it is reported as missing and
// the thread has SCHED_FIFO.
func TestDeadlineIsGrantedOrReported(t *testing.T) {
	for _, c := range []struct {
		name  string
		at    Thread
		plain bool
		help  string // part of the help for a refused request
	}{
		{"5 ms in 10 ms", Thread{CPU: -1, Priority: 7, Deadline: true, RuntimeNs: 5e6, PeriodNs: 1e7}, false, ""},
		{"without rights", Thread{CPU: -1, Priority: 7, Deadline: true, RuntimeNs: 5e6, PeriodNs: 1e7}, true, "cap_sys_nice"},
		{"more than the period", Thread{CPU: -1, Priority: 7, Deadline: true, RuntimeNs: 2e7, PeriodNs: 1e7}, false, "runtime from 1.024us"},
	} {
		e := inChild(t, c.at, c.plain)
		checkEntered(t, e)
		granted := e.Policy == unix.SCHED_DEADLINE && e.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0 &&
			slices.Equal(e.Deadline, []uint64{uint64(c.at.RuntimeNs), uint64(c.at.PeriodNs), uint64(c.at.PeriodNs)})
		t.Logf("%s: granted %t; missing: %v", c.name, granted, e.Missing)
		if granted == lacks(e.Missing, ResourceDeadline) {
			t.Errorf("%s: policy %d with %v ns; missing: %v", c.name, e.Policy, e.Deadline, e.Missing)
		}
		if c.help == "" {
			continue
		}
		if granted || !slices.ContainsFunc(e.Missing, func(m Missing) bool { return strings.Contains(m.Help, c.help) }) {
			t.Errorf("%s: granted %t, missing: %v; want help: %s", c.name, granted, e.Missing, c.help)
		}
	}
}

// The kernel admits a deadline only on a thread with all CPUs of its root domain, which a loop on one
// CPU is only on a host set up for it. So the policy is asked for without the move to a CPU.
func TestDeadlineIsGrantedWhereTheKernelGrantsIt(t *testing.T) {
	for _, at := range []Thread{
		{Deadline: true, RuntimeNs: 2e6, PeriodNs: 1e7},
		{Deadline: true, RuntimeNs: 2e7, PeriodNs: 1e7}, // more than the period
	} {
		share := []uint64{uint64(at.RuntimeNs), uint64(at.PeriodNs), uint64(at.PeriodNs)}
		direct := onThread(func() error {
			return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_DEADLINE,
				Runtime: share[0], Deadline: share[1], Period: share[2]}, 0)
		})
		type result struct {
			missing []Missing
			attr    *unix.SchedAttr
			err     error
		}
		got := onThread(func() (r result) {
			r.missing = at.enterPolicy()
			r.attr, r.err = unix.SchedGetAttr(0, 0)
			return r
		})
		if got.err != nil {
			t.Fatal(got.err)
		}
		granted := got.attr.Policy == unix.SCHED_DEADLINE && got.attr.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0 &&
			slices.Equal([]uint64{got.attr.Runtime, got.attr.Deadline, got.attr.Period}, share)
		t.Logf("%d ns of %d ns: granted %t; the kernel answers %v", at.RuntimeNs, at.PeriodNs, granted, direct)
		if granted != (direct == nil) || lacks(got.missing, ResourceDeadline) != (direct != nil) {
			t.Errorf("%d ns of %d ns: %+v, missing %v; the kernel answers %v", at.RuntimeNs, at.PeriodNs, *got.attr, got.missing, direct)
		}
		if direct != nil && !strings.Contains(fmt.Sprint(got.missing), direct.Error()) {
			t.Errorf("missing %v does not name the kernel's answer: %v", got.missing, direct)
		}
	}
}

func TestMissingDeadlineExplainsTheKernelsError(t *testing.T) {
	at := Thread{CPU: 3, Deadline: true, RuntimeNs: 1e6, PeriodNs: 5e6}
	for _, c := range []struct {
		err        error
		capable    bool
		what, help string
	}{
		{unix.EPERM, true, "CPU 3 shares its root domain", "isolcpus=domain,3"},
		{unix.EPERM, false, "operation not permitted", "cap_sys_nice"},
		{unix.EBUSY, true, "admitted already", "sched_rt_runtime_us"},
		{unix.EINVAL, true, "1ms in 5ms", "period_min_us"},
	} {
		if m := at.missingDeadline(c.err, c.capable); m.Of != ResourceDeadline || !strings.Contains(m.What, c.what) || !strings.Contains(m.Help, c.help) {
			t.Errorf("%v, capable %t: %+v, want %q, %q", c.err, c.capable, m, c.what, c.help)
		}
	}
}

func TestFreshMemoryDoesNotFaultAfterEnter(t *testing.T) {
	if _, _, errno := unix.RawSyscall(unix.SYS_MADVISE, 0, 0, unix.MADV_POPULATE_READ); errno == unix.EINVAL {
		t.Skip("this kernel has no MADV_POPULATE_READ (Linux 5.14)")
	}
	for _, plain := range []bool{false, true} {
		e := inChild(t, fifo7, plain)
		if raceDetector {
			t.Skip("the race detector's own memory is too large to be brought in")
		}
		if e.Faults != 0 || e.Major != 0 {
			t.Errorf("without rights: %t: 2048 fresh pages gave %d minor and %d major faults, want 0", plain, e.Faults, e.Major)
		}
	}
}

func TestMapsAreReadLineByLine(t *testing.T) {
	const text = `00400000-00600000 r-xp 00000000 fe:00 1                      /opt/lock step
c000000000-c000400000 rw-p 00000000 00:00 0 
c000400000-c004000000 ---p 00000000 00:00 0 
7f0000000000-7f0020000000 rw-p 00000000 00:00 0 
7f1000000000-7f1000008000 rw-s 00000000 00:01 5                  /memfd:lockstep-page (deleted)
7ffd00000000-7ffd00004000 r--p 00000000 00:00 0                          [vvar]
7ffd00004000-7ffd00006000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
broken
zz-yy rw-p 00000000 00:00 0
1000-yy rw-p 00000000 00:00 0
zz-2000 rw-p 00000000 00:00 0
2000-1000 rw-p 00000000 00:00 0
1000-2000 rw-p 00000000 0
1000-2000 rw- 00000000 00:00 0
`
	const none, read, write = 0, unix.MADV_POPULATE_READ, unix.MADV_POPULATE_WRITE
	want := []struct {
		name   string
		size   uint64
		advice int
	}{
		{"/opt/lock step", 2 << 20, read},
		{"", 4 << 20, write},
		{"", 60 << 20, none}, // no access
		{"", 512 << 20, write},
		{"/memfd:lockstep-page (deleted)", 32 << 10, write},
		{"[vvar]", 16 << 10, none},
		{"[vdso]", 8 << 10, none},
		{"[vsyscall]", 4 << 10, none},
	}
	got := parseMaps(text)
	if len(got) != len(want) {
		t.Fatalf("%d mappings, want %d", len(got), len(want))
	}
	for i, w := range want {
		m := got[i]
		if m.name != w.name || m.end-m.start != w.size || m.advice() != w.advice {
			t.Errorf("mapping %d: %q of %d bytes, advice %d; want %q of %d, %d", i, m.name, m.end-m.start, m.advice(), w.name, w.size, w.advice)
		}
	}
}

func ExampleMissing() {
	m := missingAlone(0, []int{0, 1, 2, 3})
	fmt.Println(m.What)
	fmt.Println(m.Help)
	// Output:
	// CPU 0 is the only one allowed to the process: the loop shares it
	// allow a second CPU: start under `taskset -c 0-3`, or with AllowedCPUs= of two
}

// A guard that does not sleep could take a CPU from the host.
func TestKernelKillsAGuardThatDoesNotSleep(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command(exe)
	cmd.Env, cmd.Stdout = append(os.Environ(), childVariable+"=guard"), &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // a host whose limit has no effect
	start := time.Now()
	_ = cmd.Wait()
	if !stop.Stop() {
		t.Fatalf("the guard still ran after %v", time.Since(start))
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if strings.HasPrefix(out.String(), "sched: ") { // the host refuses the priority
		if !lacks(Probe(fifo7), ResourceFIFO) || !strings.Contains(out.String(), "SCHED_FIFO 1: ") {
			t.Errorf("refused: %s", out.String())
		}
		return
	}
	if out.String() != "1 1 <nil>\n" || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("a later thread: %q, want SCHED_FIFO 1; the end: %v, want SIGKILL", out.String(), cmd.ProcessState)
	}
}
