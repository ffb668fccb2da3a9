package specialise

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/hil_test/rig"
	"lockstep/model/kernel"
)

// withCalls returns the files of a kernel in which no call is inlined.
func withCalls(t *testing.T, tables *kernel.Tables) (map[string][]byte, Report) {
	t.Helper()
	p := Plant{Tables: tables, Package: "plant"}
	s, err := newSpec(&p)
	if err == nil {
		err = s.runPasses(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, report, err := s.files(&p)
	if err != nil {
		t.Fatal(err)
	}
	return files, report
}

// A function with one call remains only where its caller would need too much stack or become too long.
func TestFunctionsWithOneCallAreInlined(t *testing.T) {
	tables, err := kernel.Prepare(rig.Assemble(t, "coupled-clutches"), kernel.Options{Period: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := Generate(Plant{Tables: tables, Package: "clutches"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "tick.go", files["tick.go"], parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}

	calls, jumps, functions := map[string]int{}, 0, []string{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := types.ExprString(n.Fun)
			calls[name[strings.LastIndex(name, ".")+1:]]++
		case *ast.BranchStmt:
			if n.Tok == token.GOTO {
				jumps++
			}
		case *ast.FuncDecl:
			functions = append(functions, n.Name.Name)
		}
		return true
	})
	for _, name := range []string{"stepQuiet", "holdInputs", "moveInLockSet0"} {
		if slices.Contains(functions, name) {
			t.Errorf("the quiet tick calls %s", name)
		}
	}
	once := 0
	for _, name := range functions {
		if calls[name] == 1 {
			once++
		}
	}
	t.Logf("%d functions, %d with one call; %d jumps to the end of a block", len(functions), once, jumps)
	if once > len(functions)/2 || len(functions) > 80 || jumps == 0 {
		t.Errorf("%d of %d functions have one call; %d jumps", once, len(functions), jumps)
	}
}

func TestOperandsBehindAnOperatorAreEvaluatedOnlyIfNeeded(t *testing.T) {
	for _, c := range []struct {
		before string
		at     int
		or     bool
	}{
		{"a && ", 2, false},
		{"a || b && ", 2, true},
		{"a && b || ", 7, true},
		{"(a || b) && ", 9, false},
		{"a + (b && ", -1, false},
		{"x, a && ", -1, false},
		{"k.x[i&7] + ", -1, false},
		{"", -1, false},
	} {
		if at, or := lastOperator(c.before); at != c.at || or != c.or {
			t.Errorf("%q: operator at %d, || %v, want %d, %v", c.before, at, or, c.at, c.or)
		}
	}
}

func TestNumbersGetATypeWhereAParameterIsDeclared(t *testing.T) {
	for text, want := range map[string]bool{
		"0": true, "-1.5e-09": true, "0x1ffff": true, "1e+300": true,
		"": false, "-": false, "a": false, "-a": false, "1 == x": false, "2 + i": false, "true": false, "math.Inf(1)": false,
	} {
		if got := isLiteral(text); got != want {
			t.Errorf("%q is a number: %v, want %v", text, got, want)
		}
	}
}
