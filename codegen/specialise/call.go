package specialise

import (
	"go/ast"
	"go/types"
	"runtime"
	"strings"
)

// call is what a call gives.
func (f *frame) call(e *ast.CallExpr) []*value {
	wanted := f.wanted
	f.wanted = nil
	discard := f.discard == e
	if tv := f.info.Types[e.Fun]; tv.IsType() {
		return []*value{f.converted(f.eval(e.Args[0]), tv.Type)}
	}
	switch fun := e.Fun.(type) {
	case *ast.Ident:
		switch obj := f.info.Uses[fun].(type) {
		case *types.Builtin:
			return f.builtin(e, fun.Name)
		case *types.Func:
			return f.invoke(e, f.funcs[obj], nil, f.args(e.Args), callHow{wanted: wanted, discard: discard})
		case *types.Var:
			c := f.eval(fun)
			return f.enclosed(e, c)
		}
	case *ast.SelectorExpr:
		sel := f.info.Selections[fun]
		if sel == nil {
			return f.library(e, fun.X.(*ast.Ident).Name+"."+fun.Sel.Name)
		}
		if sel.Kind() == types.MethodVal {
			path := sel.Index()
			recv := f.through(fun, f.receiver(fun.X), path[:len(path)-1])
			return f.invoke(e, f.funcs[sel.Obj()], recv, f.args(e.Args), callHow{wanted: wanted, discard: discard})
		}
		at := f.selected(fun).at
		name := runtime.FuncForPC(at.one.Pointer()).Name()
		d := f.program.named[name[strings.LastIndex(name, ".")+1:]]
		args := f.args(e.Args)
		return f.invoke(e, d, args[0], args[1:], callHow{jump: true, wanted: wanted, discard: discard})
	}
	f.fail(e, "call of %T", e.Fun)
	return nil
}

// receiver is what a method is called on: a place rather than what is there.
func (f *frame) receiver(x ast.Expr) *value {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		if f.info.Selections[x] != nil {
			return f.selected(x)
		}
	case *ast.IndexExpr:
		return f.elementOf(x)
	case *ast.ParenExpr:
		return f.receiver(x.X)
	}
	return f.eval(x)
}

func (f *frame) args(list []ast.Expr) (out []*value) {
	for _, e := range list {
		out = append(out, f.eval(e))
	}
	return out
}

// callHow is how a call is made and what becomes of its results.
type callHow struct {
	jump    bool // through Kernel.calls
	wanted  []ast.Expr
	discard bool
}

// invoke calls a function of the source: in place, or as a function specialised to what is
// known of its arguments.
func (f *frame) invoke(e *ast.CallExpr, d *ast.FuncDecl, recv *value, args []*value, how callHow) []*value {
	if d == nil || d.Body == nil {
		f.fail(e, "%s is not in the source", types.ExprString(e.Fun))
	}
	switch f.inPlace(d, recv, args, how) {
	case always:
		return f.inline(d, recv, args)
	case perhaps:
		var got []*value
		if f.attempt(f.limit, func() { got = f.inline(d, recv, args) }) {
			return got
		}
	case brief:
		var got []*value
		if f.briefly(func() { got = f.inline(d, recv, args) }) {
			return got
		}
	}
	args = f.general(d, args)
	g := f.specialise(d, how.jump, recv, args)
	if size(g.body) > long || g.depth > deep || f.heavy[f.fn.key] {
		g.jump = true
	}
	if !g.jump {
		f.fn.below = max(f.fn.below, g.depth)
	}
	f.fn.effects = f.fn.effects || g.effects
	return f.residual(d, g, recv, args, how)
}

type whether uint8

const (
	never whether = iota
	brief         // where it is a few statements
	perhaps
	always
)

// inPlace says whether a call is followed where it stands: what gives references must be, and
// what is a single expression or loops over arrays that it is given gains by it.
func (f *frame) inPlace(d *ast.FuncDecl, recv *value, args []*value, how callHow) whether {
	sig := f.info.Defs[d.Name].Type().(*types.Signature)
	for i := range sig.Results().Len() {
		if _, ok := sig.Results().At(i).Type().Underlying().(*types.Basic); !ok {
			return always
		}
	}
	if how.jump {
		return never
	}
	method := recv != nil && recv.kind == ref && recv.at == f.root
	slices := false
	for i := range sig.Params().Len() {
		_, is := sig.Params().At(i).Type().Underlying().(*types.Slice)
		slices = slices || is
	}
	if straight(d) || recv == nil && len(args) > 0 && selects(args[0]) {
		return perhaps
	}
	if !method && (recv != nil || slices) {
		return perhaps
	}
	if method {
		return brief
	}
	return never
}

// selects reports whether an argument says which of several things a function does.
func selects(v *value) bool {
	_, ok := v.integer()
	return ok
}

// straight reports whether a function is a few assignments and a result.
func straight(d *ast.FuncDecl) bool {
	list := d.Body.List
	if len(list) == 0 || len(list) > 4 {
		return false
	}
	for _, st := range list[:len(list)-1] {
		if _, ok := st.(*ast.AssignStmt); !ok {
			return false
		}
	}
	_, ok := list[len(list)-1].(*ast.ReturnStmt)
	return ok
}

// inline follows a call where it stands.
func (f *frame) inline(d *ast.FuncDecl, recv *value, args []*value) []*value {
	if f.level > 30 {
		f.fail(d, "calls without end")
	}
	g := &frame{spec: f.spec, fn: f.fn, vars: map[types.Object]binding{}, inlined: true, level: f.level + 1}
	sig := f.info.Defs[d.Name].Type().(*types.Signature)
	for i := range sig.Results().Len() {
		g.types = append(g.types, sig.Results().At(i).Type())
	}
	set := func(n *ast.Ident, v *value) {
		obj := f.info.Defs[n]
		if obj == nil || n.Name == "_" {
			return
		}
		if v.kind == scalar && v.con != nil {
			v = constantValue(wrapInt(v.con, obj.Type()), obj.Type())
		}
		g.bind(obj, g.steadyAll(v, n.Name), true)
	}
	if d.Recv != nil && len(d.Recv.List[0].Names) > 0 {
		set(d.Recv.List[0].Names[0], recv)
	}
	i := 0
	for _, p := range d.Type.Params.List {
		for _, n := range p.Names {
			set(n, args[i])
			i++
		}
	}
	g.named(d)
	end := g.list(d.Body.List)
	if end == falls && len(g.types) > 0 {
		f.fail(d, "no return")
	}
	return g.back
}

// named binds the named results of a function.
func (f *frame) named(d *ast.FuncDecl) {
	if d.Type.Results == nil {
		return
	}
	for _, r := range d.Type.Results.List {
		for _, n := range r.Names {
			obj := f.info.Defs[n]
			f.results = append(f.results, obj)
			f.bind(obj, zeroOf(obj.Type()), true)
		}
	}
}
