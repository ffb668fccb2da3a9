package main

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/rt/control"
)

func TestWrongSoakCommandsAreRefusedInOneLine(t *testing.T) {
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"soak", "soak: 0 BENCH", 2},
		{"soak powershift-bench -for 9s", "soak: -for 9s: 10s", 2},
		{"soak powershift-bench -for 0s", `soak: "0s" -for: 0`, 2},
		{"soak powershift-bench -kernel /nosuch", "soak: -kernel /nosuch:", 2},
		{"soak nosuch.yaml", "nosuch.yaml,", 2},
		{"soak powershift-bench -load=maybe", `soak: "maybe" -load:`, 2},
		{"soak powershift-bench -report /nosuch/r.json", "soak: /nosuch/r.json.state.lock:", 2},
		{"soak powershift-bench -besteffort -bus lockstep9", "soak: 1: drive: lockstep9:", 3},
	} {
		out, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != c.code || out != "" || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: ") || !has(errors, strings.Fields(c.want)...) {
			t.Errorf("lockstep %s: code %d, out %q\ngot  %swant %d, %s", c.line, code, out, errors, c.code, c.want)
		}
	}
}

func TestInterruptedSoakFailsForItsDurationAndReports(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	s := begin(t, nil, "soak", patientBench(t), "-for", "10m", "-load=false", "-report", file)
	s.child("target")
	judged := func(v control.ListedRun) bool { return v.Supervisor == s.cmd.Process.Pid && v.Ticks > 300 } // fewer ticks give no verdict
	for end := time.Now().Add(time.Minute); !slices.ContainsFunc(ps(t), judged); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no 300 ticks within a minute")
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code := s.end()
	r := readReport(t, file)
	if code != 1 || r.Soak == nil || r.Soak.Pass || !has(r.Ended, "interrupt") {
		t.Fatalf("code %d, %s, verdict %+v\n%s", code, r.Ended, r.Soak, s.errors.String())
	}
	broken := map[string]bool{}
	for _, d := range r.Soak.Criteria {
		broken[d.What] = !d.Held
	}
	if !broken["ticks"] || broken["allocations"] || broken["frames out"] || broken["ledger"] {
		t.Errorf("broken: %v; want ticks, and not what a short run keeps, too", broken)
	}
	if !has(s.out.String(), "plain, ", "10m0s") || strings.Count(s.out.String(), "120000, 10m0s / 5 ms") != 1 {
		t.Errorf("standard output has not the leg, and once what is broken:\n%s", s.out.String())
	}
	if !has(s.errors.String(), "lockstep: soak: ticks: ", "120000, 10m0s / 5 ms") {
		t.Errorf("standard error: %s", s.errors.String())
	}
}
