package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lockstep/rt"
)

func TestProcessesNeedProc(t *testing.T) {
	root := t.TempDir()
	if _, err := executablePath(root); err == nil || !strings.Contains(err.Error(), "mount -t proc proc /proc") {
		t.Errorf("without /proc: %v, want the command that helps", err)
	}
	if exe, err := executablePath("/"); err != nil || exe != "/proc/self/exe" {
		t.Errorf("%s, %v", exe, err)
	}
}

func TestCaptureKeepsTheBeginningAndTheEnd(t *testing.T) {
	var c Capture
	for i := range 20_000 {
		fmt.Fprintf(&c, "line %d\n", i)
	}
	if got := c.LastLine(); got != "line 19999" {
		t.Errorf("the last line is %q", got)
	}
	if got := c.Reason(); got != "line 0" || len(c.Bytes()) != captureHead+captureTail {
		t.Errorf("the first line is %q, of %d bytes", got, len(c.Bytes()))
	}
	c = Capture{}
	c.Write(bytes.Repeat([]byte("x"), 2*captureHead))
	c.Write([]byte("\nlast\n"))
	if got := c.LastLine(); got != "last" || len(c.Bytes()) != captureHead+captureTail {
		t.Errorf("the last line is %q, of %d bytes", got, len(c.Bytes()))
	}
}

// sleeper starts a process and opens it like one that another process started.
func sleeper(t *testing.T) *Process {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := OpenProcess(cmd.Process.Pid, 0)
	if err != nil {
		t.Skip("this kernel has no pidfd: ", err)
	}
	return p
}

func TestStartTimeOfAProcessIsReadBehindItsName(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/7"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint32{
		"7 (a) S 1 (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4294967301 20 " + strings.Repeat("0 ", 19) + "\n": 5, // modulo 2^32
		"7 (a": 0, "": 0,
	} {
		if err := os.WriteFile(filepath.Join(root, "proc/7/stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := StartTime(root, 7); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := StartTime(root, 8); got != 0 {
		t.Errorf("of none: %d", got)
	}
}

// The kernel reuses process ids: the start time tells the processes apart.
func TestProcessThatReusesAnIDIsAnotherProcess(t *testing.T) {
	p := sleeper(t)
	if p.Since == 0 || p.Since != StartTime("/", p.PID) {
		t.Fatalf("it began at %d", p.Since)
	}
	for _, c := range []struct {
		who   uint64
		alive bool
	}{
		{rt.Identity(p.PID, p.Since), true},
		{rt.Identity(p.PID, p.Since-1), false},
		{rt.Identity(p.PID, 0), true}, // start time not known
		{rt.Identity(0, 0), false},
	} {
		if Alive(c.who) != c.alive {
			t.Errorf("%x: alive is not %t", c.who, c.alive)
		}
	}
	if other, err := OpenProcess(p.PID, p.Since-1); err == nil || err.Error() != "the process has ended" {
		t.Errorf("taken for another one: %+v, %v", other, err)
	}
}

func TestProcessIsNotEndedBecauseASignalInterruptsTheWait(t *testing.T) {
	defer func() { poll = unix.Poll }()
	interrupted := 0
	poll = func(fds []unix.PollFd, timeout int) (int, error) {
		if interrupted++; interrupted < 3 {
			return -1, unix.EINTR
		}
		return unix.Poll(fds, timeout)
	}
	p := sleeper(t)
	if p.WaitEnded(10 * time.Millisecond) {
		t.Error("a process that sleeps has ended")
	}
	interrupted = 0
	go func() {
		time.Sleep(20 * time.Millisecond)
		p.Kill()
	}()
	if !p.WaitEnded(time.Minute) || interrupted < 3 {
		t.Errorf("a killed process has not ended, %d waits", interrupted)
	}
}
