package rules

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Limits of a package, without its tests. In a larger package readers lose their way.
const (
	mostFiles = 25
	mostLines = 4400
)

// large lists packages that may exceed the limits, since they have one subject. Their package
// documentation guides the reader.
var large = []string{"model/kernel", "codegen/specialise"}

func TestPackagesStayBelowTheSizeLimits(t *testing.T) {
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
