package specialise

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"
)

// A loop counts between known numbers only if its body changes neither its variable nor its end.
func TestLoopsWhoseEndChangesAreNotCounted(t *testing.T) {
	for loop, want := range map[string]int64{
		"for i := 1; i < n; i++ {}":                     4,
		"for i := 1; i < n-2; i++ { m = i }":            2,
		"for i := 1; i < n; i++ { n = 3 }":              0,
		"for i := 1; i < n-2; i++ { if i > 1 { n-- } }": 0,
		"for i := 1; i < n; i++ { i++ }":                0,
		"for i := 1; i <= n; i++ {}":                    0,
		"for i := 1; m < n; i++ {}":                     0,
		"for i := 1; i < n; m++ {}":                     0,
	} {
		p := &program{fset: token.NewFileSet(), info: &types.Info{
			Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{},
		}}
		file, err := parser.ParseFile(p.fset, "loop.go", "package loop; func f(n, m int) { "+loop+" }", parser.SkipObjectResolution)
		if err == nil {
			_, err = (&types.Config{}).Check("loop", p.fset, []*ast.File{file}, p.info)
		}
		if err != nil {
			t.Fatal(err)
		}
		f := &frame{spec: &spec{program: p}, fn: &fn{bound: unlimited, strict: unlimited}, vars: map[types.Object]binding{}}
		for id, obj := range p.info.Defs {
			switch id.Name {
			case "n":
				f.vars[obj] = binding{val: wholeNumber(5)}
			case "m", "i":
				f.vars[obj] = binding{val: wholeNumber(1)}
			}
		}
		id, from, count := f.counts(file.Decls[0].(*ast.FuncDecl).Body.List[0].(*ast.ForStmt))
		if count != want || (id != nil) != (want > 0) || id != nil && from != 1 {
			t.Errorf("%s: counts %d times from %d, want %d", loop, count, from, want)
		}
	}
}
