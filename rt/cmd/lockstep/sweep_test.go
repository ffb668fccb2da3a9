package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// swept returns a folder with a plant and a sweep of so many cases.
func swept(t *testing.T, cases int, length string) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "turn.yaml")
	for name, text := range map[string]string{
		file: fmt.Sprintf(`sweep: turn
plant: wheel.yaml
for: %s
parameters:
  J: {of: wheel.J, from: 1 kg.m2, to: 2 kg.m2, steps: %d}
results:
  phi: {final: phi}
`, length, cases),
		filepath.Join(dir, "wheel.yaml"): `plant: wheel
elements:
  wheel: {type: inertia, J: 1 kg.m2}
  push: {type: torque, flange: wheel, tau: 3 N.m}
outputs:
  phi: {angle: wheel}
`} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir, file
}

// table merges a folder and returns the table as CSV.
func table(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(dir, "table.csv")
	if _, errors, code := lockstep(t, "sweep", "-merge", dir, "-o", out); code != 0 {
		t.Fatalf("code %d, %s", code, errors)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAKilledSweepResumesWithoutLosingRows(t *testing.T) {
	t.Parallel()
	dir, file := swept(t, 60, "60 s")
	whole, broken := filepath.Join(dir, "whole"), filepath.Join(dir, "broken")
	if out, errors, code := lockstep(t, "sweep", file, "-o", whole); code != 0 || !has(out, "turn: 60 ") {
		t.Fatalf("code %d, %s%s", code, out, errors)
	}
	started := regexp.MustCompile(`(?m)^turn: \D*(\d+) of 60 cases$`)
	before := 0
	for kills := 0; ; kills++ {
		s := begin(t, nil, "sweep", file, "-o", broken, "-j", "1")
		journal := func() (size int64) {
			list, _ := filepath.Glob(filepath.Join(broken, "*.partial"))
			if len(list) == 1 {
				if info, err := os.Stat(list[0]); err == nil {
					size = info.Size()
				}
			}
			return size
		}
		was := journal()
		for kills < 3 && journal() <= was+200 { // some rows
			select {
			case <-s.over:
				t.Fatalf("it was over before it could be killed: %s%s", &s.out, &s.errors)
			case <-time.After(time.Millisecond):
			}
		}
		if kills < 2 {
			s.cmd.Process.Kill()
			<-s.over
		} else if kills == 2 {
			s.cmd.Process.Signal(syscall.SIGTERM)
			if code := s.end(); code != 1 || !has(last(s.errors.String()), "lockstep: sweep: ", syscall.SIGTERM.String()) {
				t.Fatalf("code %d after SIGTERM, %s", code, &s.errors)
			}
		} else if code := s.end(); code != 0 {
			t.Fatalf("code %d, %s", code, &s.errors)
		}
		if m := started.FindStringSubmatch(s.errors.String()); kills > 0 {
			done := 0
			if m != nil {
				fmt.Sscan(m[1], &done)
			}
			if done <= before {
				t.Fatalf("after %d kills it continues after %d cases, before after %d", kills, done, before)
			}
			before = done
		}
		if kills == 3 {
			break
		}
	}
	if a, b := table(t, whole), table(t, broken); a != b {
		t.Error("the table of a sweep that was killed is another one")
	}
	if list, _ := filepath.Glob(filepath.Join(broken, "*.partial")); len(list) > 0 {
		t.Errorf("left behind: %v", list)
	}
}

func TestASecondProcessOnTheSameShardIsRefused(t *testing.T) {
	dir, file := swept(t, 40, "2000 s")
	s := begin(t, nil, "sweep", file, "-o", dir, "-j", "1")
	await(t, "the shard's file is locked", func() bool {
		list, _ := filepath.Glob(filepath.Join(dir, "*.partial"))
		return len(list) == 1 && locked(t, list[0])
	})
	_, errors, code := lockstep(t, "sweep", file, "-o", dir)
	if code != 3 || !has(last(errors), "lockstep: sweep: ", dir, "-shard") {
		t.Errorf("code %d, %s", code, errors)
	}
	s.cmd.Process.Kill()
}

// The test runs the command of the Kubernetes file for each index of its job.
func TestTheShardsOfTheKubernetesJobMakeTheCompleteTable(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/kubernetes/sweep-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindSubmatch(text)
		if m == nil {
			t.Fatalf("sweep-job.yaml has no %s", pattern)
		}
		return string(m[1])
	}
	words := strings.Split(strings.ReplaceAll(find(`command: \[lockstep, (.*)\]`), `"`, ""), ", ")
	var indices int
	fmt.Sscan(find(`completions: (\d+)`), &indices)
	dir, file := swept(t, 20, "1 s")
	for i, w := range words {
		words[i] = strings.NewReplacer("/etc/sweep/sweep.yaml", file, "/sweep", filepath.Join(dir, "out")).Replace(w)
	}
	for i := range indices {
		cmd := exec.Command(program, words...)
		cmd.Env = append(os.Environ(), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i))
		if out, err := cmd.CombinedOutput(); err != nil || !has(string(out), fmt.Sprintf("%d of %d", i, indices), "JOB_COMPLETION_INDEX") {
			t.Fatalf("index %d: %v, %s", i, err, out)
		}
	}
	if _, errors, code := lockstep(t, "sweep", file, "-o", filepath.Join(dir, "one")); code != 0 {
		t.Fatal(errors)
	}
	if a, b := table(t, filepath.Join(dir, "out")), table(t, filepath.Join(dir, "one")); a != b {
		t.Error("the table of the shards is not that of the whole")
	}
}

func TestASweepOnAFullDiskResumesAfterSpaceIsFreed(t *testing.T) {
	dir, file := swept(t, 300, "100 ms")
	script := `set -u
mkdir disk && mount -t tmpfs -o size=8k none disk || exit 99
"$1" sweep "$2" -o disk; echo "code $?"
mount -o remount,size=1m disk
"$1" sweep "$2" -o disk; echo "code $?"
cp disk/*.parquet .; umount disk`
	cmd := exec.Command("unshare", "--map-root-user", "--mount", "bash", "-c", script, "bash", program, file)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && bytes.Contains(out, []byte("unshare")) || cmd.ProcessState.ExitCode() == 99 {
		t.Skipf("no mounts of its own for a process here: %s", out)
	}
	for _, want := range []string{syscall.ENOSPC.Error(), "\ncode 3\n", " of 300", "\ncode 0\n"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("not said: %q in %s", want, out)
		}
	}
	if n := strings.Count(table(t, dir), "\n"); n != 301 {
		t.Errorf("%d lines in the table, want 301", n)
	}
}

// A sweep may have failed cases; if all cases fail, the sweep is wrong. One shard cannot decide
// this: the other shards and the table are still written.
func TestASweepInWhichEveryCaseFailedIsExitCode1(t *testing.T) {
	dir, file := swept(t, 4, "1 s")
	vary := func(from, to string) {
		text, err := os.ReadFile(file)
		if err == nil {
			text = regexp.MustCompile(`from: .*, to: .*, steps`).ReplaceAll(text, []byte("from: "+from+" kg.m2, to: "+to+" kg.m2, steps"))
			err = os.WriteFile(file, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all := regexp.MustCompile(`^lockstep: sweep: .*\b4\b.*\b0: .*wheel\.yaml:\d+:\d+: .*"wheel": .*-4 kg\.m2.*\n$`)
	vary("-4", "-1")
	for _, args := range [][]string{{"-o", filepath.Join(dir, "one")}, {"-o", filepath.Join(dir, "one")}, {"-merge", filepath.Join(dir, "one"), "-o", filepath.Join(dir, "one.csv")}} {
		if out, errors, code := lockstep(t, append([]string{"sweep", file}, args...)...); code != 1 || !all.MatchString(last(errors)) {
			t.Errorf("%q: code %d, %s%s", args, code, out, errors)
		}
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "one.csv")); bytes.Count(text, []byte("\n")) != 5 || bytes.Count(text, []byte("wheel.yaml:")) != 4 {
		t.Errorf("the table is %s", text)
	}
	for _, shard := range []string{"0/2", "1/2"} {
		if _, errors, code := lockstep(t, "sweep", file, "-o", filepath.Join(dir, "two"), "-shard", shard); code != 0 {
			t.Errorf("shard %s: code %d, %s", shard, code, errors)
		}
	}
	vary("-3", "6") // J -3, 0, 3, 6
	if out, errors, code := lockstep(t, "sweep", file, "-o", filepath.Join(dir, "some")); code != 0 {
		t.Errorf("some: code %d, %s%s", code, out, errors)
	}
	if text := table(t, filepath.Join(dir, "some")); strings.Count(text, "\n") != 5 || strings.Count(text, "wheel.yaml:") != 2 {
		t.Errorf("some: the table is %s", text)
	}
}

// last returns the last line of a text.
func last(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1] + "\n"
}

// Slurm runs the command of the table with sh, in any locale; every word must arrive unchanged.
func TestTheSlurmScriptAcceptsAnyPath(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sbatch": `#!/bin/sh
for a; do case $a in --wrap=*) LC_ALL=C sh -c "${a#--wrap=}" >"$SEEN";; esac; done
echo 7`,
		"show": `#!/bin/sh
printf '<%s>' "$@"`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	seen := filepath.Join(dir, "seen")
	c := exec.Command("bash", "../../../deploy/slurm/sweep.sbatch", "Gänge/it's $x.yaml", "out \u2192", "4")
	c.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "LC_ALL=C", "LOCKSTEP=" + filepath.Join(dir, "show"), "SEEN=" + seen}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, _ := os.ReadFile(seen); string(text) != "<sweep><Gänge/it's $x.yaml><-merge><out \u2192><-o><out \u2192/table.parquet>" {
		t.Errorf("the job that merges gets %s", text)
	}
}

func TestWrongSweepCommandsEndWithOneLine(t *testing.T) {
	_, file := swept(t, 3, "1 s")
	for _, c := range []struct {
		args []string
		env  string
		want string
	}{
		{[]string{}, "", "sweep: usage:"},
		{[]string{file, "-shard", "3/3"}, "", "sweep: 3 N-1,"},
		{[]string{file, "-shard", "x/3"}, "", "sweep: x 3: N-1,"},
		{[]string{file, "-shard", "3"}, "", "sweep: 3: 0/3,"},
		{[]string{file, "-j", "0"}, "", "sweep: -j"},
		{[]string{file}, "JOB_COMPLETION_INDEX=1", "sweep: JOB_COMPLETION_INDEX=1: (-shard"},
		{[]string{file}, "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_COUNT=2", "sweep: --array=0-N SLURM_ARRAY_TASK_MIN=3, SLURM_ARRAY_TASK_MAX=7,"},
		{[]string{"-merge", "."}, "", "sweep: -merge -o"},
		{[]string{file, "-si"}, "", "sweep: -si -merge"},
		{[]string{"-merge", ".", "-o", "x.xls"}, "", "sweep: x.xls: .parquet .csv"},
		{[]string{"powershift"}, "", "sweep: powershift plant (sweep: NAME)"},
		{[]string{"automatic4-romps"}, "", "automatic4-romps, automatic4-ramps?)"},
	} {
		cmd := exec.Command(program, append([]string{"sweep"}, c.args...)...)
		cmd.Env = append(os.Environ(), strings.Fields(c.env)...)
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 2 || !has(string(out), strings.Fields(c.want)...) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%v %s: code %d, %s, want %s", c.args, c.env, code, out, c.want)
		}
	}
	cmd := exec.Command(program, "sweep", file, "-o", t.TempDir())
	cmd.Env = append(os.Environ(), "SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_MIN=0", "SLURM_ARRAY_TASK_MAX=1", "SLURM_ARRAY_TASK_COUNT=2")
	if out, err := cmd.CombinedOutput(); err != nil || !has(string(out), "1 of 2", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT") {
		t.Errorf("%v, %s", err, out)
	}
}

// locked reports whether a process holds a lock on a file: proc_locks(5).
func locked(t *testing.T, file string) bool {
	t.Helper()
	var s unix.Stat_t
	if err := unix.Stat(file, &s); err != nil {
		return false
	}
	list, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(list), fmt.Sprintf(":%d ", s.Ino))
}
