package host

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// ktimers fakes a CPU whose timer thread is a thread of this test; has is its priority, 0: not
// real-time. The number of the CPU does not exist on a real host.
func ktimers(t *testing.T) (timers sched.Timers, has func() int) {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	tid := unix.Gettid()
	// A timer thread is SCHED_OTHER at first; the tests may run as SCHED_IDLE.
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0); err != nil {
		t.Skip("the policy of this thread cannot be changed: ", err)
	}
	timers = sched.Timers{Root: t.TempDir(), CPU: 1000 + os.Getpid()%1000}
	for name, text := range map[string]string{
		"sys/kernel/realtime":            "1\n",
		fmt.Sprintf("proc/%d/comm", tid): fmt.Sprintf("ktimers/%d\n", timers.CPU),
		fmt.Sprintf("proc/%d/stat", tid): fmt.Sprintf("%d (ktimers/%d) S 2 0 0 0 -1 69238848", tid, timers.CPU) +
			strings.Repeat(" 0", 43), // proc_pid_stat(5): 52 fields
	} {
		path := filepath.Join(timers.Root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	switch m := timers.Probe(1); {
	case m != nil && sched.Capable(unix.CAP_SYS_NICE):
		t.Fatal(m.What)
	case m != nil:
		t.Skip("it takes the right to real-time priorities (CAP_SYS_NICE): ", m.What)
	}
	return timers, func() int {
		attr, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			t.Fatal(err)
		}
		return int(attr.Priority)
	}
}

// waiting is a run with a loop on the CPU, number in this process; die simulates a kill of the run and
// of its target.
func waiting(t *testing.T, on sched.Timers, dir string, number int) (run *timers, die func()) {
	t.Helper()
	run = &timers{on, []string{dir}, &Reservations{Owner: fmt.Sprintf("run%d", number)}}
	if _, err := run.reservations.reserve(fmt.Sprintf("%s%d-%d", timersPrefix, on.CPU, number)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.reservations.Close)
	return run, run.reservations.Close
}

func TestLastOfTwoLoopsOnACPURestoresItsTimers(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	for _, c := range []struct{ first, second, both int }{{11, 11, 11}, {11, 12, 12}, {12, 11, 12}} {
		one, _ := waiting(t, on, dir, 1)
		two, _ := waiting(t, on, dir, 2)
		if m := one.Raise(c.first); m != nil || has() != c.first {
			t.Fatalf("%+v: %d, %v", c, has(), m)
		}
		if m := two.Raise(c.second); m != nil || has() != c.both {
			t.Errorf("%+v: both want %d, %v", c, has(), m)
		}
		if one.Release(); has() != c.both {
			t.Errorf("%+v: with the end of the first it has %d", c, has())
		}
		if two.Release(); has() != 0 {
			t.Errorf("%+v: with the end of both it has %d", c, has())
		}
		if _, err := os.Stat(journalFile(dir)); err == nil {
			t.Errorf("%+v: a journal is left", c)
		}
	}
}

func TestNextRunRestoresTheTimersOfAKilledRun(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	killed, die := waiting(t, on, dir, 1)
	killed.Raise(11)
	die()
	if has() != 11 {
		t.Fatalf("%d", has())
	}
	next, _ := waiting(t, on, dir, 2)
	next.Raise(10) // below the priority that the killed run left
	if has() != 10 {
		t.Errorf("the next one has %d", has())
	}
	if next.Release(); has() != 0 {
		t.Errorf("in the end %d", has())
	}

	// The run was killed after the journal was written and before the change; another program raises the timers.
	killed, die = waiting(t, on, dir, 1)
	killed.recordPlanned(&sched.Raised{Was: &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 3}, Priority: 11})
	die()
	after, _ := waiting(t, on, dir, 2)
	after.Release()
	if _, err := os.Stat(journalFile(dir)); has() != 0 || err == nil {
		t.Errorf("it has %d, %v", has(), err)
	}
}

func TestJournalIsWrittenBeforeTheTimersAreRaised(t *testing.T) {
	on, has := ktimers(t)
	dir := filepath.Join(t.TempDir(), "lockstep")
	run, _ := waiting(t, on, dir, 1)
	_, m := on.Raise(11, func(r *sched.Raised) {
		run.recordPlanned(r)
		j, err := readJournal(dir)
		if err != nil || has() != 0 || len(j.Entries) != 1 || j.Entries[0].Before != "OTHER" || j.Entries[0].After != "FIFO 11" {
			t.Errorf("it has %d, the journal is %+v, %v", has(), j, err)
		}
	})
	if run.Release(); m != nil || has() != 0 {
		t.Errorf("%v, in the end %d", m, has())
	}
}

// A service may restore timers raised by a run of root, and root those raised by a service.
func TestOnlyOwnJournalsAreRead(t *testing.T) {
	for _, c := range []struct {
		uid  int
		own  string
		want []string
	}{
		{0, "/run/lockstep-0", []string{"/run/lockstep-0", "/run/lockstep"}},
		{0, "/run/lockstep", []string{"/run/lockstep"}},
		{998, "/run/lockstep", []string{"/run/lockstep", "/run/lockstep-0"}},
		{1000, "/run/user/1000/lockstep", []string{"/run/user/1000/lockstep", "/run/lockstep", "/run/lockstep-0"}},
	} {
		if got := journalDirs(c.uid, c.own); !slices.Equal(got, c.want) {
			t.Errorf("user %d: %q, want %q", c.uid, got, c.want)
		}
	}
}
