package faults

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// terminal opens a pseudoterminal. Text written to near is read from far.
func terminal(a *attempt) (far, near *os.File) {
	a.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		a.Fatal(err)
	}
	a.Cleanup(func() { far.Close() })
	n, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		a.Fatal(err)
	}
	near, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		a.Fatal(err)
	}
	return far, near
}

// fill writes to a file until the file accepts no more bytes.
func fill(a *attempt, f *os.File) {
	a.Helper()
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		a.Fatal(err)
	}
	total := 0
	for size := 4096; size > 0; {
		n, err := unix.Write(fd, make([]byte, size))
		if errors.Is(err, unix.EAGAIN) {
			size /= 2
		} else if err != nil {
			a.Fatal(err)
		}
		total += max(0, n)
	}
	if err := unix.SetNonblock(fd, false); err != nil || total == 0 {
		a.Fatalf("the file accepted %d bytes: %v", total, err)
	}
}

// stalled runs with a standard output that nobody reads until the end.
func stalled(a *attempt, far, near *os.File) {
	fill(a, near)
	m := newManager(a)
	s := a.run(plan{out: near, env: m.env()})
	near.Close()
	s.bus.ticking(200)
	m.await("READY=1", 1)
	m.await("WATCHDOG=1", 5)
	s.ctrlC()
	all := s.bus.end()
	m.await("STOPPING=1", 1)
	_, safe := s.bus.split(all)
	a.must(len(safe) == 0, "%d safe frames, want the silence of a planned end", len(safe))
	for until := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		if data, _ := os.ReadFile(s.report); json.Valid(data) {
			break
		} else if time.Now().After(until) {
			a.Fatalf("no report while the terminal is stalled: %q", data)
		}
	}
	r := s.read()
	a.must(r.Clean && r.Ended == "stopped by interrupt" && r.Ticks >= 200 && r.Usage != nil, "%s after %d ticks", r.Ended, r.Ticks)
	s.bus.counted(all, r)
	read := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(far) // a terminal ends with an error
		read <- string(b)
	}()
	s.ends(0, "")
	a.must(strings.Contains(<-read, "stopped by interrupt, after "), "no report on the terminal after the reader resumed")
}

func terminalStalled(a *attempt) {
	far, near := terminal(a)
	stalled(a, far, near)
}

func pipeFull(a *attempt) {
	far, near, err := os.Pipe()
	if err != nil {
		a.Fatal(err)
	}
	defer far.Close()
	stalled(a, far, near)
}

func pipeClosed(a *attempt) {
	far, near, err := os.Pipe()
	if err != nil {
		a.Fatal(err)
	}
	far.Close()
	s := a.run(plan{out: near, args: []string{"-for", "1500ms"}})
	near.Close()
	s.ends(0, "")
	all, r := s.bus.end(), s.read()
	a.must(r.Clean && r.Ticks == 300, "%s after %d ticks, want 300", r.Ended, r.Ticks)
	s.bus.counted(all, r)
}

func diskFull(a *attempt) {
	s := a.run(plan{args: []string{"-for", "1s", "-report", "/dev/full"}})
	s.ends(1, "run: report: write /dev/full: no space left on device")
	all := s.bus.end()
	before, safe := s.bus.split(all)
	a.must(len(before) > 0 && len(safe) == 0, "%d frames of the plant, %d safe ones", len(before), len(safe))
	s.awaitOutput("ticks            200 of 5 ms")
}

func reportToPipe(a *attempt) {
	s := a.run(plan{args: []string{"-for", "500ms", "-report", "/dev/stdout"}})
	s.ends(0, "")
	_, object, _ := strings.Cut(s.out.String(), "\n{\n")
	a.must(strings.Contains(object, "\n}\n"), "no report in standard output:\n%s", s.out.String())
}
