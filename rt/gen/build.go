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

// goCommand returns a go command for a generated module in dir. Its settings override the user's,
// including those of `go env -w`, which an empty value would not override.
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

// buildFolder is the prefix of the folders in which targets are built.
const buildFolder = "build-"

// build builds a module in a new folder below dir and moves the executable to file.
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
	if _, err := output(goCommand(f.path, "build", "-o", made, ".")); err != nil {
		return err
	}
	return os.Rename(made, file)
}

// output runs a go command and returns its output. The error is the first line of the output that
// is neither a package name nor a download.
func output(cmd *exec.Cmd) (string, error) {
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

// oldestGo is the first toolchain that downloads the version that a module needs.
const oldestGo = "go1.21"

// ErrNoToolchain is returned where no target can be built because Go is not installed.
var ErrNoToolchain = errors.New("no Go toolchain")

// toolchain returns the output of `go version`; a toolchain that is missing or too old is an error.
func toolchain() (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("%w (https://go.dev/dl): build the target on another host (lockstep gen -bench) "+
			"and give its file, or omit -kernel", ErrNoToolchain)
	}

	text, err := output(goCommand("", "version"))
	if err != nil {
		return "", err
	}
	if words := strings.Fields(text); len(words) > 2 && version.IsValid(words[2]) && version.Compare(words[2], oldestGo) < 0 {
		return "", fmt.Errorf("the Go toolchain is %s; a target needs go%s or later (https://go.dev/dl)", words[2], goVersion)
	}
	return text, nil
}

// addVendored adds the dependencies of a module to its files, so that it builds without a network.
// The returned line of the report says whether the toolchain had them.
func addVendored(files codegen.Files) string {
	got, err := vendor(files)
	if err != nil {
		return fmt.Sprintf("not vendored: the build needs %s %s from the network or the module cache: %v",
			sysModule, sysPin, err)
	}

	maps.Copy(files, got)
	return fmt.Sprintf("%s %s is vendored: the module builds without a network", sysModule, sysPin)
}

// vendor returns the vendored dependencies of a module, from the local module cache.
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
	if _, err := output(cmd); err != nil {
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
