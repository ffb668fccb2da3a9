package codegen_test

import (
	"archive/zip"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"lockstep/codegen"
	"lockstep/rt/gen"
	"lockstep/rt/guide"
)

// row matches the first column of a row in a table of the guide, if it is code.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// firstColumn returns the first column of table n of a section, n from 0.
func firstColumn(t *testing.T, topic string, n int) (list []string) {
	t.Helper()
	s, _ := guide.Guide{Source: codegen.Guide}.Section(topic)
	tables := strings.Split(string(s.Source), "\n|---")
	if len(tables) < n+2 {
		t.Fatalf("section %s has no table %d", topic, n)
	}
	text, _, _ := strings.Cut(tables[n+1], "\n\n")
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// compareSets compares a list of the guide with that of the product, in any order.
func compareSets(t *testing.T, subject string, guide, product []string) {
	t.Helper()
	guide, product = slices.Sorted(slices.Values(guide)), slices.Sorted(slices.Values(product))
	if product = slices.Compact(product); !slices.Equal(guide, product) {
		t.Errorf("%s: the guide lists %q, the product has %q", subject, guide, product)
	}
}

// block returns code block n of the guide in a language, n from 0.
func block(t *testing.T, language string, n int) string {
	t.Helper()
	for _, b := range (guide.Guide{Source: codegen.Guide}).Blocks() {
		if b.Language == language {
			if n--; n < 0 {
				return b.Text
			}
		}
	}
	t.Fatalf("the guide has too few code blocks in %s", language)
	return ""
}

// generated runs a request for the guide's plant, or for a bench, in a new current folder.
func generated(t *testing.T, folder string, r gen.Request) {
	t.Helper()
	t.Chdir(t.TempDir())
	if r.Dir = folder; r.Bench == "" {
		r.Plant = "flywheel.yaml"
		write(t, r.Plant, block(t, "yaml", 0))
	}
	if err := r.Run(t.Output()); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// output runs a command and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		list = append(list, name)
	}
	return list
}

func TestGuideGoProgramRuns(t *testing.T) {
	generated(t, "flywheel", gen.Request{})
	compareSets(t, "files in Go", firstColumn(t, "go-kernel", 0), names(t, "flywheel"))
	var listed []string
	for _, name := range firstColumn(t, "go-kernel", 1) {
		name, _, _ = strings.Cut(name, "(")
		listed = append(listed, name)
	}
	compareSets(t, "names in Go", listed, exported(t, "flywheel"))

	write(t, "main.go", block(t, "go", 0))
	output(t, "go", "mod", "init", "rig")
	if got, want := output(t, "go", "run", "."), block(t, "text", 0); got != want {
		t.Errorf("the program prints %q, the guide shows %q", got, want)
	}
}

// exported returns the exported names of a package, with methods.
func exported(t *testing.T, folder string) (list []string) {
	t.Helper()
	for _, name := range names(t, folder) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(folder, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				list = append(list, d.Name.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						list = append(list, s.Name.Name)
					case *ast.ValueSpec:
						for _, n := range s.Names {
							list = append(list, n.Name)
						}
					}
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(name string) bool { return !ast.IsExported(name) })
}

func TestGuideCProgramRuns(t *testing.T) {
	generated(t, "kernel", gen.Request{Lang: "c"})
	compareSets(t, "files in C", []string{"flywheel.c", "flywheel.h"}, names(t, "kernel"))
	header, err := os.ReadFile("kernel/flywheel.h")
	if err != nil {
		t.Fatal(err)
	}
	var listed, declared []string
	for _, name := range firstColumn(t, "c-kernel", 0) {
		name, _, _ = strings.Cut(name, "(")
		listed = append(listed, name)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:\} |#define |extern .*|[a-z ]+)\b((?i:flywheel)_\w+)(?:;|\(| "?[\da-f]|\[\];)`).FindAllStringSubmatch(string(header), -1) {
		declared = append(declared, m[1])
	}
	for _, m := range regexp.MustCompile(`\b(flywheel_\w+)\[\]`).FindAllStringSubmatch(string(header), -1) {
		declared = append(declared, m[1])
	}
	compareSets(t, "names in C", listed, declared)

	write(t, "main.c", block(t, "c", 0))
	last := strings.Split(strings.TrimSpace(block(t, "sh", 2)), "\n")
	words := strings.Fields(last[0])
	output(t, words[0], append(words[1:], "-Wall", "-Wextra", "-Werror")...)
	lines := strings.SplitAfter(block(t, "text", 0), "\n")
	if got, want := output(t, last[1]), lines[len(lines)-2]; got != want {
		t.Errorf("the program prints %q, the guide shows %q", got, want)
	}
}

func TestGuideListsTheFilesOfAnFMU(t *testing.T) {
	var packed []string
	for _, version := range []int{2, 3} {
		generated(t, "fmu", gen.Request{FMU: version})
		file, err := zip.OpenReader("fmu/flywheel.fmu")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range file.File {
			packed = append(packed, f.Name)
		}
		file.Close()
	}
	listed := firstColumn(t, "fmu", 0)
	for i, name := range listed {
		if strings.HasSuffix(name, "fmi3-slave.c") {
			listed = append(listed, strings.Replace(name, "3", "2", 1))
		}
		if other := map[string]string{"amd64": "aarch64", "arm64": "x86_64"}[runtime.GOARCH]; strings.HasPrefix(name, "binaries/"+other) {
			packed = append(packed, listed[i])
		}
	}
	compareSets(t, "files of an FMU", listed, packed)
}

func TestGuideTargetIsBuilt(t *testing.T) {
	generated(t, "target", gen.Request{Bench: "powershift-bench"})
	compareSets(t, "files of a target", firstColumn(t, "target-executable", 0), names(t, "target"))
	output(t, "go", "build", "-C", "target", "-o", "../mine.target", ".")
	if _, err := gen.ReadMark("mine.target"); err != nil {
		t.Error(err)
	}
}

func TestGuideListsTheFlagsOfGen(t *testing.T) {
	var offered, listed []string
	for _, m := range regexp.MustCompile(`(?m)^  (-\w+)`).FindAllStringSubmatch(output(t, "go", "run", "lockstep/rt/cmd/lockstep", "gen", "-h"), -1) {
		offered = append(offered, m[1])
	}
	for _, name := range firstColumn(t, "flags-of-gen", 0) {
		name, _, _ = strings.Cut(name, " ")
		listed = append(listed, name)
	}
	compareSets(t, "flags", listed, offered)
}

// The marker line quotes the path of the plant. It must stay one line in C, however long the path
// is.
func TestGenWithALongPlantPathWritesToItsFolderAgain(t *testing.T) {
	for name, r := range map[string]gen.Request{"c": {Lang: "c"}, "fmu": {FMU: 3}} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			folder := strings.Repeat("a folder, with = and - and + in its name/", 4)
			if err := os.MkdirAll(folder, 0o777); err != nil {
				t.Fatal(err)
			}
			r.Plant, r.Dir = folder+"flywheel.yaml", "out"
			write(t, r.Plant, block(t, "yaml", 0))
			var report strings.Builder
			for range 2 {
				if err := r.Run(&report); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(report.String(), "sources only") {
				t.Errorf("the sources of the FMU do not compile:\n%s", report.String())
			}
		})
	}
}
