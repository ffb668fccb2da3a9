package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pathInRepository matches a file or folder of the repository in a text.
var pathInRepository = regexp.MustCompile(`\b(rt|model|io|sched|codegen|deploy|hil_test)/[\w./@-]*\w`)

func readReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReadmeNamesOnlyExistingFilesAndFolders(t *testing.T) {
	named := pathInRepository.FindAllString(readReadme(t), -1)
	if len(named) < 50 {
		t.Fatalf("found only %d files and folders in the README", len(named))
	}
	for _, path := range named {
		if _, err := os.Stat(filepath.Join(top, path)); err != nil {
			t.Errorf("README.md names %s: %v", path, err)
		}
	}
}

func TestReadmeNamesEveryPackageOfTheProduct(t *testing.T) {
	readme := readReadme(t)
	seen := map[string]bool{}
	for _, s := range sources(t) {
		// Test packages are below hil_test, or their names end with "test".
		if seen[s.folder] || s.test || strings.HasPrefix(s.folder, "hil_test/") || strings.HasSuffix(s.folder, "test") && s.folder != "hil_test" {
			continue
		}
		seen[s.folder] = true
		if !strings.Contains(readme, "`"+s.folder+"`") {
			t.Errorf("README.md does not name the package %s", s.folder)
		}
	}
}
