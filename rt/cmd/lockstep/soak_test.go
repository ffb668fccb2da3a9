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

func TestWrongSoaksAreRefusedInOneLine(t *testing.T) {
	for _, c := range []struct {
		line, want string
		code       int
	}{
		{"soak", "soak: 0 names given; usage: lockstep soak BENCH", 2},
		{"soak powershift-bench -for 9s", "soak: -for 9s: at least 10s are needed to see what grows", 2},
		{"soak powershift-bench -for 0s", `soak: invalid value "0s" for flag -for: it must be more than 0`, 2},
		{"soak powershift-bench -kernel /nosuch", "soak: -kernel /nosuch: ", 2},
		{"soak nosuch.yaml", "bench: no file nosuch.yaml", 2},
		{"soak powershift-bench -load=maybe", `soak: invalid boolean value "maybe" for -load`, 2},
		{"soak powershift-bench -report /nosuch/r.json", "soak: state: open /nosuch/r.json.state.lock", 2},
		{"soak powershift-bench -besteffort -bus lockstep9", "soak: leg 1: bus drive: can: dial lockstep9", 3},
	} {
		out, errors, code := lockstep(t, strings.Fields(c.line)...)
		if code != c.code || out != "" || strings.Count(errors, "\n") != 1 || !strings.HasPrefix(errors, "lockstep: "+c.want) {
			t.Errorf("lockstep %s: code %d, out %q\ngot  %swant %d, lockstep: %s...", c.line, code, out, errors, c.code, c.want)
		}
	}
}

func TestSoakThatIsInterruptedFailsForItsLengthAndReports(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.json")
	s := begin(t, nil, "soak", patientBench(t), "-for", "10m", "-load=false", "-report", file)
	s.child("target")
	judged := func(v control.Listed) bool { return v.Supervisor == s.cmd.Process.Pid && v.Ticks > 300 } // of less nothing is said
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
	if code != 1 || r.Soak == nil || r.Soak.Pass || r.Ended != "stopped by interrupt" {
		t.Fatalf("code %d, %s, verdict %+v\n%s", code, r.Ended, r.Soak, s.errors.String())
	}
	broken := map[string]bool{}
	for _, d := range r.Soak.Demands {
		broken[d.What] = !d.Held
	}
	if !broken["ticks"] || broken["allocations"] || broken["frames out"] || broken["ledger"] {
		t.Errorf("broken: %v; want ticks, and not what a short run keeps, too", broken)
	}
	for _, want := range []string{"leg 1, plain, for 10m0s; load: none\n", "  soak FAILED; load: none\n", "\n  FAILED ticks               demanded 120000, 10m0s / 5 ms\n"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("standard output does not say %q:\n%s", want, s.out.String())
		}
	}
	if want := "lockstep: soak: ticks: demanded 120000, 10m0s / 5 ms; seen "; !strings.Contains(s.errors.String(), want) {
		t.Errorf("standard error does not say %q:\n%s", want, s.errors.String())
	}
}
