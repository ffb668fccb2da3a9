package main

import (
	"strings"
	"testing"
)

func TestProgramThatDoesNotExistIsRefusedBeforeTheRun(t *testing.T) {
	file := patientBench(t, "control_unit: powershift", "control_unit: {exec: ./none} # powershift")
	for _, line := range []string{"check", "sim", "run -for 1s", "soak -for 10s"} {
		args := strings.Fields(line)
		out, errors, code := lockstep(t, append([]string{args[0], file}, args[1:]...)...)
		want := "lockstep: " + file + ":21:22: bench: control_unit: exec: no program ./none: no such file or directory\n"
		if code != 2 || out != "" || errors != want {
			t.Errorf("%s: code %d, %q, %q, want %q", line, code, out, errors, want)
		}
	}
}

func TestFilesForProgramsArePrinted(t *testing.T) {
	list, _, _ := lockstep(t, "plants")
	for name, part := range map[string]string{"lockstep.h": "lockstep_receive", "tcu.c": `#include "lockstep.h"`, "powershift.py": "import lockstep"} {
		text, errors, code := lockstep(t, "plants", name)
		if code != 0 || errors != "" || !strings.Contains(text, part) || !strings.Contains(list, name+" ") {
			t.Errorf("%s: code %d, %s, %d bytes", name, code, errors, len(text))
		}
	}
}
