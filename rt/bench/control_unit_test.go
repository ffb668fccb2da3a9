package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/rt/bench/benchtest"
)

// withProgram writes the demo bench with a program as its control unit into a folder and loads it.
func withProgram(t *testing.T, dir, exec string) *Bench {
	t.Helper()
	file := filepath.Join(dir, "bench.yaml")
	text := benchtest.DemoText(t, "control_unit: powershift ", "control_unit: {exec: "+exec+"} ")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	b, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestProgramMustExistAndBeExecutable(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"tcu": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"env.py": "#! /usr/bin/env sh\n", "lost.py": "#!/opt/lost/python3 -u\n", "windows.py": "#!/usr/bin/env sh\r\n",
		"none.py": "#!\n", "beside.py": "#!./tcu\n",
		"nonsense.py": "#!/usr/bin/env nonsense\n", "split.py": "#!/usr/bin/env -S A=1 sh -u\n",
		"nosplit.py": "#!/usr/bin/env sh -u\n", "lostsplit.py": "#!/usr/bin/env -S nonsense -u\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	for exec, want := range map[string]string{
		"./tcu": "", "tcu": "", filepath.Join(dir, "tcu"): "", "sh": "", "[./tcu, --fast]": "",
		"./none": "no program ./none: no such file or directory", "nothing-of-the-path": "no program nothing-of-the-path: ",
		"./data":   "./data cannot be executed; make it executable: chmod +x " + filepath.Join(dir, "data"),
		"./folder": "no program ./folder: is a directory",
		"./env.py": "", "./beside.py": "", "./split.py": "",
		"./nonsense.py":  "./nonsense.py names the interpreter nonsense in its first line, which the PATH does not have; ",
		"./nosplit.py":   "./nosplit.py names the interpreter sh -u in its first line, which the PATH does not have; ",
		"./lostsplit.py": "./lostsplit.py names the interpreter nonsense in its first line, which the PATH does not have; ",
		"./lost.py": "./lost.py names the interpreter /opt/lost/python3 in its first line, which cannot be executed; " +
			"write another one, such as #!/usr/bin/env python3",
		"./windows.py": "./windows.py has the line ends of Windows; remove them: sed -i 's/\\r$//' " +
			filepath.Join(dir, "windows.py"),
		"./none.py": "./none.py has a first line without an interpreter; write one such as #!/usr/bin/python3",
	} {
		err := withProgram(t, dir, exec).CheckEnds()
		if at := fmt.Sprintf("%s:21:22: bench: control_unit: exec: %s", filepath.Join(dir, "bench.yaml"), want); want == "" && err != nil ||
			want != "" && (err == nil || !strings.HasPrefix(err.Error(), at)) {
			t.Errorf("%s: %v, want %q", exec, err, want)
		}
	}
}

// A soak that goes on, and a sweep, notice another program.
func TestDigestOfABenchChangesWithItsProgram(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	digests := map[string]bool{}
	for _, text := range []string{"first", "second"} {
		write("tcu.py", text)
		for _, exec := range []string{"./tcu.py", "[sh, tcu.py]", "[sh, " + filepath.Join(dir, "tcu.py") + "]"} {
			digests[withProgram(t, dir, exec).Digest()] = true
			digests[withProgram(t, dir, exec).Digest()] = true
		}
	}
	if len(digests) != 6 {
		t.Errorf("%d digests of 6 benches", len(digests))
	}
}
