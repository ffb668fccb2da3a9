package kernel

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// untold are constants that are not numbers of the method but names of cases.
var untold = []string{"noEvent", "polynomial", "tooMany", "Impact", "Backward", "Stuck", "Forward", "Free"}

// valueOf evaluates an expression of numbers only.
func valueOf(e ast.Expr) (v constant.Value, ok bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.ToFloat(constant.MakeFromLiteral(e.Value, e.Kind, 0)), e.Kind != token.STRING
	case *ast.BinaryExpr:
		x, okX := valueOf(e.X)
		y, okY := valueOf(e.Y)
		if okX && okY {
			return constant.BinaryOp(x, e.Op, y), true
		}
	}
	return nil, false
}

// numbers returns the constants of the package by name, without those of elementary.go.
func numbers(t *testing.T) map[string]float64 {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]float64{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || name == "elementary.go" {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				s := spec.(*ast.ValueSpec)
				for i, value := range s.Values {
					if v, ok := valueOf(value); ok && !slices.Contains(untold, s.Names[i].Name) {
						list[s.Names[i].Name], _ = constant.Float64Val(v)
					}
				}
			}
		}
	}
	return list
}

var toleranceRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^ ]+) \\|")

func TestGuideListsTheTolerances(t *testing.T) {
	_, section, _ := strings.Cut(string(Method), "\n## Tolerances\n")
	section, _, _ = strings.Cut(section, "\n## ")
	have, told := numbers(t), map[string]bool{}
	for _, m := range toleranceRow.FindAllStringSubmatch(section, -1) {
		told[m[1]] = true
		v, ok := have[m[1]]
		if want, err := strconv.ParseFloat(m[2], 64); !ok || err != nil || v != want {
			t.Errorf("%s is %g, the guide says %s (%v)", m[1], v, m[2], err)
		}
	}
	for name, v := range have {
		if !told[name] {
			t.Errorf("the guide does not list %s = %g", name, v)
		}
	}
	if len(have) < 40 {
		t.Errorf("only %d constants were found", len(have))
	}
}
