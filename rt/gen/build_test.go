package gen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// replaceGo makes a script the go command of the test.
func replaceGo(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestErrorsOfTheToolchainAreOneLine(t *testing.T) {
	for script, want := range map[string]string{
		"echo go version go1.20.4 linux/amd64":              "the Go toolchain is go1.20.4; a target needs go1.26.0 or later (https://go.dev/dl)",
		"echo 'go: parsing $GOFLAGS: non-flag' >&2; exit 2": "go version: go: parsing $GOFLAGS: non-flag",
		"exit 3": "go version: exit status 3",
	} {
		replaceGo(t, script)
		if _, err := toolchain(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	for _, version := range []string{"go1.26.8", "go1.21", "go1.30rc1", "devel +a1b2"} { // newer versions, and one without a number
		replaceGo(t, "echo go version "+version+" linux/amd64")
		if text, err := toolchain(); err != nil || !strings.Contains(text, version) {
			t.Errorf("%s: %q, %v", version, text, err)
		}
	}
	replaceGo(t, "echo 'go: downloading golang.org/x/sys v0'\necho '# lockstep/generated/x'\necho './main.go:1:1: no space left on device'\necho more\nexit 1")
	dir := t.TempDir()
	err := build(nil, dir, filepath.Join(dir, "made"))
	if want := "go build: ./main.go:1:1: no space left on device"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a failed build left %v", left)
	}
	t.Setenv("PATH", "/nowhere")
	if _, err := toolchain(); !errors.Is(err, ErrNoToolchain) {
		t.Errorf("without a toolchain: %v", err)
	}
}

// Settings of the user must not reach a build, not even those of `go env -w`.
func TestABuildIgnoresTheUsersGoSettings(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod -race")
	t.Setenv("GOWORK", "/nowhere/go.work")
	t.Setenv("GOARCH", "s390x")
	t.Setenv("GOAMD64", "v4")
	replaceGo(t, `echo "$GOFLAGS $GOWORK $CGO_ENABLED $GOOS" >&2; echo "$GOARCH $GOAMD64"`)
	got, err := output(goCommand("", "env"))
	if err != nil || !strings.HasPrefix(got, "-trimpath off 0 linux\n") || strings.Contains(got, "s390x") || level() != "" && strings.Contains(got, "v4") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTheCachePreservesTheTargetsUsedLast(t *testing.T) {
	dir := t.TempDir()
	c := cache(dir)
	var files []string
	for i := range maxTargets + 5 {
		file := filepath.Join(dir, fmt.Sprintf("target%02d", i))
		if err := os.WriteFile(file, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-100) * time.Minute)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for name, age := range map[string]time.Duration{"build-1": 2 * maxBuildTime, "build-2": maxBuildTime / 2, "mine": 2 * maxBuildTime} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(path, "module"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	c.touch(files[1])
	c.prune(files[0]) // the target just built, whatever its time
	want := map[string]bool{files[0]: true, files[1]: true, filepath.Join(dir, "build-2"): true, filepath.Join(dir, "mine"): true}
	for _, f := range files[len(files)-maxTargets+2:] {
		want[f] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); !want[path] {
			t.Errorf("%s is still there", e.Name())
		} else {
			delete(want, path)
		}
	}
	if len(want) > 0 {
		t.Errorf("%v are gone", want)
	}
	cache(filepath.Join(dir, "none")).prune("") // no folder: nothing to remove
}
