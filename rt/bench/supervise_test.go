package bench

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/rt"
	"lockstep/sched"
)

// sleeper is a process that somebody else has started, taken over.
func sleeper(t *testing.T) *process {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := adopt(cmd.Process.Pid, 0)
	if err != nil {
		t.Skip("this kernel has no pidfd: ", err)
	}
	return p
}

func TestFailedAttachLeavesTheTargetAlone(t *testing.T) {
	r := &run{target: sleeper(t), restore: func() {}}
	r.close()
	if r.target.ended(200 * time.Millisecond) {
		t.Error("the target has ended")
	}
}

func TestOfTwoThatAttachOneSucceeds(t *testing.T) {
	r := &run{page: new(rt.Page)}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	r.page.Supervisor.Store(rt.Identity(gone.Process.Pid, 0))
	if err := r.succeed(); err != nil || supervisorOf(r.page) != os.Getpid() {
		t.Errorf("the first: %v, the supervisor is %d, want %d", err, supervisorOf(r.page), os.Getpid())
	}
	if err := r.succeed(); !errors.Is(err, errSupervised) {
		t.Errorf("the second: %v, want that it has a supervisor", err)
	}
}

// The kernel gives ids away again: who has that of a supervisor that has ended is none.
func TestAProcessWithTheIDOfASupervisorThatHasEndedIsNotTakenForIt(t *testing.T) {
	p := sleeper(t)
	if p.since == 0 || p.since != began("/", p.pid) {
		t.Fatalf("it began at %d", p.since)
	}
	for _, c := range []struct {
		who   uint64
		alive bool
	}{
		{rt.Identity(p.pid, p.since), true},
		{rt.Identity(p.pid, p.since-1), false},
		{rt.Identity(p.pid, 0), true}, // it is not known
		{rt.Identity(0, 0), false},
	} {
		if alive(c.who) != c.alive {
			t.Errorf("%x: alive is not %t", c.who, c.alive)
		}
	}
	r := &run{page: new(rt.Page)}
	r.page.Supervisor.Store(rt.Identity(p.pid, p.since-1))
	if err := r.succeed(); err != nil || r.page.Supervisor.Load() != self() {
		t.Errorf("%v, the supervisor is %x, want %x", err, r.page.Supervisor.Load(), self())
	}
	if other, err := adopt(p.pid, p.since-1); err == nil || err.Error() != "it has ended" {
		t.Errorf("taken for another one: %+v, %v", other, err)
	}
	s := &socket{name: "lone", pid: p.pid, since: p.since - 1, lone: &run{bench: &Bench{}, h: &Handover{}, page: new(rt.Page)}}
	if _, err := s.stop(true)(); err == nil || p.ended(100*time.Millisecond) {
		t.Errorf("%v, and the process that has its id now was killed: %t", err, p.ended(0))
	}
}

func TestWhenAProcessBeganIsReadBehindItsName(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/7"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint32{
		"7 (a) S 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4294967301 20\n": 5, // modulo 2^32
		"7 (a": 0, "": 0,
	} {
		if err := os.WriteFile(filepath.Join(root, "proc/7/stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := began(root, 7); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := began(root, 8); got != 0 {
		t.Errorf("of none: %d", got)
	}
}

// After the end of a run no tick comes, but the safe values go out.
func TestWatchdogWaitsOutTheSafeValuesAfterAnEnd(t *testing.T) {
	r, _ := demoRun(t)
	r.bench.WatchNs, r.h.Loop.Safe.Ticks = 300e6, 1000
	g := &guard{r: r}
	if d := g.patience(); d != 300*time.Millisecond {
		t.Errorf("while it ticks: %v, want 300 ms", d)
	}
	r.page.Reason.Store(uint64(rt.Stopped))
	if d := g.patience(); d != 5300*time.Millisecond {
		t.Errorf("after the end, with safe values for 5 s: %v, want 5.3 s", d)
	}
	s := newStatus(r)
	defer s.end()
	if got := s.trouble(); got != "over: stopped" {
		t.Errorf("the display says %q, want over: stopped", got)
	}
}

// watched is a run that is watched, of a target that does not listen.
func watched(t *testing.T, signals chan os.Signal) (r *run, over chan struct{}) {
	t.Helper()
	r, _ = demoRun(t)
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	r.options.Out, r.begun, r.target = null, sched.Now(), sleeper(t)
	r.h.Loop.Safe.Ticks = 12_000 // a minute of safe values, so long it would not be killed for its silence
	if r.notify, err = newNotifier(r.page); err != nil {
		t.Fatal(err)
	}
	over = make(chan struct{})
	go func() { defer close(over); r.watch(signals) }()
	return r, over
}

func TestASignalThatIsToldTwiceIsOneWish(t *testing.T) {
	signals := make(chan os.Signal, 4)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	r, over := watched(t, signals)
	for r.page.Stop.Load() == 0 || len(signals) > 0 {
		time.Sleep(time.Millisecond)
	}
	r.target.signal(syscall.SIGTERM) // it ends by itself
	if <-over; r.target.shot || r.stop != "terminated" {
		t.Errorf("stopped by %q, killed: %t; want by terminated, not killed", r.stop, r.target.shot)
	}
}

func TestASecondSignalKillsATargetThatDoesNotListen(t *testing.T) {
	signals := make(chan os.Signal, 4)
	r, over := watched(t, signals)
	for range 1000 {
		select {
		case signals <- syscall.SIGINT:
		case <-over:
			if !r.target.shot || r.page.Stop.Load() != rt.StopPlanned {
				t.Errorf("killed: %t, asked to stop: %d; want both", r.target.shot, r.page.Stop.Load())
			}
			return
		}
		time.Sleep(again / 10)
	}
	t.Error("1000 signals have not ended it")
}

// A message is waited for by nobody: it would hold up Ctrl-C and the end of the run.
func TestManagerThatDoesNotReadHoldsNothingUp(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	n, err := newNotifier(new(rt.Page))
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	full := false
	for i := 0; i < 10_000 && !full; i++ { // the queue of a socket has 10 places, or what the host says
		full = !n.say("WATCHDOG=1")
	}
	if !full {
		t.Fatal("10,000 messages that nobody reads have gone")
	}
	n.page.Ticks.Store(readyAfter)
	if n.look(time.Now()); n.ready {
		t.Error("READY is taken for said although it has not gone")
	}
	text := make([]byte, 100)
	if _, err := manager.Read(text); err != nil {
		t.Fatal(err)
	}
	if n.look(time.Now()); !n.ready {
		t.Error("READY is not said when there is room again")
	}
}

func TestEachEndIsToldForWhatItIs(t *testing.T) {
	r, _ := demoRun(t)
	r.target, r.guard = &process{}, &guard{}
	r.page.State.Store(uint64(rt.Ended))
	for reason, want := range map[rt.Reason]string{
		rt.MissedTick: "a tick was missed (skip 200)", rt.BusLost: "a bus was down or off",
		rt.SupervisorGone: "the supervisor has ended", rt.TimerFailed: "the timer failed",
		rt.Shutdown: "stopped by SIGTERM to the target process", rt.Done: "done",
	} {
		r.page.Reason.Store(uint64(reason))
		if why, clean := r.ended(); why != want || clean != reason.Clean() {
			t.Errorf("%q, clean %t; want %q", why, clean, want)
		}
	}
}

func TestAnEndingIsALine(t *testing.T) {
	e := Ending{Bench: "b\x1b", Ended: "stopped by ctl", Clean: true, Ticks: 600, Missed: 2, Time: 3}
	if got, want := e.String(), "b: stopped by ctl, after 3.000 s: 600 ticks, missed 2; clean"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Clean = false
	if got := e.String(); !strings.HasSuffix(got, "; NOT clean") {
		t.Errorf("%q", got)
	}
}
