package specialise

import (
	"go/ast"
	"go/types"
	"runtime"
	"slices"
	"strings"
)

// callMode says how a call is made and how its results are used.
type callMode struct {
	indirect bool       // through Kernel.calls
	wanted   []ast.Expr // expressions to which the results are assigned
	discard  bool       // the results are not used
}

// call returns the results of a call.
func (f *frame) call(e *ast.CallExpr, how callMode) []*value {
	if tv := f.info.Types[e.Fun]; tv.IsType() {
		return []*value{f.converted(f.eval(e.Args[0]), tv.Type)}
	}
	switch fun := e.Fun.(type) {
	case *ast.Ident:
		switch obj := f.info.Uses[fun].(type) {
		case *types.Builtin:
			return f.builtin(e, fun.Name)
		case *types.Func:
			return f.invoke(f.funcs[obj], f.args(e.Args), how)
		case *types.Var:
			return f.callClosure(f.eval(fun).lit, f.args(e.Args))
		}
	case *ast.SelectorExpr:
		sel := f.info.Selections[fun]
		switch {
		case sel == nil:
			return f.library(e, types.ExprString(fun))
		case sel.Kind() == types.MethodVal:
			recv := f.through(f.receiver(fun.X), sel.Index()[:len(sel.Index())-1])
			return f.invoke(f.funcs[sel.Obj()], append([]*value{recv}, f.args(e.Args)...), how)
		}

		name := runtime.FuncForPC(f.address(fun).at.family().list[0].Pointer()).Name()
		how.indirect = true
		return f.invoke(f.program.kernelMethods[name[strings.LastIndex(name, ".")+1:]], f.args(e.Args), how)
	}

	f.fail("call of %T", e.Fun)
	return nil
}

// receiver returns the receiver of a method: a place rather than its content.
func (f *frame) receiver(x ast.Expr) *value {
	if _, ok := x.(*ast.IndexExpr); ok || f.info.Selections[selector(x)] != nil {
		return f.address(x)
	}
	return f.eval(x)
}

// args returns the values of the arguments.
func (f *frame) args(list []ast.Expr) (out []*value) {
	for _, e := range list {
		out = append(out, f.eval(e))
	}
	return out
}

// names returns the names of fields, parameters or results.
func names(lists ...*ast.FieldList) (out []*ast.Ident) {
	for _, l := range lists {
		if l == nil {
			continue
		}
		for _, p := range l.List {
			out = append(out, p.Names...)
		}
	}

	return out
}

// resultTypes returns the types of a function's results.
func (f *frame) resultTypes(d *ast.FuncDecl) (list []types.Type) {
	results := f.info.Defs[d.Name].Type().(*types.Signature).Results()
	for v := range results.Variables() {
		list = append(list, v.Type())
	}
	return list
}

// invoke calls a function of the source: inlined, or as a function specialised to the known
// arguments. A receiver is the first argument.
func (f *frame) invoke(d *ast.FuncDecl, args []*value, how callMode) []*value {
	if d == nil {
		f.fail("call of a function that is not in the source")
	}
	if f.byProgram[d] && f.limit == smallUnrollLimit {
		args[1] = f.asMember(args[1])
	}
	var got []*value
	inline := func() { got = f.inline(d, args) }
	switch f.inliningOf(d, args, how) {
	case always:
		inline()
		return got
	case perhaps:
		if f.attempt(f.limit, inline) {
			return got
		}
	case brief:
		if f.attemptBrief(inline) {
			return got
		}
	}

	args = f.generalise(d, args)
	g := f.specialise(d, how.indirect, args)
	if size(g.body) > longFunction || g.depth > deepStack || f.largeStack[f.fn.key] {
		g.indirect = true
	}
	if !g.indirect {
		f.fn.below = max(f.fn.below, g.depth)
	}
	f.fn.effects = f.fn.effects || g.effects
	return f.emitCall(g, args, how)
}

// inlining says whether a call is inlined: followed in the function that makes it.
type inlining uint8

const (
	never   inlining = iota
	brief            // if it is a few statements
	perhaps          // if its statements are within the limit
	always
)

// inliningOf decides whether a call is inlined. A call of a function that returns references must
// be inlined. Inlining simplifies a single expression, and loops over arrays among the arguments.
func (f *frame) inliningOf(d *ast.FuncDecl, args []*value, how callMode) inlining {
	for _, t := range f.resultTypes(d) {
		if _, ok := t.Underlying().(*types.Basic); !ok {
			return always
		}
	}

	if f.byProgram[d] && !args[1].at.known {
		if args[1].at.class > 0 && f.byProgram[f.fn.decl] && f.fn.decl != d {
			return always
		}
		return never
	}
	ofKernel := d.Recv != nil && args[0].kind == ref && args[0].at == f.root
	switch {
	case how.indirect:
		return never
	case isStraightLine(d) || d.Recv == nil && len(args) > 0 && isInteger(args[0]):
		return perhaps
	case ofKernel:
		return brief
	case d.Recv != nil || slices.ContainsFunc(d.Type.Params.List, f.isSlice):
		return perhaps
	}

	return never
}

// isSlice reports whether a parameter is a slice.
func (f *frame) isSlice(p *ast.Field) bool {
	_, ok := f.info.TypeOf(p.Type).Underlying().(*types.Slice)
	return ok
}

// isInteger reports whether an argument is a known integer, which may select a branch.
func isInteger(v *value) bool {
	_, ok := v.integer()
	return ok
}

// isStraightLine reports whether a function is a few assignments and a result.
func isStraightLine(d *ast.FuncDecl) bool {
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

// inline follows a call inside the function that makes it, and returns its results.
func (f *frame) inline(d *ast.FuncDecl, args []*value) []*value {
	if f.level > 30 {
		f.fail("calls of %s are nested more than 30 deep", d.Name.Name)
	}
	at := f.at
	g := &frame{spec: f.spec, fn: f.fn, vars: map[types.Object]binding{}, inlined: true, level: f.level + 1}
	g.types = f.resultTypes(d)
	for i, n := range names(d.Recv, d.Type.Params) {
		if n.Name != "_" {
			g.bind(f.info.Defs[n], g.freezeAll(args[i], n.Name), true)
		}
	}

	g.bindResults(d)
	if end := g.execList(d.Body.List); end == falls && len(g.types) > 0 {
		f.fail("%s has no return", d.Name.Name)
	}
	f.at = at
	return g.inlineResults
}

// bindResults binds the named results of a function.
func (f *frame) bindResults(d *ast.FuncDecl) {
	for _, n := range names(d.Type.Results) {
		obj := f.info.Defs[n]
		f.results = append(f.results, obj)
		f.bind(obj, zeroOf(obj.Type()), true)
	}
}

// callClosure follows a call of a function literal, which must be one expression.
func (f *frame) callClosure(lit *ast.FuncLit, args []*value) []*value {
	for i, n := range names(lit.Type.Params) {
		f.bind(f.info.Defs[n], f.freeze(args[i], n.Name), true)
	}
	ret, ok := lit.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		f.fail("a function literal is not a single expression")
	}
	return f.args(ret.Results)
}

// freezeAll returns v with texts that later assignments do not change.
func (f *frame) freezeAll(v *value, name string) *value {
	switch v.kind {
	case scalar:
		return f.freeze(v, name)
	case record:
		w := *v
		w.list = nil
		for _, field := range v.list {
			w.list = append(w.list, f.freezeAll(field, name))
		}
		return &w
	}

	return f.freezeOffsets(v)
}

// emitCall emits a call of a generated function, unless its results are known and it has no effect.
// It returns the results.
func (f *frame) emitCall(g *fn, args []*value, how callMode) []*value {
	out := make([]*value, len(g.results))
	copy(out, g.returns)
	known := !slices.Contains(out, nil)
	if known && !g.effects {
		return out
	}
	if g.effects {
		clear(f.fn.stackCells)
	} else if !g.indirect {
		f.pureFuncs[g.callee()] = true
	}

	passed := f.arguments(args)
	if g.indirect {
		passed = append([]string{"k"}, passed...)
	}
	text := g.callee() + "(" + strings.Join(passed, ", ") + ")"
	switch {
	case len(out) == 0 || how.discard || known:
		f.emit(&stmt{kind: line, text: text})
		return out
	case len(out) == 1 && !g.effects:
		return []*value{dynamic(text, operand, g.results[0])}
	}

	sig := f.info.Defs[g.decl.Name].Type().(*types.Signature)
	for i, v := range f.declareResults(text, sig.Results(), how.wanted) {
		if out[i] == nil {
			out[i] = v
		}
	}

	return out
}

// callee returns the name by which the function is called.
func (g *fn) callee() string {
	switch {
	case g.indirect:
		return "jump." + g.name
	case g.method:
		return "k." + g.name
	}

	return g.name
}

// arguments returns the arguments that a generated function takes: the values that the tick
// computes.
func (f *frame) arguments(args []*value) (list []string) {
	for _, a := range args {
		f.replaceComputed(a, func(v *value) *value { list = append(list, v.text); return v })
	}
	return list
}

// replaceComputed returns an argument in which replace has replaced each value that the tick
// computes. The order of the calls of replace depends on the form of the argument only.
func (f *frame) replaceComputed(a *value, replace func(*value) *value) *value {
	w := *a
	switch a.kind {
	case scalar:
		if a.con == nil {
			return replace(a)
		}
	case ref, slice:
		root := a.at
		for root.parent != nil {
			root = root.parent
		}
		if root.param {
			replace(&value{kind: ref, at: root, text: root.text, typ: root.typ})
		}
		w.at = f.withIndices(a.at, replace)
		if a.kind == slice {
			w.off, w.len = f.replaceComputed(a.off, replace), f.replaceComputed(a.len, replace)
		}
	case tuple, record:
		w.list = nil
		for _, el := range a.list {
			w.list = append(w.list, f.replaceComputed(el, replace))
		}
	}

	return &w
}
