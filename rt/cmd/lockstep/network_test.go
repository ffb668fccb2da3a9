package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lockstep/io/record/recordtest"
)

// suppliedBench writes a bench with an ignition and a supply that a script switches, and a scenario. The script adds its
// argument to the file "calls" and then does body.
func suppliedBench(t *testing.T, power, body, steps string) (file, scenario string) {
	t.Helper()
	file = patientBench(t, "\nbuses:", "\nnetwork: {start: run}\npower: {exec: ./supply.sh, timeout: 30 s"+power+"}\nbuses:")
	dir := filepath.Dir(file)
	scenario = filepath.Join(dir, "s.yaml")
	for name, text := range map[string]string{
		"supply.sh": "#!/bin/sh\necho $1 >> calls\n" + body,
		"s.yaml":    "scenario: supply\nfor: 1 s\nsteps: " + steps + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return file, scenario
}

func TestRunSwitchesIgnitionAndSupplyAndReplays(t *testing.T) {
	file, scenario := suppliedBench(t, "", "", "[{at: 200 ms, power: off}, {at: 250 ms, power: 9.5 V}, {at: 400 ms, ignition: off}, {at: 600 ms, ignition: run}]")
	dir := filepath.Dir(file)
	rec := filepath.Join(dir, "a.rec")
	s := begin(t, nil, "run", file, "-besteffort", "-scenario", scenario, "-record", rec)
	if code := s.end(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	calls, err := os.ReadFile(filepath.Join(dir, "calls"))
	if want := "on\noff\n9.5\n"; err != nil || string(calls) != want {
		t.Errorf("the supply was called with %q, %v; want %q", calls, err, want)
	}
	out, errs, code := lockstep(t, "replay", rec)
	if code != 0 || !strings.Contains(out, "identical") {
		t.Errorf("replay: exit code %d: %s%s", code, out, errs)
	}
	events := ""
	for _, e := range recordtest.Entries(t, rec) {
		events += e.Event.Text + "\n"
	}
	for _, want := range []string{"power off", "power 9.5 V: done by", "ignition off", "ignition run"} {
		if !strings.Contains(events, want) {
			t.Errorf("the record has no %q:\n%s", want, strings.TrimSpace(events))
		}
	}
}

func TestSupplyThatFailsIsReportedAndEndsTheRunWhereTheBenchSaysSo(t *testing.T) {
	const body = "[ $1 = on ] || { echo fuse blown >&2; exit 3; }\n"
	for power, want := range map[string]int{"": 0, ", on_failure: stop": 1} {
		file, scenario := suppliedBench(t, power, body, "[{at: 200 ms, power: off}]")
		s := begin(t, nil, "run", file, "-besteffort", "-for", "3s", "-scenario", scenario)
		code := s.end()
		text := s.out.String() + s.errors.String()
		if code != want || !strings.Contains(strings.Join(strings.Fields(text), " "), `exit status 3: "fuse blown"`) {
			t.Errorf("on_failure %q: exit code %d, want %d with the failure:\n%s", power, code, want, text)
		}
	}
	file, _ := suppliedBench(t, "", "echo no relay; exit 7\n", "[]")
	if _, errs, code := lockstep(t, "run", file, "-besteffort", "-for", "1s"); code != 3 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, `exit status 7: "no relay"`) {
		t.Errorf("a supply that cannot be switched on: exit code %d: %s", code, errs)
	}
}

// A supervisor that ends takes the switch of the supply with it. The next one makes what the run has commanded since.
func TestAttachedSupervisorBringsTheSupplyToTheStateOfTheRun(t *testing.T) {
	file, scenario := suppliedBench(t, "", "", "[{at: 100 ms, power: 9 V}, {at: 3 s, power: off}]")
	name := fmt.Sprintf("supplied-%d", os.Getpid())
	for f, replace := range map[string]*strings.Replacer{
		file:     strings.NewReplacer("bench: powershift-bench", "bench: "+name, "supervisor_gone: stop after 1 s", "supervisor_gone: continue"),
		scenario: strings.NewReplacer("for: 1 s\n", "for: 1000 s\n"),
	} {
		text, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(f, []byte(replace.Replace(string(text))), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	calls := func() []string {
		text, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "calls"))
		return strings.Fields(string(text))
	}
	s := begin(t, nil, "run", file, "-besteffort", "-scenario", scenario)
	s.running()
	target := s.child("target")
	defer syscall.Kill(target, syscall.SIGKILL)
	s.cmd.Process.Kill()
	s.end()
	before := calls()
	await(t, "3.1 s without a supervisor", func() bool {
		list := among(ps(t), name)
		return len(list) == 1 && list[0].Ticks > 620
	})
	if got := calls(); len(got) != len(before) {
		t.Fatalf("the supply was called with %q without a supervisor", got[len(before):])
	}
	again := begin(t, nil, "attach", name)
	again.running()
	await(t, "the supply is off", func() bool { return calls()[len(calls())-1] == "off" })
	if got := calls(); len(got) != len(before)+1 {
		t.Errorf("the supply was called with %q, then after attach with %q; want the last state once", before, got[len(before):])
	}
	lockstep(t, "stop", name)
	again.end()
}
