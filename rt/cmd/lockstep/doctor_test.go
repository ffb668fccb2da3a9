package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/deploy"
)

// host is a box of the doctor's own tests.
func host(name string) string {
	return filepath.Join("..", "..", "..", "deploy", "testdata", "hosts", name)
}

func TestDoctorEndsWith0OnlyWhereTheHostIsFit(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
	}{
		{"-bus can0,can1 -root " + host("tuned"), 0},
		{"-root " + host("tuned") + " -cpu 2", 3},
		{"-root " + host("tuned") + " -bus can7", 3},
		{"-root " + host("desktop"), 3},
		{"-root " + host("container"), 3},
		{"-root " + host("vm"), 3},
		{"-root " + host("throttled"), 3},
		{"-root " + host("throttled") + " -timer nanosleep", 0},
	} {
		out, errors, code := lockstep(t, append([]string{"doctor"}, strings.Fields(c.line)...)...)
		fit := strings.Contains(out, "\nfit: ") && errors == ""
		unfit := strings.Contains(out, "\nnot fit: ") && strings.HasPrefix(errors, "lockstep: the host is not fit") && strings.Count(errors, "\n") == 1
		if code != c.code || code == 0 && !fit || code == 3 && !unfit {
			t.Errorf("doctor %s: code %d, want %d; %q\n%s", c.line, code, c.code, errors, out)
		}
		out, _, again := lockstep(t, append([]string{"doctor", "-json"}, strings.Fields(c.line)...)...)
		var d deploy.Diagnosis
		if err := json.Unmarshal([]byte(out), &d); err != nil || again != code || d.Fit != (code == 0) || len(d.Checks) < 20 {
			t.Errorf("doctor -json %s: code %d, fit %t, %d checks: %v", c.line, again, d.Fit, len(d.Checks), err)
		}
	}
}

func TestWrongQuestionsToTheDoctorEndWithOneLineAndCode2(t *testing.T) {
	for _, line := range []string{"-priority 0", "-priority 100", "-cpu -2", "-cpu x", "-timer sleep", "-bus can0;reboot", "-root /nosuch", "box"} {
		out, errors, code := lockstep(t, append([]string{"doctor"}, strings.Fields(line)...)...)
		if code != 2 || out != "" || strings.Count(errors, "\n") != 1 {
			t.Errorf("doctor %s: code %d, out %q, %q", line, code, out, errors)
		}
	}
}
