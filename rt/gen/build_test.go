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

// toolchainOf puts a script in the place of the Go toolchain.
func toolchainOf(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

func TestWhatTheToolchainRefusesIsOneLine(t *testing.T) {
	for script, want := range map[string]string{
		"echo go version go1.20.4 linux/amd64":              "the Go toolchain is go1.20.4; a target needs go1.26.0 or later (https://go.dev/dl)",
		"echo 'go: parsing $GOFLAGS: non-flag' >&2; exit 2": "go version: go: parsing $GOFLAGS: non-flag",
		"exit 3": "go version: exit status 3",
	} {
		toolchainOf(t, script)
		if _, err := toolchain(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	for _, version := range []string{"go1.26.8", "go1.21", "go1.30rc1", "devel +a1b2"} { // newer ones, and some that say nothing
		toolchainOf(t, "echo go version "+version+" linux/amd64")
		if text, err := toolchain(); err != nil || !strings.Contains(text, version) {
			t.Errorf("%s: %q, %v", version, text, err)
		}
	}
	toolchainOf(t, "echo 'go: downloading golang.org/x/sys v0'\necho '# lockstep/generated/x'\necho './main.go:1:1: no space left on device'\necho more\nexit 1")
	dir := t.TempDir()
	err := build(nil, dir, filepath.Join(dir, "made"))
	if want := "go build: ./main.go:1:1: no space left on device"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v are left of a build that failed", left)
	}
	t.Setenv("PATH", "/nowhere")
	if _, err := toolchain(); !errors.Is(err, ErrNoToolchain) {
		t.Errorf("without one: %v", err)
	}
}

// What a user has set for go must not reach a build, not even by `go env -w`.
func TestABuildHasSettingsOfItsOwn(t *testing.T) {
	t.Setenv("GOFLAGS", "-mod=mod -race")
	t.Setenv("GOWORK", "/nowhere/go.work")
	t.Setenv("GOARCH", "s390x")
	t.Setenv("GOAMD64", "v4")
	toolchainOf(t, `echo "$GOFLAGS $GOWORK $CGO_ENABLED $GOOS" >&2; echo "$GOARCH $GOAMD64"`)
	got, err := said(goCommand("", "env"))
	if err != nil || !strings.HasPrefix(got, "-trimpath off 0 linux\n") || strings.Contains(got, "s390x") || level() != "" && strings.Contains(got, "v4") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTheCacheKeepsWhatWasUsedLast(t *testing.T) {
	dir := t.TempDir()
	c := cache(dir)
	var files []string
	for i := range cached + 5 {
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
	for name, age := range map[string]time.Duration{"build-1": 2 * building, "build-2": building / 2, "mine": 2 * building} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(path, "module"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	c.used(files[1])
	c.prune(files[0]) // the one just built, by whatever clock
	want := map[string]bool{files[0]: true, files[1]: true, filepath.Join(dir, "build-2"): true, filepath.Join(dir, "mine"): true}
	for _, f := range files[len(files)-cached+2:] {
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
	cache(filepath.Join(dir, "none")).prune("") // nothing to do
}
