package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/deploy/doctor"
)

// hostFolder returns a host folder of the tests of package doctor.
func hostFolder(name string) string {
	return filepath.Join("..", "..", "..", "sched", "hostinfo", "testdata", "hosts", name)
}

func TestDoctorEndsWith0OnlyWhereTheHostIsFit(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
	}{
		{"-bus can0,can1 -root " + hostFolder("tuned"), 0},
		{"-root " + hostFolder("tuned") + " -cpu 2", 3},
		{"-root " + hostFolder("tuned") + " -bus can7", 3},
		{"-root " + hostFolder("desktop"), 3},
		{"-root " + hostFolder("container"), 3},
		{"-root " + hostFolder("vm"), 3},
		{"-root " + hostFolder("throttled"), 3},
		{"-root " + hostFolder("throttled") + " -timer nanosleep", 0},
	} {
		out, errors, code := lockstep(t, append([]string{"doctor"}, strings.Fields(c.line)...)...)
		object, _, again := lockstep(t, append([]string{"doctor", "-json"}, strings.Fields(c.line)...)...)
		var d doctor.Diagnosis
		if err := json.Unmarshal([]byte(object), &d); err != nil || again != code || d.Fit != (code == 0) || len(d.Checks) < 20 {
			t.Errorf("doctor -json %s: code %d, fit %t, %d checks: %v", c.line, again, d.Fit, len(d.Checks), err)
		}
		if code != c.code || strings.Count(errors, "\n") != min(code, 1) || !strings.HasSuffix(out, "\n"+d.Sum()+"\n") {
			t.Errorf("doctor %s: code %d, want %d; %q; it does not end with %q:\n%s", c.line, code, c.code, errors, d.Sum(), out)
		}
	}
}

// Another bench on the CPU of the loop keeps doctor from measuring; the line then says so.
func TestDoctorComparesTheTimersUnlessToldNotTo(t *testing.T) {
	for flag, want := range map[string]bool{"-measure=true": true, "-measure=false": false} {
		object, errors, _ := lockstep(t, "doctor", "-json", "-period", "1ms", flag)
		var d doctor.Diagnosis
		if err := json.Unmarshal([]byte(object), &d); err != nil {
			t.Fatalf("%s: %v; %s", flag, err, errors)
		}
		c := d.Check("timer")
		if (c != nil) != want {
			t.Fatalf("%s: timer %+v, want a check: %t", flag, c, want)
		}
		if want && !strings.Contains(c.Found, "of timerfd's at 1ms") && !strings.Contains(c.Found, "a bench runs on CPU") {
			t.Errorf("timer: %s", c.Found)
		}
	}
}

func TestWrongDoctorCommandsEndWithOneLineAndCode2(t *testing.T) {
	for _, line := range []string{"-priority 0", "-priority 100", "-cpu -2", "-cpu x", "-timer sleep", "-period 2s", "-period 1ns", "-bus can0;reboot", "-root /nosuch", "box",
		"-fix -undo", "-yes", "-undo -yes", "-keep smt", "-fix -keep smmt", "-undo -root " + hostFolder("tuned"), "-fix -yes -root " + hostFolder("tuned")} {
		out, errors, code := lockstep(t, append([]string{"doctor"}, strings.Fields(line)...)...)
		if code != 2 || out != "" || strings.Count(errors, "\n") != 1 {
			t.Errorf("doctor %s: code %d, out %q, %q", line, code, out, errors)
		}
	}
}

func TestFixForAMissingCPUIsRefused(t *testing.T) {
	out, errors, code := lockstep(t, "doctor", "-fix", "-cpu", "9", "-root", hostFolder("throttled"))
	if code != 3 || out != "" || !strings.Contains(errors, "CPU 9") || !strings.Contains(errors, "0-3") || strings.Count(errors, "\n") != 1 {
		t.Errorf("code %d, %q\n%s", code, errors, out)
	}
}

func TestFixShowsItsChangesAndMakesNoneWithoutConfirmation(t *testing.T) {
	state := filepath.Join(t.TempDir(), "undo.json")
	for _, c := range []struct {
		host string
		code int
		n    int // number of changes
	}{{"throttled", 3, 12}, {"tuned", 0, 0}, {"container", 0, 0}} {
		before := texts(t, hostFolder(c.host))
		line := []string{"doctor", "-fix", "-root", hostFolder(c.host), "-state", state}
		out, errors, code := lockstep(t, line...)
		if code != c.code || strings.Count(errors, "\n") != min(c.code, 1) {
			t.Errorf("%s: code %d, want %d; %q\n%s", c.host, code, c.code, errors, out)
		}
		object, _, again := lockstep(t, append(line, "-json")...)
		var told fixOutput
		if err := json.Unmarshal([]byte(object), &told); err != nil || again != code || told.Steps == nil || len(told.Steps) > 0 || len(told.Plan.Changes) != c.n {
			t.Fatalf("%s: -json: code %d, %+v: %v", c.host, again, told, err)
		}
		for _, change := range told.Plan.Changes {
			if !strings.Contains(out, change.Command+"\n") {
				t.Errorf("%s: the text does not show %s", c.host, change.Command)
			}
		}
		if after := texts(t, hostFolder(c.host)); !maps.Equal(before, after) {
			t.Errorf("%s: files changed", c.host)
		}
	}
	out, errors, code := lockstep(t, "doctor", "-undo", "-state", state)
	if code != 0 || errors != "" || strings.Count(out, "\n") != 1 {
		t.Errorf("undo of nothing: code %d, %q, %q", code, out, errors)
	}
}

// texts returns the content of each file of a folder.
func texts(t *testing.T, root string) map[string]string {
	t.Helper()
	list := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		list[path] = string(text)
		return err
	})
	if err != nil || len(list) < 20 {
		t.Fatalf("%d files below %s: %v", len(list), root, err)
	}
	return list
}
