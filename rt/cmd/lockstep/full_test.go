package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Each command is run with a standard output that takes nothing. A command of the table without a row
// fails the test.
func TestFullOutputIsAnErrorOfEveryCommand(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	dir := t.TempDir()
	record := filepath.Join(dir, "r.rec")
	if _, errs, code := lockstep(t, "sim", "powershift-bench", "-for", "200ms", "-record", record); code != 0 {
		t.Fatal(errs)
	}
	shards, _ := shardsOf(t)
	rows := map[string][][]string{
		"run":        {{"powershift-bench", "-for", "200ms"}},
		"latency":    {{"-for", "500ms", "-load=false"}},
		"soak":       {{"-h"}}, // a soak takes 10 s or more and prints as run does
		"certify":    {{"-h"}}, // the same
		"attach":     {{"-h"}}, // a run has lost its supervisor; prints as run does
		"ctl":        {{"-h"}}, // an answer of a run is printed as by ps
		"stop":       {{"-h"}}, // the same
		"uds":        {{"-h"}}, // the same
		"ecu":        {{"-h"}}, // a unit needs a bus
		"sweep":      {{"-merge", shards, "-o", filepath.Join(dir, "merged.csv")}, {"-h"}},
		"sim":        {{"powershift", "-for", "100ms"}, {"powershift-bench", "-for", "100ms"}, {"powershift", "-for", "100ms", "-out", "-"}, {"-h"}},
		"check":      {{"powershift"}, {"powershift-bench"}},
		"plants":     {{}, {"powershift"}},
		"replay":     {{record}, {record, "-out", "-"}},
		"export":     {{record, "-o", "/dev/stdout", "-format", "csv"}},
		"plot":       {{record, "w1"}, {"-h"}},
		"diff":       {{record, record}, {"-h"}},
		"view":       {{record}, {"-h"}},
		"ps":         {{}, {"-json"}},
		"doctor":     {{"-measure=false"}, {"-json", "-measure=false"}},
		"gen":        {{"powershift", "-o", filepath.Join(dir, "gen")}},
		"completion": {{"bash"}},
		"man":        {{}, {"bench"}},
		"version":    {{}},
		"help":       {{}, {"sim"}, {"clutch"}, {"bench", "-html"}},
	}
	for _, c := range commands() {
		list, known := rows[c.name]
		if !known {
			t.Errorf("no row for the command %s", c.name)
		}
		for _, args := range list {
			var errs bytes.Buffer
			cmd := exec.Command(program, append([]string{c.name}, args...)...)
			cmd.Stdout, cmd.Stderr = full, &errs
			_ = cmd.Run() // its exit code is checked
			text := errs.String()
			if cmd.ProcessState.ExitCode() != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "no space left on device") {
				t.Errorf("%s %q: exit code %d, want 1 and one line:\n%s", c.name, args, cmd.ProcessState.ExitCode(), text)
			}
		}
	}
}
