package host

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/hostinfo"
)

// unheld returns the name of a reservation that no other process holds.
func unheld(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s%d-%s", BusPrefix, os.Getpid(), t.Name()[len("Test"):][:6])
}

func TestOnlyOneOfManyGetsAReservation(t *testing.T) {
	what := unheld(t)
	const many = 20
	var all [many]Reservations
	var by [many]*Holder
	var wait sync.WaitGroup
	for i := range many {
		all[i].Owner = fmt.Sprintf("bench %d", i)
		wait.Go(func() {
			var err error
			if by[i], err = all[i].reserve(what); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	winner := slices.Index(by[:], nil)
	for i := range many {
		if i != winner && (by[i] == nil || by[i].Bench != FileName(all[winner].Owner) || by[i].Supervisor != os.Getpid() || by[i].Target != 0) {
			t.Errorf("%d lost to %+v, where %d has it", i, by[i], winner)
		}
	}
	for i := range many {
		all[i].Close()
	}
	var next Reservations
	if by, err := next.reserve(what); by != nil || err != nil {
		t.Errorf("let go, it is held by %v, %v", by, err)
	}
	next.Close()
}

func TestInheritedReservationLastsUntilTheTargetEnds(t *testing.T) {
	what := unheld(t)
	h := &Reservations{Owner: "a bench"}
	if by, err := h.reserve(what); by != nil || err != nil {
		t.Fatal(by, err)
	}
	files, err := h.Files()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Spawn("/bin/sleep", nil, files, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	h.NameTarget(p.PID)
	for _, f := range files {
		f.Close()
	}
	taken := func() *Holder {
		var other Reservations
		defer other.Close()
		by, err := other.reserve(what)
		if err != nil {
			t.Fatal(err)
		}
		return by
	}
	if by := taken(); by == nil || by.Supervisor != os.Getpid() || by.Target != p.PID {
		t.Errorf("held by %+v, want process %d and its target %d", by, os.Getpid(), p.PID)
	}
	h.Close() // as the end of the supervisor does
	if by := taken(); by == nil || by.Supervisor != 0 || by.Target != p.PID {
		t.Errorf("held by %+v, want the target alone, %d", by, p.PID)
	}
	heir := &Reservations{Owner: "a bench"}
	if err := heir.TakeOver(p.FD, 3, []string{what}); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if by := taken(); by == nil || by.Supervisor != os.Getpid() {
		t.Errorf("held by %+v, want who has taken over", by)
	}
	heir.Close()
	if by := taken(); by != nil {
		t.Errorf("held by %+v, want nobody", by)
	}
}

func TestOtherThreadsAlwaysKeepACPU(t *testing.T) {
	set := func(cpus ...int) (s unix.CPUSet) {
		for _, cpu := range cpus {
			s.Set(cpu)
		}
		return s
	}
	for _, c := range []struct {
		all   unix.CPUSet
		cpu   int
		loops []int
		want  unix.CPUSet
	}{
		{set(0, 1, 2, 3), 3, []int{2}, set(0, 1)},
		{set(0, 1, 2, 3), 3, nil, set(0, 1, 2)},
		{set(0, 1), 1, []int{0}, set(0)}, // a loop is on each
		{set(0, 1), 0, []int{0, 7}, set(1)},
		{set(1), 1, []int{0}, set()},
	} {
		if got := remainingCPUs(c.all, c.cpu, c.loops); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestHolderIsNamedWithTheCommandsThatEndIt(t *testing.T) {
	for want, h := range map[string]Holder{
		"b, process 7: end that one (lockstep stop 7)": {What: "cpu/3", Bench: "b", Supervisor: 7, Target: 8},
		"b, whose target, process 8, runs without a supervisor: take it over (lockstep attach 8) or end it (lockstep stop 8)": {What: "cpu/3", Bench: "b", Target: 8},
		"another run without a name (sudo ss -xp | grep " + sched.ReservationRoot + "cpu/3 lists it)":                         {What: "cpu/3", UID: -1},
		"a process of user 7 without a name (sudo ss -xp | grep " + sched.ReservationRoot + "cpu/3 lists it)":                 {What: "cpu/3", UID: 7},
		"b of user 7, whose process is not visible here":                                                                      {What: "cpu/3", Bench: "b", UID: 7},
	} {
		if got := h.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The run names the process that it waits for, and gives up after a time limit.
func TestRunWaitsForChangesOfHostSettings(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	what := fmt.Sprintf("host/%d", os.Getpid())                       // other tests run on this host
	if err := AwaitHostSettings(out, what, time.Minute); err != nil { // no process changes settings, or only briefly
		t.Fatal(err)
	}
	doctor := &Reservations{Owner: "doctor"}
	if by, err := doctor.reserve(what); by != nil || err != nil {
		t.Fatal(by, err)
	}
	close := sync.OnceFunc(doctor.Close)
	defer close()
	who := fmt.Sprintf("lockstep doctor, process %d,", os.Getpid())
	still := "run: " + who + " still changes the settings of this host after 1ms: start the run again when it has ended"
	if err := AwaitHostSettings(out, what, time.Millisecond); err == nil || err.Error() != still {
		t.Errorf("%v", err)
	}
	time.AfterFunc(3*pollInterval/2, close)
	if err := AwaitHostSettings(out, what, time.Minute); err != nil {
		t.Errorf("when it has ended: %v", err)
	}
	if text, _ := os.ReadFile(out.Name()); strings.Count(string(text), who+" changes the settings of this host: waiting at most 1m0s\n") != 1 {
		t.Errorf("said: %s", text)
	}
}

func TestControlSocketsOfRootAreInTheFolderOfServices(t *testing.T) {
	dir, me := t.TempDir(), os.Getuid()
	for uid, want := range map[int]string{me: dir, me + 1: fmt.Sprintf("%s-%d", dir, me+1)} {
		if got := controlDirBesideServices(dir, uid); got != want {
			t.Errorf("user %d: %s, want %s", uid, got, want)
		}
	}
	if none := filepath.Join(dir, "none"); controlDirBesideServices(none, me+1) != none {
		t.Error("a folder that is not there yet is left to another user")
	}
}

func TestFreeCPUIsUnreservedOrTheBenchsOwn(t *testing.T) {
	if got := FreeCPU(7); got != 7 {
		t.Errorf("CPU %d for a bench with CPU 7", got)
	}
	h := &Reservations{Owner: "free"}
	defer h.Close()
	all := func(cpus []int) bool { // are held
		list := Holders()
		return !slices.ContainsFunc(cpus, func(cpu int) bool {
			return !slices.ContainsFunc(list, func(h Holder) bool { return h.What == CPUPrefix+strconv.Itoa(cpu) })
		})
	}
	for range 100 { // other tests reserve and release CPUs
		cpu := FreeCPU(-1)
		if by, err := h.reserve(CPUPrefix + strconv.Itoa(cpu)); err != nil {
			t.Fatal(err)
		} else if by != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		cpus := sched.LoopCPUs()
		if next := FreeCPU(-1); next == cpu && !all(cpus) {
			t.Errorf("CPU %d of %v is free, while it is held and another one is not", cpu, cpus)
		}
		return
	}
	t.Log("each CPU was held by others all the time")
}

func TestHolderWithoutANameIsReported(t *testing.T) {
	what := unheld(t)
	fd, err := sched.Reserve(what)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var h Reservations
	defer h.Close()
	if by, err := h.reserve(what); err != nil || by == nil || by.Bench != "" || by.Supervisor != 0 {
		t.Errorf("%v, %v", by, err)
	}
}

// exitVariable is the environment variable that makes the test binary a process that holds the named
// reservation and exits.
const exitVariable = "LOCKSTEP_TEST_EXITING"

func init() {
	if os.Getenv(exitVariable) != "" {
		runtime.LockOSThread() // the first thread of the process
	}
}

// holdAndExit reserves what, and ends the first thread of the process. Another thread keeps the
// process for 300 ms after the end of its standard input, as locked memory keeps a killed process.
func holdAndExit(what string) {
	h := &Reservations{Owner: "killed"}
	if by, err := h.reserve(what); by != nil || err != nil {
		panic(fmt.Sprint(by, err))
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		time.Sleep(300 * time.Millisecond)
		os.Exit(0)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// exiting starts a process that holds a reservation while it exits. end lets it end 300 ms later.
func exiting(t *testing.T, what string) (end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), exitVariable+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	for stop := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		first, err := hostinfo.Files("/").Thread(fmt.Sprintf("proc/%d", cmd.Process.Pid))
		if err == nil && first.State == "Z" {
			break
		}
		if time.Now().After(stop) {
			t.Fatalf("process %d does not exit: %+v, %v", cmd.Process.Pid, first, err)
		}
	}
	if h := holderOf(what); h == nil || h.Bench != "killed" {
		t.Fatalf("the exiting process does not hold %s: %+v", what, h)
	}
	return func() { in.Close() }
}

func TestReservationOfAKilledProcessIsFreeAfterItsExit(t *testing.T) {
	what := unheld(t)
	exiting(t, what)()
	var next Reservations
	defer next.Close()
	if by, err := next.reserve(what); by != nil || err != nil {
		t.Errorf("held by %v, %v; want the exit of the killed holder awaited", by, err)
	}
}

// Any user can hold the name of the lock: settings are restored without it, and a line says so.
func TestALockOfTheJournalsThatIsNotReleasedIsNamed(t *testing.T) {
	fd, err := sched.Reserve(journalLock)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		fd, err = sched.Reserve(journalLock) // another run of this machine may hold it for a moment
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const line = "another process has held @lockstep/timers/journal for 1 s"
	if list := RestoreLeft(); !slices.ContainsFunc(list, func(l Left) bool { return strings.Contains(l.String(), line) }) {
		t.Errorf("%v, want a line with %q", list, line)
	}
}

func TestTimersOfAKilledRunAreNotInUseAfterItsExit(t *testing.T) {
	const cpu = 4000 // no host has this CPU
	end := exiting(t, fmt.Sprintf("%s%d-%d", timersPrefix, cpu, os.Getpid()))
	if !timersInUse(cpu, nil) {
		t.Error("free before the exit")
	}
	end()
	RestoreLeft()
	if timersInUse(cpu, nil) {
		t.Error("still in use after RestoreLeft")
	}
}
