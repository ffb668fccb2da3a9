package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/sched"
	"lockstep/sched/journal"
)

// runVariable makes a child of this test a run that raises timers: root, CPU, folder and priority.
const runVariable = "HOST_TEST_RUN"

func TestMain(m *testing.M) {
	if at := os.Getenv(runVariable); at != "" {
		raiseAndWait(strings.Split(at, "\n"))
	}
	if what := os.Getenv(exitVariable); what != "" {
		holdAndExit(what)
	}
	os.Exit(m.Run())
}

// raiseAndWait is the main function of a run. It raises the timers, starts a target, which inherits
// the reservations, prints the target's process id, and waits to be killed.
func raiseAndWait(at []string) {
	cpu, _ := strconv.Atoi(at[1])
	priority, _ := strconv.Atoi(at[3])
	h := &Reservations{Owner: "killed_bench"}
	run := &timers{sched.Timers{Root: at[0], CPU: cpu}, []string{at[2]}, h}
	if err := run.reserve(); err != nil {
		panic(err)
	}
	if m := run.Raise(priority); m != nil {
		panic(m.What)
	}
	held, err := h.Files()
	if err != nil {
		panic(err)
	}
	target := exec.Command("sleep", "1000")
	target.ExtraFiles = held
	if err := target.Start(); err != nil {
		panic(err)
	}
	h.NameTarget(target.Process.Pid)
	for _, f := range held {
		f.Close()
	}
	fmt.Println(target.Process.Pid)
	time.Sleep(time.Hour)
}

// startRun starts a run that raises the timers to a priority. The functions kill its supervisor and
// its target as kill -9 does.
func startRun(t *testing.T, on sched.Timers, dir string, priority int) (pid int, killSupervisor, killTarget func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%d\n%s\n%d", runVariable, on.Root, on.CPU, dir, priority))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	target, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("the run does not start: %v", err)
	}
	killSupervisor = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	killTarget = func() {
		p, err := OpenProcess(target, 0)
		if err != nil {
			return
		}
		_ = syscall.Kill(target, syscall.SIGKILL)
		p.WaitDone(time.Minute)
	}
	t.Cleanup(killSupervisor)
	t.Cleanup(killTarget)
	return cmd.Process.Pid, killSupervisor, killTarget
}

// left restores what killed runs left in a folder, as RestoreLeft does.
func left(on sched.Timers, dir string) []Left {
	return restoreJournals(on.Root, []string{dir}, isNeeded)
}

func TestNextCommandRestoresAndNamesWhatAKilledRunLeft(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	pid, killSupervisor, killTarget := startRun(t, on, dir, 11)
	if list := left(on, dir); has() != 11 || len(list) > 0 {
		t.Errorf("while the run lasts: priority %d, left %v; want 11, nothing", has(), list)
	}
	killSupervisor()
	if list := left(on, dir); has() != 11 || len(list) > 0 {
		t.Errorf("while the target ticks without a supervisor: priority %d, left %v; want 11, nothing", has(), list)
	}
	killTarget()
	list := left(on, dir)
	if has() != 0 || len(list) != 1 {
		t.Fatalf("after the death of both: priority %d, left %v; want 0 and one setting", has(), list)
	}
	want := fmt.Sprintf("killed_bench, process %d, was killed and left thread ktimers/%d (%d), priority at FIFO 11: restored to OTHER", pid, on.CPU, unix.Gettid())
	if got := list[0].String(); got != want {
		t.Errorf("%q; want %q", got, want)
	}
	if again := left(on, dir); len(again) > 0 {
		t.Errorf("a second time: %v", again)
	}
	if _, err := os.Stat(journalFile(dir)); err == nil {
		t.Error("the journal is still there")
	}
}

func TestTimersOfTwoKilledRunsGetTheirFirstPriorityBack(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	_, one, oneTarget := startRun(t, on, dir, 11)
	_, two, twoTarget := startRun(t, on, dir, 12)
	two()
	twoTarget()
	if list := left(on, dir); has() != 12 || len(list) > 0 {
		t.Errorf("one run lasts: priority %d, left %v; want 12, nothing", has(), list)
	}
	one()
	oneTarget()
	if list := left(on, dir); has() != 0 || len(list) != 1 || list[0].Before != "OTHER" {
		t.Errorf("both were killed: priority %d, left %+v; want 0, before OTHER", has(), list)
	}
}

// A run that goes on in the same process, such as the next segment of a soak, does not keep timers
// raised that it needs no longer.
func TestTimersOfAReleasedRunAreRestoredAfterTheLastRunWasKilled(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	_, kill, killTarget := startRun(t, on, dir, 11)
	run, _ := waiting(t, on, dir, os.Getpid())
	run.Raise(12)
	if run.Release(); has() != 12 {
		t.Errorf("another run lasts: priority %d, want 12", has())
	}
	kill()
	killTarget()
	if list := left(on, dir); has() != 0 || len(list) != 1 {
		t.Errorf("priority %d, left %v; want 0 and one setting", has(), list)
	}
}

func TestSettingThatAnotherProgramHasChangedIsLeftAndNamed(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	_, kill, killTarget := startRun(t, on, dir, 11)
	kill()
	killTarget()
	other := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 7}
	if err := unix.SchedSetAttr(unix.Gettid(), &other, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.SchedSetAttr(unix.Gettid(), &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
	}()
	list := left(on, dir)
	if has() != 7 || len(list) != 1 || !errors.Is(list[0].Err, errNotOurs) || list[0].Now != "FIFO 7" {
		t.Errorf("priority %d, %v; want the 7 of another program, named", has(), list)
	}
}

// Every case would lower the thread's priority if its journal were believed.
func TestUntrustedJournalOfARunIsNotBelieved(t *testing.T) {
	on, has := ktimers(t)
	raised := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 11}
	if err := unix.SchedSetAttr(unix.Gettid(), &raised, 0); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = unix.SchedSetAttr(unix.Gettid(), &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
	}()
	s, _ := (&timers{Timers: on}).setting()
	good := journal.Entry{Setting: s, Before: "OTHER", After: "FIFO 11", Owner: "b", Process: os.Getpid(), Since: StartTime("/", os.Getpid()) - 1}
	with := func(f func(e *journal.Entry)) journal.Entry {
		e := good
		f(&e)
		return e
	}
	for _, c := range []struct {
		name  string
		entry journal.Entry
		boot  string
		spoil func(dir, file string) error
		named bool // RestoreLeft says why
		done  bool
	}{
		{"a reused process id is no owner", good, BootID(), nil, true, true},
		{"the owner lives", with(func(e *journal.Entry) { e.Since++ }), BootID(), nil, false, false},
		{"of an earlier boot", good, "x", nil, false, false},
		{"of an earlier thread", with(func(e *journal.Entry) { e.Start++ }), BootID(), nil, true, false},
		{"it would raise", with(func(e *journal.Entry) { e.Before = "FIFO 99" }), BootID(), nil, true, false},
		{"another setting", journal.Entry{Setting: journal.Setting{Kind: journal.Value, File: "/proc/sys/kernel/numa_balancing"}, Before: "1", After: "0"}, BootID(), nil, true, false},
		{"no setting of lockstep", journal.Entry{Setting: journal.Setting{Kind: journal.Value, File: "/proc/sys/kernel/core_pattern"}, Before: "|x", After: "core"}, BootID(), nil, true, false},
		{"truncated", good, BootID(), func(_, file string) error { return os.Truncate(file, 40) }, true, false},
		{"empty", good, BootID(), func(_, file string) error { return os.Truncate(file, 0) }, true, false},
		{"everybody can write to it", good, BootID(), func(_, file string) error { return os.Chmod(file, 0o666) }, true, false},
		{"everybody can write to the folder", good, BootID(), func(dir, _ string) error { return os.Chmod(dir, 0o777) }, false, false},
		{"a link", good, BootID(), func(_, file string) error {
			return errors.Join(os.Rename(file, file+".real"), os.Symlink(file+".real", file))
		}, true, false},
		{"a pipe", good, BootID(), func(_, file string) error { return errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)) }, true, false},
		{"another user's", good, BootID(), func(_, file string) error {
			if os.Geteuid() != 0 { // only root can change the owner
				return os.Chmod(file, 0o622)
			}
			return os.Chown(file, 65534, 65534)
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "lockstep")
			err := os.Mkdir(dir, 0o755)
			if err == nil {
				err = (&journal.Journal{Boot: c.boot, Entries: []journal.Entry{c.entry}}).Save(journalFile(dir))
			}
			if err == nil && c.spoil != nil {
				err = c.spoil(dir, journalFile(dir))
			}
			if err != nil {
				t.Fatal(err)
			}
			attr, err := unix.SchedGetAttr(threadOf(s), 0)
			if err != nil || attr.Priority != 11 {
				t.Fatalf("%+v, %v", attr, err)
			}
			list := left(on, dir)
			if attr, err = unix.SchedGetAttr(threadOf(s), 0); err != nil || (attr.Priority == 0) != c.done {
				t.Errorf("restored: priority %d, %v, %v", attr.Priority, err, list)
			}
			if (len(list) == 1) != c.named {
				t.Errorf("left: %v", list)
			}
			_ = unix.SchedSetAttr(threadOf(s), &raised, 0)
		})
	}
	if has() != 11 {
		t.Errorf("priority %d, want 11", has())
	}
}

// threadOf returns the thread of a setting.
func threadOf(s journal.Setting) int {
	tid, _ := strconv.Atoi(filepath.Base(s.File))
	return tid
}
