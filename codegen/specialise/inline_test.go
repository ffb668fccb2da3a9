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
	if once > len(functions)/4 || jumps == 0 {
		t.Errorf("%d of %d functions have one call; %d jumps", once, len(functions), jumps)
	}
}

func TestOperandsBehindAnOperatorAreEvaluatedOnlyIfNeeded(t *testing.T) {
	for _, c := range []struct {
		before, after string
		at            int
		or            bool
	}{
		{"a && ", "", 2, false},
		{"a || b && ", "", 2, true},
		{"a && b || ", "", 7, true},
		{"(a || b) && ", "", 9, false},
		{"a + (b && ", ")", -1, false},
		{"x, a && ", "", -1, false},
		{"a && ", ", x", -1, false},
		{"k.x[i&7] + ", "", -1, false},
		{"a && ", " || b || c", 9, true}, // b counts also where a is false
		{"a || b && ", " || c", 2, true},
		{"a && ", " && b", 2, false},
		{"(a && ", ") || b", -1, false},
		{"", " || b", -1, false},
		{"", "", -1, false},
	} {
		if at, or := lastOperator(c.before+"f()"+c.after, len(c.before)); at != c.at || or != c.or {
			t.Errorf("%q f() %q: operator at %d, || %v, want %d, %v", c.before, c.after, at, or, c.at, c.or)
		}
	}
}

// inlinedText returns the statements of caller after the calls of callee in it are inlined.
func inlinedText(caller, callee *fn, others ...*fn) string {
	s := &spec{order: append(append(others, callee), caller), used: map[string]bool{}, pureFuncs: map[string]bool{}}
	for _, g := range s.order {
		g.decl, g.names = &ast.FuncDecl{Name: ast.NewIdent(g.name)}, map[string]int{}
		for _, n := range g.args {
			g.names[n] = 1
		}
		for st := range all(g.body) {
			for _, n := range st.names {
				g.names[n] = 1
			}
		}
	}
	caller.entry = true
	s.inlineCalls()
	var b strings.Builder
	write(&b, caller.body)
	return b.String()
}

// A callee may assign to its parameter; the variable of the caller keeps its value.
func TestInlinedFunctionDoesNotAssignToVariablesOfItsCaller(t *testing.T) {
	float := types.Typ[types.Float64]
	callee := &fn{name: "half", params: []string{"x float64"}, args: []string{"x"}, results: []types.Type{float}, body: []*stmt{
		{kind: set, names: []string{"x"}, text: " *= ", right: "0.5", pure: true},
		{kind: line, text: "return x"},
	}}
	caller := &fn{name: "tick", body: []*stmt{
		{kind: declare, names: []string{"x"}, right: "u[0]", pure: true},
		{kind: set, names: []string{"y[0]"}, right: "half(x)"},
		{kind: set, names: []string{"y[1]"}, right: "x"},
	}}
	want := "x := u[0]\nx2 := x\nx2 *= 0.5\ny[0] = x2\ny[1] = x\n"
	if got := inlinedText(caller, callee); got != want {
		t.Errorf("inlined:\n%s\nwant\n%s", got, want)
	}
}

// The caller does not use the result of a function that returns that of another one.
func TestInlinedFunctionKeepsTheCallOfItsReturn(t *testing.T) {
	boolean := []types.Type{types.Typ[types.Bool]}
	jump := func(name string) *stmt {
		return &stmt{kind: line, text: "return jump." + name + "(k)"}
	}
	for name, body := range map[string][]*stmt{
		"one return":  {jump("move")},
		"two returns": {{kind: branch, text: "k.on", body: []*stmt{jump("move")}}, {kind: line, text: "return true"}},
	} {
		moves := &fn{name: "move", indirect: true, effects: true, entry: true, results: boolean}
		callee := &fn{name: "locate", method: true, effects: true, results: boolean, body: body}
		caller := &fn{name: "tick", body: []*stmt{
			{kind: line, text: "k.locate()"},
			{kind: set, names: []string{"k.on"}, right: "true"},
		}}
		if got := inlinedText(caller, callee, moves); !strings.Contains(got, "jump.move(k)\n") || strings.Contains(got, "return") {
			t.Errorf("%s, inlined:\n%s", name, got)
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
