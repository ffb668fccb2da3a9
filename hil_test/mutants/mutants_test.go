package mutants

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// measured are the packages with the share of the noticeable mutants that their tests notice, %.
var measured = []struct {
	folder  string
	tests   []string // packages whose tests run
	workers int      // mutants judged at a time; 1: the tests measure time
	want    float64
}{
	{"sched", []string{"./sched"}, 1, 95},
	{"rt", []string{"./rt"}, 1, 95},
	{"rt/fault", []string{"./rt/fault", "./rt"}, 1, 95},
	{"io/sigmap", []string{"./io/sigmap"}, 2, 95},
	{"io/record", []string{"./io/record"}, 1, 95},
	{"model/kernel", []string{"./model/kernel"}, 2, 90},
}

// mutantsOf returns the mutants of a package and their sources.
func mutantsOf(t *testing.T, folder string) ([]Mutant, map[string][]byte) {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", "{{join .GoFiles \" \"}}", "./"+folder)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	list, err := List(root, folder, files)
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string][]byte{}
	for _, name := range files {
		path := filepath.Join(folder, name)
		if sources[path], err = os.ReadFile(filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
	}
	return list, sources
}

// equivalents returns the mutants that no test can notice, by name, with the reason.
func equivalents(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("equivalent.tsv")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, why, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok || why == "" || list[name] != "" {
			t.Errorf("equivalent.tsv: %q is not one mutant, a tab and a reason", line)
		}
		list[name] = why
	}
	return list
}

func TestEveryMutantIsAnotherProgramAndEveryEquivalentExists(t *testing.T) {
	names := map[string]bool{}
	for _, p := range measured {
		list, sources := mutantsOf(t, p.folder)
		if len(list) < 100 {
			t.Errorf("%s has only %d mutants", p.folder, len(list))
		}
		for i := range list {
			m := &list[i]
			if names[m.String()] {
				t.Errorf("two mutants have the name %v", m)
			}
			names[m.String()] = true
			changed := m.Apply(sources[m.File])
			if bytes.Equal(changed, sources[m.File]) {
				t.Errorf("%v changes nothing", m)
			}
			if i%37 != 0 { // parsing all takes a minute
				continue
			}
			if _, err := parser.ParseFile(token.NewFileSet(), m.File, changed, parser.SkipObjectResolution); err != nil {
				t.Errorf("%v: %v", m, err)
			}
		}
	}
	for name := range equivalents(t) {
		if !names[name] {
			t.Errorf("equivalent.tsv: there is no mutant %s", name)
		}
	}
}
