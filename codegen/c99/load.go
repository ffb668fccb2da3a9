package c99

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// tickText is the Go text of a generated package, parsed and type-checked.
type tickText struct {
	fset    *token.FileSet
	files   []*ast.File
	info    *types.Info
	pkg     *types.Package
	funcs   map[*types.Func]*ast.FuncDecl
	values  map[types.Object]*ast.ValueSpec // constants and variables of the package
	structs map[*types.TypeName]*ast.TypeSpec
	docs    map[types.Object]*ast.CommentGroup
	order   map[types.Object]int // position in the text of each declaration of the package

	callTable map[types.Object]*types.Func // functions of indirect calls, by the field that holds them
}

// refusal is the error of Go text that the translator does not support.
type refusal struct {
	at     token.Position
	reason string
}

func (r refusal) Error() string { return fmt.Sprintf("c99: %s: unsupported: %s", r.at, r.reason) }

// refuse ends a translation with an error, which Translate returns.
func (t *tickText) refuse(n ast.Node, format string, args ...any) {
	panic(refusal{t.fset.Position(n.Pos()), fmt.Sprintf(format, args...)})
}

// loadTick parses and type-checks Go files, given by name.
func loadTick(texts map[string][]byte) (*tickText, error) {
	t := &tickText{
		fset: token.NewFileSet(), funcs: map[*types.Func]*ast.FuncDecl{}, values: map[types.Object]*ast.ValueSpec{},
		structs: map[*types.TypeName]*ast.TypeSpec{}, callTable: map[types.Object]*types.Func{},
		order: map[types.Object]int{}, docs: map[types.Object]*ast.CommentGroup{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Scopes: map[ast.Node]*types.Scope{},
		},
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		f, err := parser.ParseFile(t.fset, name, texts[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("c99: %w", err)
		}
		t.files = append(t.files, f)
	}

	conf := types.Config{Importer: standardImporter{}, Sizes: types.SizesFor("gc", "amd64")}
	var err error
	if t.pkg, err = conf.Check("tick", t.fset, t.files, t.info); err != nil {
		return nil, fmt.Errorf("c99: %w", err)
	}
	t.collect()
	return t, nil
}

// collect records the declarations of the package.
func (t *tickText) collect() {
	add := func(o types.Object) {
		if o != nil {
			t.order[o] = len(t.order)
		}
	}

	for _, f := range t.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if d.Recv == nil && d.Name.Name == "init" {
					t.readCallTable(d)
					continue
				}

				fn := t.info.Defs[d.Name].(*types.Func)
				t.funcs[fn] = d
				add(fn)
				continue
			}

			gen := d.(*ast.GenDecl)
			for _, s := range gen.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					o := t.info.Defs[s.Name].(*types.TypeName)
					t.structs[o] = s
					t.docs[o] = docOf(gen, s.Doc)
					add(o)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						o := t.info.Defs[name]
						t.values[o] = s
						add(o)
					}
				}
			}
		}
	}
}

// docOf returns the comment of a declaration: its own comment, or the comment above the keyword if
// the declaration has no parentheses.
func docOf(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if own == nil && !d.Lparen.IsValid() {
		return d.Doc
	}
	return own
}

// readCallTable records the functions that init assigns to the fields of a variable. The tick calls
// them through this variable to restart the linker's count of its stack; in C the calls are direct.
func (t *tickText) readCallTable(init *ast.FuncDecl) {
	for _, s := range init.Body.List {
		if a, ok := s.(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
			if field, ok := a.Lhs[0].(*ast.SelectorExpr); ok {
				if fn := t.function(a.Rhs[0]); fn != nil {
					t.callTable[t.info.Uses[field.Sel]] = fn
				}
			}
		}
	}
}

// builtinName returns the name of the built-in function that a call calls; "" for another function or no call.
func (t *tickText) builtinName(c *ast.CallExpr) string {
	if c == nil {
		return ""
	}
	if id, ok := ast.Unparen(c.Fun).(*ast.Ident); ok {
		if b, ok := t.info.Uses[id].(*types.Builtin); ok {
			return b.Name()
		}
	}
	return ""
}

// function returns the function of the text that an expression names: f, k.f, (*Kernel).f or a
// field of an indirect call; otherwise nil.
func (t *tickText) function(e ast.Expr) *types.Func {
	var o types.Object
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		o = t.info.Uses[e]
	case *ast.SelectorExpr:
		o = t.info.Uses[e.Sel]
	}

	if fn, ok := o.(*types.Func); ok {
		return fn
	}
	return t.callTable[o]
}

// standardImporter imports the packages that a tick may import.
type standardImporter struct{}

func (standardImporter) Import(path string) (*types.Package, error) { return StandardPackage(path) }

// StandardPackage returns the part of a package of the standard library that a tick may use. path
// is "math" or "math/bits"; another path is an error. The package has declarations without bodies
// and needs no Go toolchain.
func StandardPackage(path string) (*types.Package, error) {
	text, ok := standardLibrary[path]
	if !ok {
		return nil, fmt.Errorf("package %q is not available to a tick; use math or math/bits", path)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path+".go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	conf := types.Config{IgnoreFuncBodies: true}
	return conf.Check(path, fset, []*ast.File{f}, nil)
}

// standardLibrary declares the parts of the standard library that a tick may use, by import path.
var standardLibrary = map[string]string{
	"math": `package math
const (
	Pi = 3.14159265358979323846264338327950288419716939937510582097494459
	Ln2 = 0.693147180559945309417232121458176568075500134360255254120680009
	Log2E = 1 / Ln2
	MaxFloat64 = 0x1p1023 * (1 + (1 - 0x1p-52))
	MaxInt = 1<<63 - 1
)
func Abs(x float64) float64
func Sqrt(x float64) float64
func Copysign(f, sign float64) float64
func Float64bits(f float64) uint64
func Float64frombits(b uint64) float64
func Inf(sign int) float64
func NaN() float64
`,
	"math/bits": `package bits
func Mul64(x, y uint64) (hi, lo uint64)
func Add64(x, y, carry uint64) (sum, carryOut uint64)
func Sub64(x, y, borrow uint64) (diff, borrowOut uint64)
func LeadingZeros64(x uint64) int
func TrailingZeros64(x uint64) int
func OnesCount64(x uint64) int
`,
}
