package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats/scalar"
)

func TestDemoShiftsAndEndsCleanWithoutOneAllocation(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	out, errors, code := lockstep(t, "run", patientBench(t), "-for=6s", "--report", file)
	if code != 0 || errors != "" {
		t.Fatalf("code %d, %s\n%s", code, errors, out)
	}
	r := readReport(t, file)
	if r.Ticks != 1200 || r.SimTime != 6 || r.StepNs != 5e6 || r.Missed > r.Ticks {
		t.Errorf("%d ticks, %d missed, %g s; want 1200 ticks of 5 ms", r.Ticks, r.Missed, r.SimTime)
	}
	if r.Usage == nil || r.Allocs != 0 || r.GCCycles != 0 || r.MinorFaults != 0 || r.MajorFaults != 0 {
		t.Errorf("allocations, collections, page faults: %+v; want none", r.Usage)
	}
	if !(r.LagMax > 0) || r.Lag != 0 {
		t.Errorf("largest lag %g s, at the end %g s; want > 0, and back at 0", r.LagMax, r.Lag)
	}
	// Single, double and triple swap: 12 clutches close or open, each with at least one transition.
	if r.Transitions < 12 || r.Events == 0 {
		t.Errorf("%d transitions at %d events; want three shifts", r.Transitions, r.Events)
	}
	if r.RxFrames == 0 || r.TxFrames == 0 || r.RxUnknown+r.RxShort+r.RxRange+r.RxOverflow != 0 {
		t.Errorf("frames: %+v", r)
	}
	if !(r.Late.P50 > 0 && r.Late.P50 <= r.Late.P99 && r.Late.P99 <= r.Late.P999 && r.Late.P999 <= r.Late.Max) {
		t.Errorf("lateness %+v is no distribution", r.Late)
	}
	if r.BestEffort != (len(r.BestEffortWhy) > 0) || !r.Clean || r.Plant != "powershift" {
		t.Errorf("best effort %v because %q, clean %v, plant %q", r.BestEffort, r.BestEffortWhy, r.Clean, r.Plant)
	}
	var lines []string
	for _, line := range strings.Split(out, "\n") {
		if !statusLine.MatchString(line) {
			continue
		}
		if lines = append(lines, line); len(line) > 79 {
			t.Errorf("a line of status has %d columns: %s", len(line), line)
		}
	}
	if len(lines) < 2 {
		t.Fatalf("%d lines of status in 6 s:\n%s", len(lines), out)
	}
	// A line with missed or late ticks, or with the end, has no room for the ratio: the speeds give it.
	last := lines[len(lines)-1]
	var engine, wheel float64
	if _, speeds, found := strings.Cut(last, " eng "); found {
		_, _ = fmt.Sscanf(speeds, "%g whl %g rpm", &engine, &wheel)
	}
	if !has(last, "[2 4 7]") || !scalar.EqualWithinRel(engine, -12*wheel, 0.02) {
		t.Errorf("the last line is %q, want gear [2 4 7] and ratio 12", last)
	}
	if r.LateTicks == 0 && r.Missed == 0 && !has(last, "ended") && !has(last, "12.00:1") {
		t.Errorf("no ratio in %q", last)
	}
	if !has(out, "1200 of 5 ms") {
		t.Errorf("no closing report:\n%s", out)
	}
}

// TestReportHasItsDocumentedKeys checks the keys that users rely on.
func TestReportHasItsDocumentedKeys(t *testing.T) {
	dir := t.TempDir()
	run, sim := filepath.Join(dir, "run.json"), filepath.Join(dir, "sim.json")
	if _, errors, code := lockstep(t, "run", patientBench(t), "-for", "100ms", "-report", run); code != 0 {
		t.Fatalf("run: code %d, %s", code, errors)
	}
	if _, errors, code := lockstep(t, "sim", "powershift", "-for", "100ms", "-report", sim); code != 0 {
		t.Fatalf("sim: code %d, %s", code, errors)
	}
	for _, file := range []string{run, sim} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var keys map[string]any
		if err := json.Unmarshal(data, &keys); err != nil {
			t.Fatal(err)
		}
		for _, key := range strings.Fields("plant step_ns ticks missed late_ns tick_ns events transitions lag_max_s allocs gc_cycles " +
			"page_faults_minor page_faults_major rx_frames tx_frames rx_unknown tx_dropped besteffort unserved still_s rx_bound rx_stale") {
			if _, ok := keys[key]; !ok {
				t.Errorf("%s has no key %q", file, key)
			}
		}
		for _, spread := range []string{"late_ns", "tick_ns"} {
			for _, key := range []string{"p50", "p99", "p999", "max"} {
				if _, ok := keys[spread].(map[string]any)[key]; !ok {
					t.Errorf("%s has no key %s.%s", file, spread, key)
				}
			}
		}
	}
}

// TestCtrlCEndsTheRunWithItsReport signals the whole process group, like a terminal.
func TestCtrlCEndsTheRunWithItsReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, nil, "run", patientBench(t), "-report", file)
	s.running()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code := s.end()
	r := readReport(t, file)
	if code != 0 || !r.Clean || r.Ticks == 0 || r.Usage == nil || !has(r.Ended, "interrupt") || !has(s.out.String(), r.Ended) {
		t.Errorf("code %d, report %+v, %s\n%s", code, r, s.errors.String(), s.out.String())
	}
}

func TestPlantContinuesWithTheLastCommandWhenTheUnitIsKilled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, nil, "run", patientBench(t), "-for", "3s", "-report", file)
	s.running() // within 1 s: the first shift begins at 0.5 s
	if err := syscall.Kill(s.child("ecu"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	code := s.end()
	r := readReport(t, file)
	if code != 1 || r.Ticks != 600 || r.Allocs != 0 {
		t.Errorf("code %d, %d ticks, %d allocations; want 1, 600, 0\n%s", code, r.Ticks, r.Allocs, s.errors.String())
	}
	if why := "control unit " + r.Unit; r.Clean || r.Ended != why || strings.Count(s.errors.String(), "\n") != 1 || !has(s.errors.String(), why) {
		t.Errorf("clean %t, ended %q, %s; want the end of the control unit in one line", r.Clean, r.Ended, s.errors.String())
	}
	if len(r.Silent) != 2 || !(r.Silent[0].For > 0.5) || !has(r.Unit, syscall.SIGKILL.String()) {
		t.Errorf("silent %+v, unit %q; want both pressure frames silent and the unit killed", r.Silent, r.Unit)
	}
	if len(r.Silent) == 2 && (r.Silent[0].Message != "TCU_Pressure_1" || r.Silent[1].Message != "TCU_Pressure_2") {
		t.Errorf("silent %+v", r.Silent)
	}
	said := regexp.MustCompile(`(?m)^ *\d+\.\d s .*TCU_Pressure_1 `)
	if !said.MatchString(s.out.String()) {
		t.Errorf("no line of status names the message that is silent:\n%s", s.out.String())
	}
}

func TestSupervisorReportsWhyTheTargetDied(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]string{
		syscall.SIGKILL: syscall.SIGKILL.String(),
		syscall.SIGABRT: "SIGABRT: abort", // the Go runtime aborts with a stack trace
	} {
		file := filepath.Join(t.TempDir(), "r.json")
		s := begin(t, nil, "run", patientBench(t), "-for", "20s", "-report", file)
		s.running()
		if err := syscall.Kill(s.child("target"), signal); err != nil {
			t.Fatal(err)
		}
		code := s.end()
		r := readReport(t, file)
		if code != 1 || r.Clean || r.Usage != nil || r.Ticks == 0 {
			t.Errorf("%v: code %d, report %+v; want 1, without counters the target could not give", signal, code, r)
		}
		got := s.errors.String()
		if !strings.HasPrefix(got, "lockstep: run: ") || !has(got, want) || !regexp.MustCompile(fmt.Sprintf(`\b%d\b`, r.Ticks)).MatchString(got) || strings.Count(got, "\n") != 1 {
			t.Errorf("%v: %q; want one line with %q and the last tick", signal, got, want)
		}
	}
}

func TestChildrenDieWithTheSupervisor(t *testing.T) {
	s := begin(t, nil, "run", patientBench(t))
	s.running()
	pids := []int{s.child("target"), s.child("ecu")}
	s.cmd.Process.Kill()
	s.end()
	for _, pid := range pids {
		await(t, "process "+itoa(pid)+" has ended after its supervisor", func() bool { return !alive(pid) })
	}
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// TestTargetThatHangsIsDetectedAndEnded stops the target and never continues it.
func TestTargetThatHangsIsDetectedAndEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, nil, "run", patientBench(t), "-for", "2s", "-report", file)
	s.running()
	if err := syscall.Kill(s.child("target"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	code := s.end()
	r := readReport(t, file)
	took := time.Since(before).Seconds()
	if code != 1 || r.Clean {
		t.Errorf("code %d, clean %t; want 1, false", code, r.Clean)
	}
	if r.Unserved == 0 || r.Ticks+r.Unserved != 400 || !(r.Still > 2 && r.Still < took+2) {
		t.Errorf("%d ticks, %d not served, stood still for %g s; want 400 together, more than 2 s, and no longer than since it was stopped, %g s", r.Ticks, r.Unserved, r.Still, took)
	}
	if still := regexp.MustCompile(`(?m)^ *\d+\.\d s .* 2\.\d s`); !still.MatchString(s.out.String()) || !has(s.out.String(), fmt.Sprintf("%.3f s", r.Still), fmt.Sprint(r.Unserved), r.Ended) {
		t.Errorf("the output does not say how long no tick came:\n%s", s.out.String())
	}
}

// TestControlUnitThatHangsIsReported stops the unit until the end.
func TestControlUnitThatHangsIsReported(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "r.json")
	s := begin(t, nil, "run", patientBench(t), "-for", "2s", "-report", file)
	s.running()
	pid := s.child("ecu")
	if name, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "comm")); err != nil || string(name) != "lockstep-ecu\n" {
		t.Errorf("the unit is called %q, %v; want lockstep-ecu", name, err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	code := s.end()
	if r := readReport(t, file); code != 0 || r.Unit != "powershift did not answer and was killed" || !r.Clean || alive(pid) {
		t.Errorf("code %d, unit %q; want 0 and that it did not answer", code, r.Unit)
	}
}

// TestClosedOutputDoesNotEndTheRun reads one line, like `lockstep run | head -1`.
func TestClosedOutputDoesNotEndTheRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.json")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", patientBench(t), "-for", "1500ms", "-report", file)
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if n, err := read.Read(make([]byte, 1)); n != 1 {
		t.Error(err)
	}
	read.Close()
	err = cmd.Wait()
	if r := readReport(t, file); err != nil || r.Ticks != 300 || !r.Clean {
		t.Errorf("%v after %d ticks, %q; want 300 and the report", err, r.Ticks, r.Ended)
	}
}

// TestEveryMissedTickIsCounted stops the target for 200 ms: 40 ticks of 5 ms.
func TestEveryMissedTickIsCounted(t *testing.T) {
	for _, policy := range []string{"skip 1000", "catchup 1000"} {
		s, file := interrupted(t, policy)
		code := s.end()
		r := readReport(t, file)
		if code != 0 || r.Ticks != 400 || r.Missed < 20 || r.Missed >= 400 || r.SimTime != 2 {
			t.Errorf("%s: code %d, %d ticks, %d missed, %g s; want 0, 400, about 40, 2", policy, code, r.Ticks, r.Missed, r.SimTime)
		}
		if lost := r.TxLost > 0; lost != (policy == "skip 1000") {
			t.Errorf("%s: %d frames of missed ticks not sent", policy, r.TxLost)
		}
	}
}

func TestBrokenPolicyEndsTheRunWithCode1(t *testing.T) {
	for _, policy := range []string{"stop", "skip 3"} {
		s, file := interrupted(t, policy)
		code := s.end()
		r := readReport(t, file)
		if code != 1 || r.Clean || r.Missed == 0 || r.Usage == nil || !strings.HasPrefix(s.errors.String(), "lockstep: run: "+r.Ended) || !has(r.Ended, "("+policy+")") {
			t.Errorf("%s: code %d, %d missed, %q, %s; want 1 and the policy", policy, code, r.Missed, r.Ended, s.errors.String())
		}
	}
}

// interrupted starts a run of 2 s and stops its target for 200 ms. A busy machine may end the run
// before.
func interrupted(t *testing.T, policy string) (s *session, report string) {
	t.Helper()
	report = filepath.Join(t.TempDir(), "r.json")
	s = begin(t, nil, "run", patientBench(t, "overrun: skip 200", "overrun: "+policy), "-for", "2s", "-report", report)
	select {
	case <-s.seen: // the first status line comes after 1 s
	case <-s.over:
	}
	if pid := s.find("target"); pid != 0 {
		syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(200 * time.Millisecond)
		syscall.Kill(pid, syscall.SIGCONT)
	}
	return s, report
}

// TestUnknownUnitOfABenchIsRefused uses check and run.
func TestUnknownUnitOfABenchIsRefused(t *testing.T) {
	file := patientBench(t, "control_unit: powershift", "control_unit: nonsense")
	for _, command := range []string{"check", "run"} {
		out, errors, code := lockstep(t, command, file)
		if code != 2 || out != "" || strings.Count(errors, "\n") != 1 || !has(errors, "lockstep: "+file+":", `"nonsense"`, "powershift") {
			t.Errorf("%s: code %d, %q, %q", command, code, out, errors)
		}
	}
}

// TestInputsThatNoBusDrivesAreAnnounced removes one of the eight pressures from the bus.
func TestInputsThatNoBusDrivesAreAnnounced(t *testing.T) {
	file := patientBench(t, "      - TCU_Pressure_2.pressure_C8 -> clutch8.pressure\n", "")
	out, errors, code := lockstep(t, "run", file, "-for", "100ms")
	if code != 0 || strings.Count(out, "clutch8.pressure") != 1 || has(out, "clutch7.pressure") {
		t.Errorf("code %d, %s\n%s", code, errors, out)
	}
}
