package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePlantAndTheBenchOfTheReadmeRun(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 200 {
		t.Errorf("README.md has %d lines, want at most 200", n)
	}

	dir := t.TempDir()
	for file, first := range map[string]string{"shaft.yaml": "plant: shaft", "shaft.dbc": "BU_: TCU Bench", "bench.yaml": "bench: shaft-bench"} {
		_, rest, found := strings.Cut(string(text), "\n    "+first+"\n")
		if !found {
			t.Fatalf("README.md has no %q", first)
		}
		lines := first + "\n"
		for line := range strings.Lines(rest) {
			code, ok := strings.CutPrefix(line, "    ")
			if !ok {
				break
			}
			lines += code
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	bench := filepath.Join(dir, "bench.yaml")
	out, errors, code := lockstep(t, "check", filepath.Join(dir, "shaft.yaml"), bench)
	if code != 0 || errors != "" || !strings.Contains(out, "Speeds.n_load") {
		t.Errorf("check: code %d, %s%s", code, out, errors)
	}
	if out, errors, code = lockstep(t, "sim", bench, "-for", "1s"); code != 0 || !strings.Contains(out, "frames out       100;") {
		t.Errorf("sim: code %d, %s%s", code, out, errors)
	}
}
