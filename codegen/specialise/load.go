package specialise

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"lockstep/codegen/c99"
	"lockstep/model"
	"lockstep/model/kernel"
)

// program is the checked source of the tick.
type program struct {
	fset          *token.FileSet
	info          *types.Info
	pkg           *types.Package
	funcs         map[types.Object]*ast.FuncDecl
	kernelMethods map[string]*ast.FuncDecl // methods of Kernel by name
	vars          map[types.Object]ast.Expr
	reassigned    map[types.Object]bool // variables that are assigned after their declaration

	noalias   map[*ast.FuncDecl]bool // functions with the directive noalias
	byMode    map[*ast.FuncDecl]bool // functions with the directive modes
	byProgram map[*ast.FuncDecl]bool // functions with the directive programs
	errors    []error                // errors of the type checker, outside the tick
}

// loadTick parses and checks the source that the binary carries, once.
var loadTick = sync.OnceValues(func() (*program, error) {
	p := &program{
		fset: token.NewFileSet(), funcs: map[types.Object]*ast.FuncDecl{}, kernelMethods: map[string]*ast.FuncDecl{},
		vars: map[types.Object]ast.Expr{}, reassigned: map[types.Object]bool{}, noalias: map[*ast.FuncDecl]bool{},
		byMode: map[*ast.FuncDecl]bool{}, byProgram: map[*ast.FuncDecl]bool{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
			Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
		},
	}
	known := tickImports{}
	for _, name := range []string{"math", "math/bits"} {
		var err error
		if known[name], err = c99.StandardPackage(name); err != nil {
			return nil, err
		}
	}

	if _, err := p.load("lockstep/model", model.Text, known); err != nil {
		return nil, err
	}
	files, err := p.load("lockstep/model/kernel", kernel.Text, known)
	if err != nil {
		return nil, err
	}
	p.pkg = known["lockstep/model/kernel"]
	for _, f := range files {
		for _, d := range f.Decls {
			p.index(d)
		}
	}

	return p, nil
})

// tickImports are the packages to which the tick's source may refer. Code that refers to other
// packages is not part of a tick.
type tickImports map[string]*types.Package

// Import returns a package of the tick, or an empty package for any other path.
func (t tickImports) Import(name string) (*types.Package, error) {
	if p := t[name]; p != nil {
		return p, nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// load parses and checks a package.
func (p *program) load(name string, text fs.FS, known tickImports) ([]*ast.File, error) {
	names, err := fs.Glob(text, "*.go")
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, n := range names {
		content, err := fs.ReadFile(text, n)
		if err != nil {
			return nil, err
		}
		at := path.Join(path.Base(name), n)
		file, err := parser.ParseFile(p.fset, at, content, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("codegen: %w", err)
		}
		if err := p.readDirectives(file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}

	// The check continues after unknown names, such as those of other packages: they are not part
	// of a tick.
	conf := types.Config{Importer: known, Error: func(err error) { p.errors = append(p.errors, err) }}
	known[name], _ = conf.Check(name, p.fset, files, p.info)
	return files, nil
}

// index records functions, package variables, and variables that are assigned after their
// declaration.
func (p *program) index(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		p.funcs[p.info.Defs[d.Name]] = d
		if d.Recv != nil && types.ExprString(d.Recv.List[0].Type) == "*Kernel" {
			p.kernelMethods[d.Name.Name] = d
		}
		for _, n := range names(d.Type.Results) {
			p.reassigned[p.info.Defs[n]] = true
		}
		for _, id := range assignedNames(d) {
			if obj := p.info.Uses[id]; obj != nil {
				p.reassigned[obj] = true
			}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
				for i, value := range v.Values {
					p.vars[p.info.Defs[v.Names[i]]] = value
				}
			}
		}
	}
}

// assignedNames lists the names that statements in a node declare or assign to.
func assignedNames(node ast.Node) (list []*ast.Ident) {
	ast.Inspect(node, func(n ast.Node) bool {
		var to []ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			to = n.Lhs
		case *ast.IncDecStmt:
			to = []ast.Expr{n.X}
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				to = []ast.Expr{n.Key, n.Value}
			}
		}

		for _, e := range to {
			if id, ok := e.(*ast.Ident); ok {
				list = append(list, id)
			}
		}

		return true
	})
	return list
}

// assignedIn lists the variables declared outside of statements and assigned in them.
func (p *program) assignedIn(nodes ...ast.Stmt) (list []types.Object) {
	inside := map[types.Object]bool{}
	for _, node := range nodes {
		if node == nil {
			continue
		}
		for _, id := range assignedNames(node) {
			if obj := p.info.Defs[id]; obj != nil {
				inside[obj] = true
			}
			if obj := p.info.Uses[id]; obj != nil && !inside[obj] && !slices.Contains(list, obj) {
				list = append(list, obj)
			}
		}
	}

	return list
}

// directivePrefix begins a comment by which the kernel's source steers code generation.
//
//	//lockstep:noalias
//
// in the doc comment of a function says that a vector to which the function assigns overlaps none
// of its other vectors. Generated code may then add up the rows of a product one after the other.
//
//	//lockstep:modes
//
// says that the last parameter is the number of a mode of the plant, that the states x1 and the slips
// slip1 are set before they are read in the function, and that nothing reads them after it. Generated
// code has the function once for each mode if there are at most maxModes (modes.go).
//
//	//lockstep:programs
//
// says that the first parameter is a program of the kernel. Where the tick computes which one, generated code has
// the function once for each class of programs (programs.go).
const directivePrefix = "//lockstep:"

// errDirective is the error of a directive that is unknown or stands where it has no effect.
var errDirective = errors.New("bad directive")

// readDirectives records the functions that have a directive.
func (p *program) readDirectives(file *ast.File) error {
	decls := map[*ast.CommentGroup]*ast.FuncDecl{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Doc != nil {
			decls[f.Doc] = f
		}
	}

	sets := map[string]map[*ast.FuncDecl]bool{"noalias": p.noalias, "modes": p.byMode, "programs": p.byProgram}
	for _, group := range file.Comments {
		for _, c := range group.List {
			name, ok := strings.CutPrefix(c.Text, directivePrefix)
			if !ok {
				continue
			}
			reason := ""
			switch d, set := decls[group], sets[name]; {
			case set == nil:
				reason = "unknown; write " + directivePrefix + "modes, noalias or programs"
			case d == nil:
				reason = "not in the doc comment of a function"
			default:
				set[d] = true
				continue
			}

			return fmt.Errorf("codegen: %s: %w %s: %s", p.fset.Position(c.Pos()), errDirective, c.Text, reason)
		}
	}

	return nil
}
