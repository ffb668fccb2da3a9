package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestLatencyPrintsAndWritesItsMeasurement(t *testing.T) {
	dir := t.TempDir()
	report, svg := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.svg")
	out, errs, code := lockstep(t, "latency", "-for", "1s", "-report", report, "--svg", svg)
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"nanosleep_supervised", "\ntimer: ", report, svg} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Tickers        map[string]map[string]any
		Representative *bool
		Reasons        []string
		Idle           struct{ Tickers map[string]any }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"timerfd", "nanosleep"} {
		for _, key := range []string{"p50_ns", "p99_ns", "p999_ns", "max_ns", "missed", "samples", "ratio_p50", "ratio_p99"} {
			if _, there := r.Tickers[name][key]; !there {
				t.Errorf("tickers.%s has no %s", name, key)
			}
		}
		if r.Idle.Tickers[name] == nil {
			t.Errorf("idle has no %s", name)
		}
	}
	if r.Representative == nil || *r.Representative || len(r.Reasons) == 0 {
		t.Errorf("representative %v, reasons %q of a second's measurement", r.Representative, r.Reasons)
	}
	f, err := os.Open(svg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLatencyWritesNoFileUnlessAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, errs, code := lockstep(t, "latency", "-for", "500ms", "-load=false"); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if list, _ := os.ReadDir("."); len(list) != 0 {
		t.Errorf("it left %v", list)
	}
}

func TestWrongLatencyCommandsAreRefusedInOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"-period", "2s"}, {"-priority", "100"}, {"-cpu", "-2"}, {"-cpu", "8000"}, {"-for", "10ms"}, {"now"}, {"-reprt", "x"},
	} {
		_, errs, code := lockstep(t, append([]string{"latency"}, args...)...)
		says := args[len(args)-1]
		switch args[0] {
		case "now":
			says = "" // wrong number of arguments: package main refuses
		case "-reprt":
			says = "-report"
		}
		if code != 2 || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, says) {
			t.Errorf("latency %q: exit code %d: %s", args, code, errs)
		}
	}
	if _, errs, code := lockstep(t, "latency", "-for", "500ms", "-load=false", "-svg", "/nonexistent/x.svg"); code != 2 || !strings.Contains(errs, "/nonexistent") {
		t.Errorf("a file that cannot be written: exit code %d: %s", code, errs)
	}
}

// However the measurement ends, no measuring or loading process and no empty file remains.
func TestLatencyLeavesNothingBehind(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		s := begin(t, nil, "latency", "-for", "6s")
		for deadline := time.Now().Add(patience); len(loads(s.cmd.Process.Pid)) < 4; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the load does not begin")
			}
		}
		children := loads(s.cmd.Process.Pid)
		if err := s.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := s.end(); sig != syscall.SIGKILL && (code != 1 || !strings.Contains(s.errors.String(), "interrupted")) {
			t.Errorf("%v: exit code %d: %s", sig, code, s.errors.String())
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			left := 0
			for _, pid := range children {
				if line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); len(line) > 0 {
					left++
				}
			}
			if left == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%v: %d of %v are still there", sig, left, children)
			}
		}
		for _, dir := range []string{".", os.Getenv("TMPDIR")} {
			if list, _ := os.ReadDir(dir); len(list) != 0 && sig != syscall.SIGKILL {
				t.Errorf("%v: it left %v", sig, list)
			}
		}
	}
}

// loads returns the load processes, children of parent.
func loads(parent int) (pids []int) {
	list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range list {
		args, _ := os.ReadFile(file)
		stat, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		_, after, _ := strings.Cut(string(stat), ") ")
		f := strings.Fields(after) // state, parent, ...
		if len(f) > 1 && f[1] == strconv.Itoa(parent) && strings.HasPrefix(string(args), "lockstep\x00latency\x00load\x00") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}
