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

// tickText is the Go text of a generated package, parsed and checked.
type tickText struct {
	fset    *token.FileSet
	files   []*ast.File
	info    *types.Info
	pkg     *types.Package
	funcs   map[*types.Func]*ast.FuncDecl
	values  map[types.Object]*ast.ValueSpec // constants and variables of the package
	structs map[*types.TypeName]*ast.TypeSpec
	jumps   map[types.Object]*types.Func // fields of a table of functions: what they hold
	docs    map[types.Object]*ast.CommentGroup
	order   map[types.Object]int // place in the text of all that stands at package level
}

// refusal is a place in the Go text that is not in what is translated.
type refusal struct {
	at     token.Position
	reason string
}

func (r refusal) Error() string { return fmt.Sprintf("c99: %s: %s", r.at, r.reason) }

// refuse ends a translation; translate gives the error.
func (t *tickText) refuse(n ast.Node, format string, args ...any) {
	panic(refusal{t.fset.Position(n.Pos()), fmt.Sprintf(format, args...)})
}

// loadTick parses and checks files of Go by their names.
func loadTick(texts map[string][]byte) (*tickText, error) {
	t := &tickText{
		fset: token.NewFileSet(), funcs: map[*types.Func]*ast.FuncDecl{}, values: map[types.Object]*ast.ValueSpec{},
		structs: map[*types.TypeName]*ast.TypeSpec{}, jumps: map[types.Object]*types.Func{},
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

	conf := types.Config{Importer: standard{}, Sizes: types.SizesFor("gc", "amd64")}
	var err error
	if t.pkg, err = conf.Check("tick", t.fset, t.files, t.info); err != nil {
		return nil, fmt.Errorf("c99: %w", err)
	}
	t.collect()
	return t, nil
}

// collect notes what stands at package level.
func (t *tickText) collect() {
	note := func(o types.Object) {
		if o != nil {
			t.order[o] = len(t.order)
		}
	}

	for _, f := range t.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if d.Recv == nil && d.Name.Name == "init" {
					t.setJumps(d)
					continue
				}

				fn := t.info.Defs[d.Name].(*types.Func)
				t.funcs[fn] = d
				note(fn)
				continue
			}

			gen := d.(*ast.GenDecl)
			for _, s := range gen.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					o := t.info.Defs[s.Name].(*types.TypeName)
					t.structs[o] = s
					t.docs[o] = docOf(gen, s.Doc)
					note(o)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						o := t.info.Defs[name]
						t.values[o] = s
						note(o)
					}
				}
			}
		}
	}
}

// docOf is what stands above a declaration: of one that is alone, what stands above all.
func docOf(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if own == nil && !d.Lparen.IsValid() {
		return d.Doc
	}
	return own
}

// setJumps notes the functions that an init puts into a table of functions: the tick's calls
// that start its stack anew are plain calls in C.
func (t *tickText) setJumps(init *ast.FuncDecl) {
	for _, s := range init.Body.List {
		if a, ok := s.(*ast.AssignStmt); ok && len(a.Lhs) == 1 {
			if field, ok := a.Lhs[0].(*ast.SelectorExpr); ok {
				if fn := t.function(a.Rhs[0]); fn != nil {
					t.jumps[t.info.Uses[field.Sel]] = fn
				}
			}
		}
	}
}

// function is what an expression names, if it names a function of the text: f, k.f,
// (*Kernel).f or a field of a table of functions.
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
	return t.jumps[o]
}

// standard imports what a tick may import.
type standard struct{}

func (standard) Import(path string) (*types.Package, error) { return Standard(path) }

// Standard is what a tick may use of the standard library's package at path, "math" or
// "math/bits": declarations without bodies, checked without a Go toolchain. Of other
// packages nothing is known; they are an error.
func Standard(path string) (*types.Package, error) {
	text, ok := imports[path]
	if !ok {
		return nil, fmt.Errorf("package %s is not in what is translated", path)
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path+".go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	conf := types.Config{IgnoreFuncBodies: true}
	return conf.Check(path, fset, []*ast.File{f}, nil)
}

// imports declares the parts of the standard library that a tick may use.
var imports = map[string]string{
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
