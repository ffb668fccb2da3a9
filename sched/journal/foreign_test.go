package journal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An undo would remove the file.
func TestAnotherFileInJSONIsNoJournal(t *testing.T) {
	for _, text := range []string{`{"a": 1}`, `{}`, `[]`, `{"boot": "b", "entries": [], "more": 1}`, ``} {
		file := filepath.Join(t.TempDir(), "other.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file, "b", os.Getuid()); err == nil || !strings.Contains(err.Error(), "is not a list of changed settings") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
