package gen

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

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
