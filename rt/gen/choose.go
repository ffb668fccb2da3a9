package gen

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"lockstep/codegen"
	"lockstep/rt/bench"
	"lockstep/rt/host"
)

// FromFile chooses a target executable by its file, if it fits the run.
func FromFile(file string) bench.Chooser {
	return func(h *bench.Handover) (string, string, error) {
		fail := func(err error) (string, string, error) {
			return "", "", fmt.Errorf("-kernel %s: %w", file, err)
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
		if err := sameLevel(file); err != nil {
			return fail(err)
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
		return "", "", &host.Exit{Code: 3, Err: fmt.Errorf("-kernel generated: %w", err)}
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
	compiler, err := toolchain()
	if err != nil {
		return "", "", err
	}
	own, err := host.Executable() // who generates: another one may write another text
	if err != nil {
		return "", "", err
	}
	key := sha256.New()
	fmt.Fprint(key, want, compiler, level(), own)
	dir := cache(filepath.Join(home, "lockstep", "targets"))
	file = filepath.Join(string(dir), hex.EncodeToString(key.Sum(nil)))
	if got, err := ReadMark(file); err == nil && got == want {
		dir.used(file)
		return file, want.String(), nil
	}

	files, _, err := targetFiles(h, codegen.PackageName(h.Bench.Name), "lockstep run -kernel generated")
	if err != nil {
		return "", "", err
	}
	if err := os.MkdirAll(string(dir), 0o700); err != nil {
		return "", "", err
	}
	if err := build(files, string(dir), file); err != nil {
		return "", "", err
	}
	dir.prune(file)
	return file, want.String(), nil
}

// level is the setting of this program's own architecture level: a kernel built with
// another one may round otherwise.
func level() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return levelOf(info)
}

func levelOf(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		switch s.Key {
		case "GOAMD64", "GOARM64", "GOARM", "GO386", "GORISCV64":
			return s.Key + "=" + s.Value
		}
	}

	return ""
}

// sameLevel refuses an executable that was built for another architecture level.
func sameLevel(file string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("it does not say how it was built: %w", err)
	}
	if is, want := levelOf(info), level(); is != want && want != "" {
		return &levelError{is, want}
	}
	return nil
}

// cache is the folder of the targets that were built here: executables, and folders in
// which one is being built.
type cache string

// What the cache keeps: the targets used last, and what is being built.
const (
	cached   = 16        // of some 4 MB each
	building = time.Hour // a folder that is older was left by a build that was killed
)

// used notes that a target is.
func (c cache) used(file string) {
	now := time.Now()
	_ = os.Chtimes(file, now, now) // a cache that cannot be written to is not pruned either
}

// prune removes the targets that were used least recently, but not the one just built, and
// what killed builds have left. What cannot be removed stays for the next time; a target that
// runs goes on when its file is gone.
func (c cache) prune(keep string) {
	entries, err := os.ReadDir(string(c))
	if err != nil {
		return
	}
	type target struct {
		path string
		used time.Time
	}
	var list []target
	for _, e := range entries {
		path := filepath.Join(string(c), e.Name())
		switch info, err := e.Info(); {
		case err != nil || path == keep:
		case info.Mode().IsRegular():
			list = append(list, target{path, info.ModTime()})
		case info.IsDir() && strings.HasPrefix(e.Name(), buildFolder) && time.Since(info.ModTime()) > building:
			_ = os.RemoveAll(path)
		}
	}

	slices.SortFunc(list, func(a, b target) int { return cmp.Or(b.used.Compare(a.used), strings.Compare(a.path, b.path)) })
	for _, t := range list[min(cached-1, len(list)):] {
		_ = os.Remove(t.path)
	}
}
