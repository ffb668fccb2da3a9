package rules

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// replayed are the packages in which a replay begins, with those that they import.
var replayed = []string{"./rt/virtual", "./rt"}

// exactMath are the functions of package math with the same bits on every processor. Pow is one with
// the whole exponents of units.
var exactMath = strings.Fields("Abs Ceil Copysign Float32bits Float32frombits Float64bits Float64frombits " +
	"Frexp Inf IsInf IsNaN Ldexp Max Min NaN Pow Round RoundToEven Sqrt")

// bounded are the functions that convert a floating-point number to a whole one. In each of them the
// number is within the range of the result, and no NaN: processors convert other numbers differently.
var bounded = strings.Fields("rt/network.ParseSupply io/dbc.applyAttributes io/dbc.rawValue io/sigmap.rawBits io/sigmap.wrapRaw " +
	"model/kernel.edgeBelow model/kernel.execute model/kernel.exp model/kernel.floor model/kernel.floorTicks " +
	"model/kernel.indicatorMargin model/kernel.maxPeriods model/kernel.quadrant model/kernel.sideBeyond " +
	"io/wire.edges io/wire.floor io/wire.Wheel rt.publish rt.step rt.watched rt/scenario.parseTicks")

// checkedCode is type-checked source, and what a replay computes of it.
type checkedCode struct {
	fset    *token.FileSet
	info    types.Info
	decls   map[types.Object]ast.Node // functions and variables of packages
	methods map[string][]*types.Func  // methods by name
	reached map[ast.Node]bool
	queue   []ast.Node // reached, and not followed yet
}

// load type-checks this module's packages that patterns name, and those that they import.
func (c *checkedCode) load(t *testing.T, patterns []string) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}, patterns...)...)
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	known, export := loaded{}, map[string]string{}
	known[""] = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(export[path]) })
	for from := json.NewDecoder(bytes.NewReader(out)); from.More(); { // a package comes after its imports
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := from.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if export[p.ImportPath] = p.Export; !strings.HasPrefix(p.ImportPath, "lockstep/") {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		pkg, err := (&types.Config{Importer: known}).Check(p.ImportPath, c.fset, files, &c.info)
		if err != nil {
			t.Fatal(err)
		}
		known[p.ImportPath] = checkedPackage{pkg}
		c.index(files)
	}
}

// loaded are importers by path; the one of "" imports all other packages.
type loaded map[string]types.Importer

func (l loaded) Import(path string) (*types.Package, error) {
	if own, ok := l[path]; ok {
		return own.Import(path)
	}
	return l[""].Import(path)
}

// checkedPackage imports itself.
type checkedPackage struct{ *types.Package }

func (p checkedPackage) Import(string) (*types.Package, error) { return p.Package, nil }

// index lists functions and variables, and reaches those of a tick.
func (c *checkedCode) index(files []*ast.File) {
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				c.decls[c.info.Defs[d.Name]] = d
				f := c.info.Defs[d.Name].(*types.Func)
				c.methods[f.Name()] = append(c.methods[f.Name()], f)
				if d.Doc != nil && slices.ContainsFunc(d.Doc.List, func(l *ast.Comment) bool { return l.Text == "//go:nosplit" }) {
					c.reach(d)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							c.decls[c.info.Defs[name]] = v
						}
					}
				}
			}
		}
	}
}

func (c *checkedCode) reach(n ast.Node) {
	if n != nil && !c.reached[n] {
		c.reached[n] = true
		c.queue = append(c.queue, n)
	}
}

// follow reaches all functions and variables that reached ones name, and reports functions of
// package math that are not exact. A method of an interface stands for all methods of its name and type.
func (c *checkedCode) follow(inexact func(at token.Pos, name string)) {
	for len(c.queue) > 0 {
		from := c.queue[0]
		c.queue = c.queue[1:]
		ast.Inspect(from, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := c.info.Uses[id]
			if f, ok := used.(*types.Func); ok {
				used = f.Origin()
				if r := f.Signature().Recv(); r != nil && types.IsInterface(r.Type()) {
					for _, m := range c.methods[f.Name()] {
						if types.Identical(m.Type(), f.Type()) {
							c.reach(c.decls[m])
						}
					}
				} else if f.Pkg() != nil && f.Pkg().Path() == "math" && !slices.Contains(exactMath, f.Name()) {
					inexact(id.Pos(), f.Name())
				}
			}
			c.reach(c.decls[used])
			return true
		})
	}
}

// isFloat reports whether e is a floating-point expression that is no constant.
func (c *checkedCode) isFloat(e ast.Expr) bool {
	v := c.info.Types[e]
	if v.Type == nil || v.Value != nil {
		return false
	}
	b, ok := v.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

// multiplies reports whether x op y is a product for the compiler: a quotient by a power of two is
// a product with its inverse.
func (c *checkedCode) multiplies(op token.Token, y ast.Expr) bool {
	if op == token.MUL || op == token.MUL_ASSIGN {
		return true
	}
	if v := c.info.Types[y].Value; v != nil && (op == token.QUO || op == token.QUO_ASSIGN) {
		x, _ := constant.Float64Val(constant.ToFloat(v))
		part, _ := math.Frexp(math.Abs(x))
		return part == 0.5
	}
	return false
}

// unrounded returns the products in a declaration that the compiler may fuse with a sum, there or
// where the result is used. A product that is converted, compared, multiplied or divided is rounded.
func (c *checkedCode) unrounded(decl ast.Node) (list []ast.Node) {
	var around []ast.Node
	ast.Inspect(decl, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.AssignStmt:
			if c.isFloat(n.Lhs[0]) && c.multiplies(n.Tok, n.Rhs[0]) {
				list = append(list, n)
			}
		case *ast.BinaryExpr:
			if c.isFloat(n) && c.multiplies(n.Op, n.Y) && !c.rounds(around) {
				list = append(list, n)
			}
		}
		around = append(around, n)
		return true
	})
	return list
}

// rounds reports whether the innermost of the nodes around a product rounds it, or does not add.
func (c *checkedCode) rounds(around []ast.Node) bool {
	for _, n := range slices.Backward(around) {
		switch n := n.(type) {
		case *ast.ParenExpr, *ast.UnaryExpr:
			continue
		case *ast.BinaryExpr:
			return n.Op != token.ADD && n.Op != token.SUB
		case *ast.CallExpr:
			return c.info.Types[n.Fun].IsType()
		}
		return false
	}
	return false
}

// conversions returns the conversions of floating-point numbers to whole ones in a declaration.
func (c *checkedCode) conversions(decl ast.Node) (list []ast.Node) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 1 && c.info.Types[call.Fun].IsType() && c.isFloat(call.Args[0]) {
			if to, ok := c.info.Types[call.Fun].Type.Underlying().(*types.Basic); ok && to.Info()&types.IsInteger != 0 {
				list = append(list, call)
			}
		}
		return true
	})
	return list
}

// A compiler may compute x*y + z with one rounding, and does on arm64. A record then has other bits
// there than on amd64. A conversion rounds the product: float64(x*y) + z.
func TestEveryProductThatAReplayComputesIsRounded(t *testing.T) {
	t.Parallel()
	c := checkedCode{fset: token.NewFileSet(), decls: map[types.Object]ast.Node{}, methods: map[string][]*types.Func{}, reached: map[ast.Node]bool{},
		info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	c.load(t, replayed)
	for o, decl := range c.decls {
		if o != nil && o.Name() == "Run" && strings.HasSuffix(c.fset.Position(decl.Pos()).Filename, "/rt/virtual/replay.go") {
			c.reach(decl)
		}
	}
	root, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	place := func(at token.Pos) string { return strings.TrimPrefix(c.fset.Position(at).String(), root+"/") }
	c.follow(func(at token.Pos, name string) {
		t.Errorf("%s: math.%s gives other bits on other processors", place(at), name)
	})
	for decl := range c.reached {
		for _, n := range c.unrounded(decl) {
			t.Errorf("%s: the product is not rounded before a sum: convert it, float64(x*y)", place(n.Pos()))
		}
	}
	unused := slices.Clone(bounded)
	for decl := range c.reached {
		in := filepath.Dir(place(decl.Pos())) + "."
		if f, ok := decl.(*ast.FuncDecl); ok {
			in += f.Name.Name
		}
		for _, n := range c.conversions(decl) {
			if !slices.Contains(bounded, in) {
				t.Errorf("%s: bound the number, then list %s: other numbers have other results on other processors", place(n.Pos()), in)
			}
			unused = slices.DeleteFunc(unused, func(name string) bool { return name == in })
		}
	}
	if len(unused) > 0 {
		t.Errorf("functions without a conversion: %q", unused)
	}
	names := map[string]bool{}
	for o, decl := range c.decls {
		names[o.Name()] = names[o.Name()] || c.reached[decl]
	}
	for _, name := range []string{"Step", "Decode", "Encode", "hornerFour", "NextHeld", "Translate", "parseLevel"} {
		if !names[name] {
			t.Errorf("the test does not reach %s, which a replay calls", name)
		}
	}
}

func TestUnroundedProductsAreFound(t *testing.T) {
	t.Parallel()
	const head = "package p\nfunc g(float64) float64\nfunc f(x, y, z float64, n int) (r float64) {\n"
	for body, want := range map[string]int{
		"return float64(x*y) + z":                  0,
		"return x*y + z":                           1,
		"return z - -(x * y)":                      1,
		"z += x * y; return z":                     1,
		"z *= x; return z + y":                     1,
		"z = float64(z * x); return z + y":         0,
		"p := x * y; return p + z":                 1,
		"return x * y":                             1,
		"return g(x*y) + z":                        1,
		"return x / 4 + z":                         1,
		"return x / 3 + z":                         0,
		"return x*y/z + z":                         0,
		"if x*y > z { return 2 * 3 }; return z":    0,
		"m := n*n + n; return z + float64(m)":      0,
		"return float64((x+y)*z) - float64(x*y*z)": 0,
	} {
		c := checkedCode{fset: token.NewFileSet(), info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
		f, err := parser.ParseFile(c.fset, "p.go", head+body+"\n}\n", 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (&types.Config{}).Check("p", c.fset, []*ast.File{f}, &c.info); err != nil {
			t.Fatal(err)
		}
		if got := len(c.unrounded(f)); got != want {
			t.Errorf("%s: found %d products, want %d", body, got, want)
		}
	}
}
