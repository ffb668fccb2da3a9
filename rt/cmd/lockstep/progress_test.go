package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// onTerminal runs the command with its standard error on a terminal of 44 columns and its standard output in a
// buffer. Once the terminal shows want, Ctrl-C is typed there. It returns what the terminal shows in all.
func onTerminal(t *testing.T, want string, args ...string) (shown, out string, state *os.ProcessState) {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	n, err := unix.IoctlGetInt(int(far.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(far.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	near, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(near.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 44}); err != nil {
		t.Fatal(err)
	}
	var result bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stderr, cmd.Stdout = near, near, &result
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	near.Close()
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer kill.Stop()
	typed := false
	for b := make([]byte, 4096); ; {
		n, err := far.Read(b)
		shown += string(b[:n])
		if err != nil { // EIO: the command has ended
			break
		}
		if !typed && strings.Contains(shown, want) {
			typed = true
			if _, err := far.WriteString("\x03"); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // its state is returned
	if !typed {
		t.Errorf("%q: the terminal does not show %q, but %q", args, want, shown)
	}
	return shown, result.String(), cmd.ProcessState
}

// Each command is interrupted while its line stands on the terminal: the line is cleared before anything else is
// printed, and the shell learns of the signal from a command that does not handle it.
func TestProgressLineGivesWayToResultsAndErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct {
		want string // shown when Ctrl-C is typed
		args []string
		out  string // begin of the standard output, if there is any
		code int    // -1: ended by the signal
	}{
		{" of 5000000.0 s", []string{"sim", "powershift", "-for", "5000000s"}, "powershift: stopped by interrupt", 0},
		{"check: ", []string{"check", "powershift"}, "powershift.yaml: plant", -1},
		{"gen: ", []string{"gen", "train20", "-o", filepath.Join(dir, "gen")}, "", -1},
	} {
		shown, out, state := onTerminal(t, c.want, c.args...)
		line, rest, _ := strings.Cut(shown, "^C")
		if i := strings.LastIndex(shown, "\r\x1b[K"); i < 0 || strings.TrimSpace(shown[i:]) != "\x1b[K" && strings.TrimSpace(rest) != "" {
			t.Errorf("%q: the line is not cleared at last: after Ctrl-C the terminal shows %q", c.args, rest)
		}
		for _, drawn := range strings.Split(line, "\r") {
			if drawn = strings.TrimSuffix(drawn, "\x1b[K"); utf8.RuneCountInString(drawn) > 43 || strings.Contains(drawn, "\n") {
				t.Errorf("%q: the terminal of 44 columns gets %q", c.args, drawn)
			}
		}
		if out != "" && !strings.HasPrefix(out, c.out) || c.code == 0 && out == "" || strings.Contains(out, "\x1b") || strings.Contains(out, "left") {
			t.Errorf("%q: the standard output is %.300q", c.args, out)
		}
		if status := state.Sys().(syscall.WaitStatus); state.ExitCode() != c.code || c.code < 0 && status.Signal() != syscall.SIGINT {
			t.Errorf("%q: %v, want code %d", c.args, state, c.code)
		}
	}
}

// A log gets nothing of a command of a few seconds.
func TestShortWorkLeavesNothingInALog(t *testing.T) {
	t.Parallel()
	_, errs, code := lockstep(t, "sim", "powershift", "-for", "2000s")
	if code != 0 || errs != "" {
		t.Errorf("code %d, %q", code, errs)
	}
}
