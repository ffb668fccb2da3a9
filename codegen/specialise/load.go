package specialise

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"strings"
	"sync"

	"lockstep/codegen/c99"
	"lockstep/model"
	"lockstep/model/kernel"
)

// program is the checked source of the tick.
type program struct {
	fset  *token.FileSet
	info  *types.Info
	pkg   *types.Package
	funcs map[types.Object]*ast.FuncDecl
	named map[string]*ast.FuncDecl // methods of Kernel by name
	vars  map[types.Object]ast.Expr
	multi map[types.Object]bool // variables that are assigned after their declaration

	noalias map[*ast.FuncDecl]bool // functions with the directive noalias
	errors  []error                // of the type checker, about what is no tick
}

// loadTick parses and checks the source that the binary carries, once.
var loadTick = sync.OnceValues(func() (*program, error) {
	p := &program{
		fset: token.NewFileSet(), funcs: map[types.Object]*ast.FuncDecl{}, named: map[string]*ast.FuncDecl{},
		vars: map[types.Object]ast.Expr{}, multi: map[types.Object]bool{}, noalias: map[*ast.FuncDecl]bool{},
		info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Implicits: map[ast.Node]types.Object{},
		},
	}
	known := tickImports{}
	for _, name := range []string{"math", "math/bits"} {
		var err error
		if known[name], err = c99.Standard(name); err != nil {
			return nil, err
		}
	}
	if _, err := p.load("lockstep/model", model.Text(), known); err != nil {
		return nil, err
	}
	files, err := p.load("lockstep/model/kernel", kernel.Text(), known)
	if err != nil {
		return nil, err
	}
	p.pkg = known["lockstep/model/kernel"]
	for _, f := range files {
		p.index(f)
	}
	return p, nil
})

// tickImports are the packages that the tick's source may refer to; of others nothing is
// known, and what refers to them is no part of a tick.
type tickImports map[string]*types.Package

func (t tickImports) Import(name string) (*types.Package, error) {
	if p := t[name]; p != nil {
		return p, nil
	}
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

// check checks a package and goes on at what it cannot know, such as what other packages declare.
func (p *program) check(name string, files []*ast.File, known tickImports) *types.Package {
	conf := types.Config{Importer: known, Error: func(err error) { p.errors = append(p.errors, err) }}
	pkg, _ := conf.Check(name, p.fset, files, p.info) // the errors are those of what is no tick
	return pkg
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
		file, err := parser.ParseFile(p.fset, path.Join(path.Base(name), n), content, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("codegen: %w", err)
		}
		if err := p.readDirectives(file); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	known[name] = p.check(name, files, known)
	return files, nil
}

// index notes functions, package variables and what is assigned more than once.
func (p *program) index(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.funcs[p.info.Defs[d.Name]] = d
			if d.Recv != nil && strings.HasSuffix(types.ExprString(d.Recv.List[0].Type), "*Kernel") {
				p.named[d.Name.Name] = d
			}
			p.assigned(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if v, ok := s.(*ast.ValueSpec); ok && d.Tok == token.VAR {
					for i, n := range v.Names {
						if i < len(v.Values) {
							p.vars[p.info.Defs[n]] = v.Values[i]
						}
					}
				}
			}
		}
	}
}

func (p *program) assigned(d *ast.FuncDecl) {
	mark := func(e ast.Expr) {
		if id, ok := e.(*ast.Ident); ok {
			if obj := p.info.Uses[id]; obj != nil {
				p.multi[obj] = true
			}
		}
	}
	if d.Type.Results != nil {
		for _, f := range d.Type.Results.List {
			for _, n := range f.Names {
				p.multi[p.info.Defs[n]] = true
			}
		}
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				mark(e)
			}
		case *ast.IncDecStmt:
			mark(n.X)
		case *ast.ForStmt: // its variable changes with every turn
			if a, ok := n.Init.(*ast.AssignStmt); ok {
				for _, e := range a.Lhs {
					if id, ok := e.(*ast.Ident); ok && p.info.Defs[id] != nil {
						p.multi[p.info.Defs[id]] = true
					}
				}
			}
		}
		return true
	})
}

// assignedIn lists the variables declared outside of a node and assigned in it.
func (p *program) assignedIn(nodes ...ast.Node) (list []types.Object) {
	seen, inside := map[types.Object]bool{}, map[types.Object]bool{}
	mark := func(e ast.Expr) {
		id, ok := e.(*ast.Ident)
		if !ok {
			return
		}
		if obj := p.info.Defs[id]; obj != nil {
			inside[obj] = true
		}
		if obj := p.info.Uses[id]; obj != nil && !seen[obj] && !inside[obj] {
			seen[obj] = true
			list = append(list, obj)
		}
	}
	for _, node := range nodes {
		if node == nil {
			continue
		}
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					mark(e)
				}
			case *ast.IncDecStmt:
				mark(n.X)
			case *ast.RangeStmt:
				if n.Tok == token.ASSIGN {
					mark(n.Key)
					mark(n.Value)
				}
			}
			return true
		})
	}
	return list
}
