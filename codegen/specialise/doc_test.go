package specialise

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDocPageNamesEveryFile(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		if f != "doc.go" && !strings.HasSuffix(f, "_test.go") && !strings.Contains(string(doc), "\n//\t"+f+" ") {
			t.Errorf("doc.go does not list %s", f)
		}
	}
}
