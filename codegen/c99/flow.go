package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// place is a part of the memory that functions share: a field of the kernel, what an
// entry point was given, a variable whose address is taken. Field "" is all of it.
type place struct {
	root  any // types.Object, or the name of what the caller owns
	field string
}

type places map[place]bool

// theKernel is the whole state, which all functions share.
var theKernel = place{root: "kernel"}

// meets says whether two sets of places have something in common.
func (a places) meets(b places) bool {
	for p := range a {
		for q := range b {
			if p.root == q.root && (p.field == q.field || p.field == "" || q.field == "") {
				return true
			}
		}
	}

	return false
}

// add takes over what is new in b.
func (a places) add(b places) (grew bool) {
	for p := range b {
		if !a[p] {
			a[p], grew = true, true
		}
	}

	return grew
}

// flow is which functions write, and where pointers point, the same for every
// call: what is not ordered in C is kept in Go's order where that matters.
type flow struct {
	*tickText
	reached []*types.Func                   // in the order of the text
	points  map[types.Object]places         // of a pointer
	writes  map[*types.Func]bool            // what is shared, by itself or by what it calls
	through map[types.Object]bool           // pointers through which something is written
	passed  map[types.Object][]types.Object // pointers that a pointer is handed to
	changed map[types.Object]int            // assignments to a local, without its declaration
}

// newFlow follows the calls from the entry points, whose parameters point to what names
// say.
func newFlow(t *tickText, entries []*types.Func) *flow {
	f := &flow{
		tickText: t, points: map[types.Object]places{}, writes: map[*types.Func]bool{},
		through: map[types.Object]bool{}, passed: map[types.Object][]types.Object{}, changed: map[types.Object]int{},
	}
	seen := map[*types.Func]bool{}
	var reach func(fn *types.Func)
	reach = func(fn *types.Func) {
		if seen[fn] {
			return
		}
		seen[fn] = true
		f.reached = append(f.reached, fn)
		ast.Inspect(t.funcs[fn].Body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if callee := f.callee(c); callee != nil {
					reach(callee)
				}
			}

			return true
		})
	}

	for _, fn := range entries {
		f.point(fn.Signature().Recv(), places{theKernel: true})
		for v := range fn.Signature().Params().Variables() {
			if is[*types.Pointer](v.Type()) {
				f.point(v, places{{root: v.Name()}: true})
			}
		}

		reach(fn)
	}

	slices.SortFunc(f.reached, func(a, b *types.Func) int { return t.order[a] - t.order[b] })
	f.solve()
	return f
}

// callee is the function of the text that a call calls, or nil.
func (f *flow) callee(c *ast.CallExpr) *types.Func {
	fn := f.function(c.Fun)
	if fn == nil || f.funcs[fn] == nil {
		return nil
	}
	return fn
}

// point lets a pointer point to places, too.
func (f *flow) point(v types.Object, to places) (grew bool) {
	if f.points[v] == nil {
		f.points[v] = places{}
	}
	return f.points[v].add(to)
}

// solve goes round until nothing is added.
func (f *flow) solve() {
	for grew := true; grew; {
		grew = false
		for _, fn := range f.reached {
			ast.Inspect(f.funcs[fn].Body, func(n ast.Node) bool {
				grew = f.visit(fn, n) || grew
				return true
			})
		}
	}

	clear(f.changed)
	for _, fn := range f.reached {
		ast.Inspect(f.funcs[fn].Body, func(n ast.Node) bool {
			f.count(n)
			return true
		})
	}

	for grew := true; grew; {
		grew = false
		for from, to := range f.passed {
			if !f.through[from] && slices.ContainsFunc(to, func(o types.Object) bool { return f.through[o] }) {
				f.through[from], grew = true, true
			}
		}
	}
}

// visit notes what a node of a function does.
func (f *flow) visit(fn *types.Func, n ast.Node) (grew bool) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			if n.Tok != token.DEFINE {
				grew = f.write(fn, l) || grew
			}
			if len(n.Rhs) == len(n.Lhs) {
				grew = f.hand(f.object(l), n.Rhs[i]) || grew
			}
		}
	case *ast.CallExpr:
		grew = f.call(fn, n)
	}

	return grew
}

// call hands the arguments over and takes what the callee does as what the caller does.
func (f *flow) call(fn *types.Func, c *ast.CallExpr) (grew bool) {
	callee := f.callee(c)
	if callee == nil {
		return false
	}
	sig := callee.Signature()
	args := c.Args
	if recv := sig.Recv(); recv != nil {
		if s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && f.info.Uses[s.Sel] == callee {
			grew = f.hand(recv, s.X)
		} else { // of a table of functions: the receiver is the first argument
			grew = f.hand(recv, args[0])
			args = args[1:]
		}
	}

	for i, a := range args {
		if i < sig.Params().Len() {
			grew = f.hand(sig.Params().At(i), a) || grew
		}
	}

	return f.writes[callee] && f.writer(fn) || grew
}

// hand lets dst point to what src points to.
func (f *flow) hand(dst types.Object, src ast.Expr) bool {
	if dst == nil || !is[*types.Pointer](dst.Type()) {
		return false
	}
	src = ast.Unparen(src)
	if u, ok := src.(*ast.UnaryExpr); ok && u.Op == token.AND {
		f.handOn(f.base(u.X), dst)
		return f.point(dst, f.at(u.X))
	}

	o := f.object(src)
	if o == nil {
		f.refuse(src, "a pointer that is neither a variable nor an address")
	}
	f.handOn(o, dst)
	return f.point(dst, f.points[o])
}

// handOn notes that what is written through dst is written through src.
func (f *flow) handOn(src, dst types.Object) {
	if src != nil && !slices.Contains(f.passed[src], dst) {
		f.passed[src] = append(f.passed[src], dst)
	}
}

// write notes an assignment to x.
func (f *flow) write(fn *types.Func, x ast.Expr) bool {
	p := f.base(x)
	if p == nil {
		return false
	}
	f.through[p] = true
	return f.writer(fn)
}

// writer notes that a function writes what is shared.
func (f *flow) writer(fn *types.Func) (news bool) {
	news = !f.writes[fn]
	f.writes[fn] = true
	return news
}

// object is the variable that an expression names, or nil.
func (f *flow) object(x ast.Expr) types.Object {
	if id, ok := ast.Unparen(x).(*ast.Ident); ok {
		return f.info.ObjectOf(id)
	}
	return nil
}

// holder is the variable of which x is a part, or nil where a pointer leads to it.
func (f *flow) holder(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return f.info.ObjectOf(x)
	case *ast.SelectorExpr:
		if !is[*types.Pointer](f.info.TypeOf(x.X)) {
			return f.holder(x.X)
		}
	case *ast.IndexExpr:
		if !is[*types.Pointer](f.info.TypeOf(x.X)) {
			return f.holder(x.X)
		}
	}

	return nil
}

// base is the pointer through which x is reached, or nil.
func (f *flow) base(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.SelectorExpr:
		return f.baseOf(x.X)
	case *ast.IndexExpr:
		return f.baseOf(x.X)
	}

	return nil
}

func (f *flow) baseOf(x ast.Expr) types.Object {
	if is[*types.Pointer](f.info.TypeOf(x)) {
		return f.object(x)
	}
	return f.base(x)
}

// at is where x lies.
func (f *flow) at(x ast.Expr) places {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if v, ok := f.info.ObjectOf(x).(*types.Var); ok {
			return places{{root: v}: true}
		}
	case *ast.IndexExpr:
		return f.within(x.X)
	case *ast.SelectorExpr:
		sel := f.info.Selections[x]
		if sel == nil || sel.Kind() != types.FieldVal {
			return nil
		}
		parts := places{}
		for p := range f.within(x.X) {
			if p == theKernel && namedOf(sel.Recv()) != nil && namedOf(sel.Recv()).Name() == "Kernel" {
				p.field = firstField(sel)
			}
			parts[p] = true
		}

		return parts
	}

	return nil
}

// within is where x, or what it points to, lies.
func (f *flow) within(x ast.Expr) places {
	if is[*types.Pointer](f.info.TypeOf(x)) {
		return f.points[f.object(x)]
	}
	return f.at(x)
}

// firstField is the field with which a selection begins: an embedded one, or its own.
func firstField(sel *types.Selection) string {
	return pointee(sel.Recv()).Underlying().(*types.Struct).Field(sel.Index()[0]).Name()
}

// count counts the assignments to locals.
func (f *flow) count(n ast.Node) {
	more := func(x ast.Expr) {
		if o := f.holder(x); o != nil {
			f.changed[o]++
		}
	}

	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, l := range n.Lhs {
			if id, ok := l.(*ast.Ident); !ok || n.Tok != token.DEFINE || f.info.Defs[id] == nil {
				more(l)
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			more(n.X)
		}
	}
}
