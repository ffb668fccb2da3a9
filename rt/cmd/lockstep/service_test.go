package main

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// serviceRestarts reports whether the service manager starts the service again after the end of its
// main process: systemd.service(5), Restart=on-failure without SuccessExitStatus=.
func serviceRestarts(t *testing.T, unit map[string]string, end syscall.WaitStatus) bool {
	t.Helper()
	if unit["Restart"] != "on-failure" || unit["SuccessExitStatus"] != "" || unit["RestartForceExitStatus"] != "" {
		t.Fatalf("the test does not know these settings: %v", unit)
	}
	name := strconv.Itoa(end.ExitStatus())
	if end.Signaled() {
		name = map[syscall.Signal]string{syscall.SIGABRT: "SIGABRT", syscall.SIGKILL: "SIGKILL"}[end.Signal()]
		if name == "" {
			t.Fatalf("ended by %v", end.Signal())
		}
	}
	return name != "0" && !slices.Contains(strings.Fields(unit["RestartPreventExitStatus"]), name)
}

func TestServiceRestartsARunThatCrashedAndNoneThatWasRefused(t *testing.T) {
	t.Parallel()
	unit := map[string]string{}
	f, err := os.Open("../../../deploy/root/usr/lib/systemd/system/lockstep@.service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), "="); ok && !strings.HasPrefix(key, "#") {
			unit[key] = value
		}
	}
	if unit["LimitCORE"] != "0" {
		t.Errorf("LimitCORE=%s: a crash would write the locked memory to the disk", unit["LimitCORE"])
	}

	bench := patientBench(t)
	kill := func(sig syscall.Signal) func(s *session) {
		return func(s *session) {
			s.running()
			if err := s.cmd.Process.Signal(sig); err != nil {
				t.Error(err)
			}
		}
	}
	for _, c := range []struct {
		name     string
		args     []string
		disturb  func(s *session) // nil: the run ends by itself
		restarts bool
	}{
		{"done", []string{bench, "-for", "200ms"}, nil, false},
		{"a wrong file", []string{"missing.yaml"}, nil, false},
		{"a missing interface", []string{bench, "-bus", "absent0"}, nil, false},
		{"killed", []string{bench}, kill(syscall.SIGKILL), true},
		{"a fault of memory", []string{bench}, kill(syscall.SIGSEGV), true},
		{"a fatal error of the runtime", []string{bench}, kill(syscall.SIGQUIT), true},
		{"the target dies", []string{bench}, func(s *session) { _ = syscall.Kill(s.child("target"), syscall.SIGKILL) }, true},
	} {
		s := begin(t, nil, append([]string{"run"}, c.args...)...)
		if c.disturb != nil {
			c.disturb(s)
		}
		<-s.over
		status := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
		if got := serviceRestarts(t, unit, status); got != c.restarts {
			t.Errorf("%s: %v, so the service starts again: %t, want %t", c.name, s.cmd.ProcessState, got, c.restarts)
		}
	}
}
