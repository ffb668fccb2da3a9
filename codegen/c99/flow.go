package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// location is a part of the memory that functions share: a field of the kernel, a parameter of an
// entry point, or a variable whose address is taken.
type location struct {
	root  any    // types.Object, or the name of memory that the caller owns
	field string // field of the kernel; "" for all fields
}

type locations map[location]bool

// kernelState is the location of the whole kernel.
var kernelState = location{root: "kernel"}

// overlaps reports whether two sets of locations share memory.
func (a locations) overlaps(b locations) bool {
	for p := range a {
		for q := range b {
			if p.root == q.root && (p.field == q.field || p.field == "" || q.field == "") {
				return true
			}
		}
	}

	return false
}

// add adds the locations of b. It reports whether a has grown.
func (a locations) add(b locations) (grew bool) {
	for p := range b {
		if !a[p] {
			a[p], grew = true, true
		}
	}

	return grew
}

// flow is the data flow of a tick: which functions write memory, and where pointers point. It does
// not distinguish the calls of a function. The translator uses it to keep Go's order of evaluation
// where C defines none.
type flow struct {
	*tickText
	reached        []*types.Func                   // functions that the entry points call, in the order of the text
	targets        map[types.Object]locations      // targets of each pointer
	writes         map[*types.Func]bool            // functions that write shared memory, directly or by a call
	writtenThrough map[types.Object]bool           // pointers through which the tick writes
	passed         map[types.Object][]types.Object // pointers that receive a pointer's value
	changed        map[types.Object]int            // number of assignments to a local after its declaration
}

// newFlow follows the calls from the entry points. Parameters of equal name point to one location.
func newFlow(t *tickText, entries []*types.Func) *flow {
	f := &flow{
		tickText: t, targets: map[types.Object]locations{}, writes: map[*types.Func]bool{},
		writtenThrough: map[types.Object]bool{}, passed: map[types.Object][]types.Object{}, changed: map[types.Object]int{},
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
		f.addTargets(fn.Signature().Recv(), locations{kernelState: true})
		for v := range fn.Signature().Params().Variables() {
			if is[*types.Pointer](v.Type()) {
				f.addTargets(v, locations{{root: v.Name()}: true})
			}
		}

		reach(fn)
	}

	slices.SortFunc(f.reached, func(a, b *types.Func) int { return t.order[a] - t.order[b] })
	f.solve()
	return f
}

// callee returns the function of the text that a call calls, or nil.
func (f *flow) callee(c *ast.CallExpr) *types.Func {
	fn := f.function(c.Fun)
	if fn == nil || f.funcs[fn] == nil {
		return nil
	}
	return fn
}

// addTargets adds targets of a pointer. It reports whether any of them is new.
func (f *flow) addTargets(v types.Object, to locations) (grew bool) {
	if f.targets[v] == nil {
		f.targets[v] = locations{}
	}
	return f.targets[v].add(to)
}

// solve repeats the analysis until it finds nothing new.
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
			f.countAssignments(n)
			return true
		})
	}

	for grew := true; grew; {
		grew = false
		for from, to := range f.passed {
			if !f.writtenThrough[from] && slices.ContainsFunc(to, func(o types.Object) bool { return f.writtenThrough[o] }) {
				f.writtenThrough[from], grew = true, true
			}
		}
	}
}

// visit records the assignments and calls of a node. It reports whether it found something new.
func (f *flow) visit(fn *types.Func, n ast.Node) (grew bool) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			if n.Tok != token.DEFINE {
				grew = f.write(fn, l) || grew
			}
			if len(n.Rhs) == len(n.Lhs) {
				grew = f.passPointer(f.object(l), n.Rhs[i]) || grew
			}
		}
	case *ast.CallExpr:
		grew = f.call(fn, n)
	}

	return grew
}

// call records the arguments of a call. A caller writes what its callee writes.
func (f *flow) call(fn *types.Func, c *ast.CallExpr) (grew bool) {
	if name := f.builtinName(c); name == "clear" || name == "copy" {
		return f.write(fn, c.Args[0])
	}
	callee := f.callee(c)
	if callee == nil {
		return false
	}
	sig := callee.Signature()
	args := c.Args
	if recv := sig.Recv(); recv != nil {
		if s, ok := ast.Unparen(c.Fun).(*ast.SelectorExpr); ok && f.info.Uses[s.Sel] == callee {
			grew = f.passPointer(recv, s.X)
		} else { // indirect call: the receiver is the first argument
			grew = f.passPointer(recv, args[0])
			args = args[1:]
		}
	}

	for i, a := range args {
		if i < sig.Params().Len() {
			grew = f.passPointer(sig.Params().At(i), a) || grew
		}
	}

	return f.writes[callee] && f.markWriter(fn) || grew
}

// passPointer gives dst the targets of src.
func (f *flow) passPointer(dst types.Object, src ast.Expr) bool {
	if dst == nil || !is[*types.Pointer](dst.Type()) {
		return false
	}
	src = ast.Unparen(src)
	if u, ok := src.(*ast.UnaryExpr); ok && u.Op == token.AND {
		f.recordPassed(f.basePointer(u.X), dst)
		return f.addTargets(dst, f.locate(u.X))
	}

	o := f.object(src)
	if o == nil {
		f.refuse(src, "pointer that is neither a variable nor an address")
	}
	f.recordPassed(o, dst)
	return f.addTargets(dst, f.targets[o])
}

// recordPassed records that a write through dst is a write through src.
func (f *flow) recordPassed(src, dst types.Object) {
	if src != nil && !slices.Contains(f.passed[src], dst) {
		f.passed[src] = append(f.passed[src], dst)
	}
}

// write records an assignment to x.
func (f *flow) write(fn *types.Func, x ast.Expr) bool {
	p := f.basePointer(x)
	if p == nil {
		return false
	}
	f.writtenThrough[p] = true
	return f.markWriter(fn)
}

// markWriter records that a function writes shared memory. It reports whether this is new.
func (f *flow) markWriter(fn *types.Func) (found bool) {
	found = !f.writes[fn]
	f.writes[fn] = true
	return found
}

// object returns the variable that an expression names, or nil.
func (f *flow) object(x ast.Expr) types.Object {
	if id, ok := ast.Unparen(x).(*ast.Ident); ok {
		return f.info.ObjectOf(id)
	}
	return nil
}

// owner returns the variable that contains x, or nil if x is reached through a pointer.
func (f *flow) owner(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return f.info.ObjectOf(x)
	case *ast.SelectorExpr:
		if !is[*types.Pointer](f.info.TypeOf(x.X)) {
			return f.owner(x.X)
		}
	case *ast.IndexExpr:
		if !is[*types.Pointer](f.info.TypeOf(x.X)) {
			return f.owner(x.X)
		}
	}

	return nil
}

// basePointer returns the pointer through which x is reached, or nil.
func (f *flow) basePointer(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.SelectorExpr:
		return f.basePointerOf(x.X)
	case *ast.IndexExpr:
		return f.basePointerOf(x.X)
	case *ast.SliceExpr:
		return f.basePointerOf(x.X)
	}

	return nil
}

func (f *flow) basePointerOf(x ast.Expr) types.Object {
	if is[*types.Pointer](f.info.TypeOf(x)) {
		return f.object(x)
	}
	return f.basePointer(x)
}

// locate returns the locations of x.
func (f *flow) locate(x ast.Expr) locations {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		if v, ok := f.info.ObjectOf(x).(*types.Var); ok {
			return locations{{root: v}: true}
		}
	case *ast.IndexExpr:
		return f.content(x.X)
	case *ast.SliceExpr:
		return f.content(x.X)
	case *ast.SelectorExpr:
		sel := f.info.Selections[x]
		if sel == nil || sel.Kind() != types.FieldVal {
			return nil
		}
		parts := locations{}
		for p := range f.content(x.X) {
			if p == kernelState && namedOf(sel.Recv()) != nil && namedOf(sel.Recv()).Name() == "Kernel" {
				p.field = firstField(sel)
			}
			parts[p] = true
		}

		return parts
	}

	return nil
}

// content returns the locations of x, or of its target if x is a pointer.
func (f *flow) content(x ast.Expr) locations {
	if is[*types.Pointer](f.info.TypeOf(x)) {
		return f.targets[f.object(x)]
	}
	return f.locate(x)
}

// firstField returns the field with which a selection begins: an embedded one, or its own.
func firstField(sel *types.Selection) string {
	return pointee(sel.Recv()).Underlying().(*types.Struct).Field(sel.Index()[0]).Name()
}

// countAssignments counts the assignments to locals in a node.
func (f *flow) countAssignments(n ast.Node) {
	add := func(x ast.Expr) {
		if o := f.owner(x); o != nil {
			f.changed[o]++
		}
	}

	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, l := range n.Lhs {
			if id, ok := l.(*ast.Ident); !ok || n.Tok != token.DEFINE || f.info.Defs[id] == nil {
				add(l)
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			add(n.X)
		}
	}
}
