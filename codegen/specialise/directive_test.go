package specialise

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
)

func readDirectives(t *testing.T, source string) (*program, error) {
	t.Helper()
	p := &program{fset: token.NewFileSet(), noalias: map[*ast.FuncDecl]bool{}, byMode: map[*ast.FuncDecl]bool{}, byProgram: map[*ast.FuncDecl]bool{}}
	file, err := parser.ParseFile(p.fset, "kernel/some.go", source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return p, p.readDirectives(file)
}

func TestADirectiveAppliesToTheFunctionBelowIt(t *testing.T) {
	p, err := readDirectives(t, `package kernel

// one sets dst.
//
//lockstep:noalias
//go:nosplit
func one(dst, x []float64) {}

// two sets dst. The vectors must not overlap, says a comment alone.
func two(dst, x []float64) {}

//lockstep:noalias
func (v *vector) three(x []float64) {}
`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for d := range p.noalias {
		got[d.Name.Name] = true
	}
	if !got["one"] || got["two"] || !got["three"] {
		t.Errorf("noalias: %v", got)
	}
}

func TestABadDirectiveIsRefusedWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ source, at, reason string }{
		"unknown":           {"package kernel\n\n// f is.\n//\n//lockstep:noailas\nfunc f() {}\n", "kernel/some.go:5:1", "unknown"},
		"no name":           {"package kernel\n\n//lockstep:\nfunc f() {}\n", "kernel/some.go:3:1", "unknown"},
		"argument":          {"package kernel\n\n//lockstep:noalias dst\nfunc f() {}\n", "kernel/some.go:3:1", "unknown"},
		"of a type":         {"package kernel\n\n//lockstep:noalias\ntype t int\n", "kernel/some.go:3:1", "not in the doc comment"},
		"of a package":      {"//lockstep:noalias\npackage kernel\n", "kernel/some.go:1:1", "not in the doc comment"},
		"inside":            {"package kernel\n\nfunc f() {\n\t//lockstep:noalias\n}\n", "kernel/some.go:4:2", "not in the doc comment"},
		"above a gap":       {"package kernel\n\n//lockstep:noalias\n\nfunc f() {}\n", "kernel/some.go:3:1", "not in the doc comment"},
		"unknown and stray": {"package kernel\n\nvar x int //lockstep:alias\n", "kernel/some.go:3:11", "unknown"},
	} {
		_, err := readDirectives(t, c.source)
		if !errors.Is(err, errDirective) || !strings.Contains(err.Error(), c.at+": ") || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without the directive the sums of matrix products would be stored to memory after every term.
func TestTheProductsOfTheKernelHaveTheDirective(t *testing.T) {
	p, err := loadTick()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for d := range p.noalias {
		name := d.Name.Name
		if d.Recv != nil {
			name = "." + name
		}
		got[name] = true
	}
	if len(got) != 3 || !got["mul"] || !got["mulPlus"] || !got[".mulAdd"] {
		t.Errorf("noalias: %v", got)
	}
	if len(p.byMode) != 1 {
		t.Errorf("modes: %d functions, want moveInLockSet only", len(p.byMode))
	}
}
