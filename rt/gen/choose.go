package gen

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
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

// FromFile returns a chooser of the target executable in file. An executable that does not fit the
// run is an error.
func FromFile(file string) bench.Chooser {
	return func(h *bench.Handover) (string, string, error) {
		fail := func(err error) (string, string, error) {
			return "", "", fmt.Errorf("-kernel %s: %w", file, err)
		}
		mark, err := ReadMark(file)
		if errors.Is(err, ErrNotExecutable) {
			if wrong := bench.CheckFile("", file, "executable"); wrong != nil {
				err = fmt.Errorf("%w: %w", ErrNotExecutable, wrong)
			}
		}
		if err != nil {
			return fail(err)
		}
		want, err := MarkOf(h)
		if err != nil {
			return fail(err)
		}
		err = mark.fits(want)
		if with := optionsOf(h.Bench); errors.Is(err, ErrPlant) && with != "" {
			return fail(fmt.Errorf("the target was generated without %s, which its tables hold: run with -kernel generated or -kernel table", with))
		}
		if err != nil {
			return fail(fmt.Errorf("%w: generate and build the target again (lockstep gen -bench %s -o DIR)", err, h.Bench.File))
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

// optionsOf returns the options of the command line that change the tables of a bench, "" if there are none.
func optionsOf(b *bench.Bench) string {
	var list []string
	for _, a := range b.Set {
		list = append(list, "-set "+a.String())
	}
	for _, a := range b.StartSet {
		list = append(list, "-start "+a.String())
	}
	return strings.Join(list, " ")
}

// Generated chooses a target executable from the user's cache; a missing one is generated and
// built.
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
		return "", "", fmt.Errorf("no cache folder to build in: %w", err)
	}
	compiler, err := toolchain()
	if err != nil {
		return "", "", err
	}
	own, err := host.Executable() // another build of lockstep may generate other text
	if err != nil {
		return "", "", err
	}
	key := sha256.New()
	fmt.Fprint(key, want, compiler, level(), own)
	dir := cache(filepath.Join(home, "lockstep", "targets"))
	file = filepath.Join(string(dir), hex.EncodeToString(key.Sum(nil)))
	if got, err := ReadMark(file); err == nil && got == want {
		dir.touch(file)
		return file, want.String(), nil
	}

	files, _, err := targetFiles(h, codegen.PackageName(h.Bench.Name), "lockstep run -kernel generated", nil)
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

// level returns the architecture level of this program, such as "GOAMD64=v1"; "": unknown. A kernel
// built with another level may round differently.
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
		return fmt.Errorf("the file has no build information: %w", err)
	}
	if is, want := levelOf(info), level(); is != want && want != "" {
		return &levelError{is, want}
	}
	return nil
}

// cache is the folder of the targets built here: executables, and folders of builds in progress.
type cache string

// Limits of the cache.
const (
	maxTargets   = 16        // executables, of some 4 MB each
	maxBuildTime = time.Hour // an older build folder is the rest of a killed build
)

// touch sets the time of last use of a target to now.
func (c cache) touch(file string) {
	now := time.Now()
	_ = os.Chtimes(file, now, now) // a cache that cannot be written to is not pruned either
}

// prune removes the least recently used targets, except preserve, and the rests of killed builds. A
// file that cannot be removed stays until the next time; a running target does not need its file.
func (c cache) prune(preserve string) {
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
		case err != nil || path == preserve:
		case info.Mode().IsRegular():
			list = append(list, target{path, info.ModTime()})
		case info.IsDir() && strings.HasPrefix(e.Name(), buildFolder) && time.Since(info.ModTime()) > maxBuildTime:
			_ = os.RemoveAll(path)
		}
	}

	slices.SortFunc(list, func(a, b target) int { return cmp.Or(b.used.Compare(a.used), strings.Compare(a.path, b.path)) })
	for _, t := range list[min(maxTargets-1, len(list)):] {
		_ = os.Remove(t.path)
	}
}
