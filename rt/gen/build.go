package gen

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"lockstep/codegen"
	"lockstep/rt/bench"
)

// FromFile chooses a target executable by its file, if it fits the run.
func FromFile(file string) bench.Chooser {
	return func(h *bench.Handover) (string, string, error) {
		fail := func(err error) (string, string, error) {
			return "", "", fmt.Errorf("run: -kernel %s: %w", file, err)
		}
		mark, err := ReadMark(file)
		if err != nil {
			return fail(err)
		}
		want, err := MarkOf(h)
		if err != nil {
			return fail(err)
		}
		if err := mark.differs(want); err != nil {
			return fail(fmt.Errorf("%w: generate and build it again (lockstep gen -bench %s -o DIR)", err, h.Bench.File))
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return fail(err)
		}
		return path, mark.String(), nil
	}
}

// Generated chooses a target executable that it generates and builds, unless the user's
// cache has it.
func Generated(h *bench.Handover) (file, mark string, err error) {
	if file, mark, err = generated(h); err != nil {
		return "", "", &bench.Exit{Code: 3, Err: fmt.Errorf("run: -kernel generated: %w", err)}
	}
	return file, mark, nil
}

func generated(h *bench.Handover) (file, mark string, err error) {
	want, err := MarkOf(h)
	if err != nil {
		return "", "", err
	}
	home, err := os.UserCacheDir()
	if err != nil {
		return "", "", fmt.Errorf("there is no folder to build in: %w", err)
	}
	go_, err := exec.LookPath("go")
	if err != nil {
		return "", "", errors.New("there is no Go toolchain (https://go.dev/dl): build the target elsewhere (lockstep gen -bench) and name its file, or leave out -kernel")
	}
	version, err := exec.Command(go_, "version").Output()
	if err != nil {
		return "", "", fmt.Errorf("%s version: %w", go_, err)
	}
	own, err := os.ReadFile("/proc/self/exe") // who generates: another one may write another text
	if err != nil {
		return "", "", err
	}
	key := sha256.New()
	fmt.Fprint(key, want, string(version), level(), sha256.Sum256(own))
	dir := filepath.Join(home, "lockstep", "targets")
	file = filepath.Join(dir, hex.EncodeToString(key.Sum(nil)))
	if got, err := ReadMark(file); err == nil && got == want {
		return file, want.String(), nil
	}
	files, _, err := targetFiles(h, packageOf(h.Bench.Name), "lockstep run -kernel generated")
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", err
	}
	return file, want.String(), build(files, dir, file)
}

// level is the setting of this program's own architecture level: a kernel built with
// another one may round otherwise.
func level() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOAMD64", "GOARM64", "GOARM", "GO386", "GORISCV64":
			return s.Key + "=" + s.Value
		}
	}
	return ""
}

// goCommand is the toolchain at work in a module of ours, whatever the user's settings.
func goCommand(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GO111MODULE=on", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if l := level(); l != "" {
		cmd.Env = append(cmd.Env, l)
	}
	return cmd
}

// build builds a module in a folder below dir and moves the executable to file.
func build(files codegen.Files, dir, file string) error {
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	f := folder{path: filepath.Join(tmp, "module")}
	if err := f.write(files); err != nil {
		return err
	}
	made := filepath.Join(tmp, "target")
	if err := run(goCommand(f.path, "build", "-o", made, ".")); err != nil {
		return err
	}
	return os.Rename(made, file)
}

// run runs a command of the toolchain; the error is its first line that says something.
func run(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return fmt.Errorf("go %s: %s", cmd.Args[1], line)
		}
	}
	return fmt.Errorf("go %s: %w", cmd.Args[1], err)
}

// vendored adds to a module the packages that it needs from outside, where a toolchain
// has them at hand, so that it builds without a network; the text says what became of it.
func vendored(files codegen.Files) string {
	got, err := vendor(files)
	if err != nil {
		return fmt.Sprintf("not vendored, its build needs %s %s from the network or the module cache: %v", sysModule, sysPin, err)
	}
	for path, text := range got {
		files[path] = text
	}
	return fmt.Sprintf("%s %s is vendored: it builds without a network", sysModule, sysPin)
}

// vendor has the toolchain collect, without a network, what a module needs from outside.
func vendor(files codegen.Files) (codegen.Files, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return nil, errors.New("there is no Go toolchain")
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
	if err := run(cmd); err != nil {
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
