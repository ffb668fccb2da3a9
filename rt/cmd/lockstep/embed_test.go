package main

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// repository is the root folder of the module.
const repository = "../../.."

// wholly lists the packages whose complete source is embedded in the command. Tests and the file
// that embeds are left out; doc.go too where the source serves only the tick or a hash.
var wholly = []struct {
	dir string
	doc bool // doc.go is embedded
}{
	{"io/can", true}, {"rt", true}, {"rt/fault", true}, {"rt/target", true}, {"sched", true},
	{"model/kernel", false}, {"codegen", false}, {"codegen/c99", false}, {"codegen/fmu", false}, {"codegen/specialise", false},
}

func TestEmbeddedSourcesAreComplete(t *testing.T) {
	for _, c := range wholly {
		files, err := filepath.Glob(filepath.Join(repository, c.dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, f := range files {
			name := filepath.Base(f)
			if !strings.HasSuffix(name, "_test.go") && name != "text.go" && name != "guide.go" && (c.doc || name != "doc.go") {
				want = append(want, name)
			}
		}
		text, err := os.ReadFile(filepath.Join(repository, c.dir, "text.go"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(text)) {
			if list, ok := strings.CutPrefix(line, "//go:embed "); ok {
				got = append(got, strings.Fields(list)...)
			}
		}
		got = slices.DeleteFunc(got, func(name string) bool { return filepath.Ext(name) != ".go" })
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s/text.go embeds other files than the package has; it must say\n//go:embed %s", c.dir, strings.Join(want, " "))
		}
	}
}

// Each test file of the repository has a function whose text no other file has.
func TestTheCommandEmbedsNoTest(t *testing.T) {
	t.Parallel()
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(binary, []byte("\nfunc (k *Kernel) locateEvent(")) {
		t.Fatal("the command carries no source of the tick: this proves nothing")
	}
	searched := 0
	err = filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			line := lines.Bytes()
			if bytes.HasPrefix(line, []byte("func ")) && bytes.Contains(line, []byte("testing.")) {
				searched++
				if bytes.Contains(binary, append([]byte("\n"), line...)) {
					t.Errorf("%s is in the command: it has the line\n%s", path, line)
				}
				return nil
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if searched < 100 {
		t.Errorf("only %d test files have been looked for", searched)
	}
}
