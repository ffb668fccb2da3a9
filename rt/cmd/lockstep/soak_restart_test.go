package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// soakGoing returns the running segment of a soak and its tick from the state file; 0: none.
func soakGoing(state string) (number int, ticks int64) {
	var f struct {
		State struct {
			Going struct {
				Leg   int
				Ticks int64
			}
		}
	}
	data, err := os.ReadFile(state)
	if err != nil || json.Unmarshal(data, &f) != nil {
		return 0, 0
	}
	return f.State.Going.Leg, f.State.Going.Ticks
}

// The soak is killed in its second segment and started again by the same command.
func TestSoakResumesAfterAKillAndAddsUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	report, state := filepath.Join(dir, "report.json"), filepath.Join(dir, "report.json.state")
	args := []string{"soak", patientBench(t), "-for", "32s", "-leg", "10s", "-scenarios", "none", "-load=false", "-report", report, "-record", filepath.Join(dir, "records"), "-keep", "1"}
	s := begin(t, nil, args...)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if number, _ := soakGoing(state); number == 2 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no second leg within a minute")
		}
	}
	time.Sleep(2 * time.Second)
	target := s.child("target")
	s.cmd.Process.Kill()
	<-s.over

	second := begin(t, nil, args...)
	second.child("target")
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", target)); text != nil && !strings.Contains(string(text), ") Z ") {
		t.Error("the target of the leg that was cut is still there beside the new one")
	}
	if out, errors, code := lockstep(t, args...); code != 3 || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: soak: ", state+": ", strconv.Itoa(second.cmd.Process.Pid)) || out != "" {
		t.Errorf("a third one: code %d, out %q, %s", code, out, errors)
	}
	code := second.end()
	r := readReport(t, report)
	if r.Soak == nil || r.Soak.Segments == nil {
		t.Fatalf("no verdict: %+v", r)
	}
	if l := r.Soak.Segments; r.Ticks != 6400 || l.Done != 3 || l.Cut != 1 || l.Starts != 2 || !(l.Missing > 0 && l.Missing < 60) || len(l.Binaries) != 1 {
		t.Errorf("%d ticks, %+v; want 6400 of 3 legs, one cut, 2 starts", r.Ticks, l)
	}
	if k := r.Soak.Kinds; len(k) != 2 || k[0].Kind != "plain" || k[0].Segments != 2 || k[1].Kind != "faults" || k[1].Segments != 1 || k[1].Cut != 1 || k[1].Faults != 53 || k[0].Ticks+k[1].Ticks != 6400 {
		t.Errorf("kinds %+v", k)
	}
	for _, d := range r.Soak.Criteria {
		if !d.Held && (d.What == "ticks" || d.What == "ledger" || d.What == "faults" || d.What == "end") {
			t.Errorf("%+v", d)
		}
	}
	if (code == 0) != r.Soak.Pass || code > 1 {
		t.Errorf("code %d, pass %t", code, r.Soak.Pass)
	}
	if !has(second.out.String(), "10.0 s", "32s", "leg 2, faults, ") {
		t.Error("standard output does not say after what it goes on, and which leg was cut")
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "records", "*")); len(list) < 1 || len(list) > 2 {
		t.Errorf("records %q, want the latest one, and one of a broken leg", list)
	}
	third, _, again := lockstep(t, args...) // the soak is complete: the verdict again
	if after := readReport(t, report); again != code || after.Soak.Starts != 2 || after.Ticks != 6400 || strings.Contains(third, "leg 4") {
		t.Errorf("started when done: code %d, %d starts, %d ticks\n%s", again, after.Soak.Starts, after.Ticks, third)
	}
}

func TestSoakResumesForALongerDurationButNotForAnotherBenchOrOptions(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), patientBench(t)
	report, state := filepath.Join(dir, "report.json"), filepath.Join(dir, "state")
	args := func(more ...string) []string {
		return append([]string{"soak", file, "-leg", "10s", "-scenarios", "none", "-faults=false", "-load=false", "-report", report, "-state", state}, more...)
	}
	lockstep(t, args("-for", "10s")...)
	before, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want string, more ...string) {
		t.Helper()
		_, errors, code := lockstep(t, args(append(more, "-for", "20s")...)...)
		now, _ := os.ReadFile(state)
		if code != 2 || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: soak: ", state+": ", "-fresh") || !has(errors, strings.Fields(want)...) || string(now) != string(before) {
			t.Errorf("code %d, %swant %s", code, errors, want)
		}
	}
	refused("10s, 11s,", "-leg", "11s")
	refused("false true", "-besteffort")
	changed := strings.Replace(string(text), "priority: 80", "priority: 79", 1)
	if err := os.WriteFile(file, []byte(changed), 0o666); err != nil {
		t.Fatal(err)
	}
	refused("powershift-bench,")
	if err := os.WriteFile(file, text, 0o666); err != nil {
		t.Fatal(err)
	}
	longer := begin(t, nil, args("-for", "20s")...)
	longer.child("target")
	if r := readReport(t, report); r.Ticks != 2000 || r.Soak.Done != 1 {
		t.Errorf("while it goes on the report has %d ticks of %d legs, want those of before", r.Ticks, r.Soak.Done)
	}
	longer.end()
	if r := readReport(t, report); r.Ticks != 4000 || r.Soak.Done != 2 || r.Soak.Starts != 2 {
		t.Errorf("%d ticks, %+v, want 4000 of 2 legs and starts", r.Ticks, r.Soak.Segments)
	}
	if err := os.WriteFile(state, []byte("no state"), 0o666); err != nil {
		t.Fatal(err)
	}
	lockstep(t, args("-for", "10s", "-fresh")...)
	if r := readReport(t, report); r.Ticks != 2000 || r.Soak.Done != 1 || r.Soak.Starts != 1 {
		t.Errorf("fresh: %d ticks, %+v", r.Ticks, r.Soak.Segments)
	}
}
