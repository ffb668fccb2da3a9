package rules

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A package of more is one in which a reader does not find the way.
const (
	mostFiles = 25
	mostLines = 4400 // of files that are no tests
)

// large are packages that may be larger, since one subject needs it: a reader goes by the
// page of their documentation.
var large = []string{"model/kernel", "codegen/specialise"}

func TestPackagesAreOfASizeThatAReaderMasters(t *testing.T) {
	files, lines := map[string]int{}, map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, s.path))
		if err != nil {
			t.Fatal(err)
		}
		files[s.folder]++
		lines[s.folder] += bytes.Count(text, []byte("\n"))
	}
	for folder, n := range files {
		if slices.Contains(large, folder) {
			continue
		}
		if n > mostFiles || lines[folder] > mostLines {
			t.Errorf("%s has %d files and %d lines without tests; want at most %d and %d", folder, n, lines[folder], mostFiles, mostLines)
		}
	}
}
