package gen

import (
	"errors"
	"fmt"
	"go/version"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"lockstep/codegen"
)

// goCommand is the toolchain at work in a module of ours, whatever the user's settings: what
// is set here overrules those of `go env -w`, too, which an empty value does not.
func goCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0",
		"GOOS=linux", "GOARCH="+runtime.GOARCH)
	if l := level(); l != "" {
		cmd.Env = append(cmd.Env, l)
	}
	return cmd
}

// buildFolder is how a folder begins in which a target is built.
const buildFolder = "build-"

// build builds a module in a folder below dir and moves the executable to file.
func build(files codegen.Files, dir, file string) error {
	tmp, err := os.MkdirTemp(dir, buildFolder)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	f := folder{path: filepath.Join(tmp, "module")}
	if err := f.write(files); err != nil {
		return err
	}
	made := filepath.Join(tmp, "target")
	if _, err := said(goCommand(f.path, "build", "-o", made, ".")); err != nil {
		return err
	}
	return os.Rename(made, file)
}

// said is what a command of the toolchain prints; the error is its first line that says what is
// wrong.
func said(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out), nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "go: downloading ") {
			return "", fmt.Errorf("go %s: %s", cmd.Args[1], line)
		}
	}

	return "", fmt.Errorf("go %s: %w", cmd.Args[1], err)
}

// oldest is the first toolchain that fetches a newer one where a module needs it.
const oldest = "go1.21"

// ErrNoToolchain says that no target can be built on this host.
var ErrNoToolchain = errors.New("there is no Go toolchain")

// toolchain is what the Go toolchain says of its version.
func toolchain() (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("%w (https://go.dev/dl): build the target elsewhere (lockstep gen -bench) "+
			"and name its file, or leave out -kernel", ErrNoToolchain)
	}

	text, err := said(goCommand("", "version"))
	if err != nil {
		return "", err
	}
	if words := strings.Fields(text); len(words) > 2 && version.IsValid(words[2]) && version.Compare(words[2], oldest) < 0 {
		return "", fmt.Errorf("the Go toolchain is %s; a target needs go%s or later (https://go.dev/dl)", words[2], goVersion)
	}
	return text, nil
}

// vendored adds to a module the packages that it needs from outside, where a toolchain
// has them at hand, so that it builds without a network; the text says what became of it.
func vendored(files codegen.Files) string {
	got, err := vendor(files)
	if err != nil {
		return fmt.Sprintf("not vendored, its build needs %s %s from the network or the module cache: %v",
			sysModule, sysPin, err)
	}

	maps.Copy(files, got)
	return fmt.Sprintf("%s %s is vendored: it builds without a network", sysModule, sysPin)
}

// vendor has the toolchain collect, without a network, what a module needs from outside.
func vendor(files codegen.Files) (codegen.Files, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, ErrNoToolchain
	}
	dir, err := os.MkdirTemp("", "lockstep-gen-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f := folder{path: dir}
	if err := f.write(files); err != nil {
		return nil, err
	}
	cmd := goCommand(dir, "mod", "vendor")
	cmd.Env = append(cmd.Env, "GOPROXY=off")
	if _, err := said(cmd); err != nil {
		return nil, err
	}
	got := codegen.Files{}
	err = fs.WalkDir(os.DirFS(dir), "vendor", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		got[path], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		return err
	})
	return got, err
}
