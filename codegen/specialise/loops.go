package specialise

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
)

// forLoop follows a for statement.
func (f *frame) forLoop(st *ast.ForStmt) flow {
	f.exec(st.Init)
	if f.indexed(st) {
		end, limit := falls, f.limit
		if f.onlyCalls(st.Body) {
			limit *= dispatchFactor
		}
		if f.attempt(limit, func() { end = f.unrollFor(st, limit) }) {
			return end
		}
	}

	if st.Cond != nil {
		never := false
		f.block(func() { never = f.eval(st.Cond).is(false) })
		if never {
			return falls
		}
	}

	if id, from, count := f.counts(st); id != nil {
		f.countedLoop(st, id, from, count)
		return falls
	}
	f.inLoop(st, []ast.Stmt{st.Body, st.Post}, func() {
		entry := f.cloneVars()
		out := &stmt{kind: loop}
		if st.Cond != nil {
			var cond *value
			rows := f.block(func() { cond = f.eval(st.Cond) })
			if !onlyRows(rows) {
				f.fail("the condition of a loop needs generated statements")
			}
			for _, row := range rows {
				f.emit(row)
			}
			if cond.con == nil {
				out.text = cond.text
			}
		}

		out.body = f.block(func() { f.execList(st.Body.List) })
		if st.Post != nil {
			f.vars = entry
			f.addPost(st, out, f.block(func() { f.exec(st.Post) }))
		}

		f.emit(out)
	})
	return falls
}

// counts returns the variable of a loop that only counts up between known numbers, the first of them and the number of
// iterations; nil for another loop.
func (f *frame) counts(st *ast.ForStmt) (id *ast.Ident, from, count int64) {
	init, ok := st.Init.(*ast.AssignStmt)
	post, ok2 := st.Post.(*ast.IncDecStmt)
	cond, ok3 := st.Cond.(*ast.BinaryExpr)
	if !ok || !ok2 || !ok3 || len(init.Lhs) != 1 || post.Tok != token.INC || cond.Op != token.LSS {
		return nil, 0, 0
	}
	id, _ = init.Lhs[0].(*ast.Ident)
	obj := f.info.Defs[id]
	same := func(e ast.Expr) bool { x, ok := e.(*ast.Ident); return ok && f.info.Uses[x] == obj }
	if obj == nil || !same(post.X) || !same(cond.X) {
		return nil, 0, 0
	}
	for _, v := range f.assignedIn(st.Body) {
		if v == obj || f.mentions(cond.Y, v) {
			return nil, 0, 0
		}
	}
	from, ok = f.vars[obj].val.integer()
	to, ok2 := f.eval(cond.Y).integer()
	if !ok || !ok2 || f.vars[obj].name != "" || goType(obj.Type()) != "int" {
		return nil, 0, 0
	}
	return id, from, to - from
}

// mentions reports whether an expression reads a variable.
func (p *program) mentions(e ast.Expr, v types.Object) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && p.info.Uses[id] == v
		return !found
	})
	return found
}

// countedLoop follows a loop over the variable id, from a known number on. The generated variable counts from 0: the
// compiler sees that its sums with constants are within bounds.
func (f *frame) countedLoop(st *ast.ForStmt, id *ast.Ident, from, count int64) {
	f.inLoop(st, []ast.Stmt{st.Body}, func() {
		obj := f.info.Defs[id]
		i := dynamic(f.unique(id.Name), operand, obj.Type())
		i.stable, i.ranged, i.hi, i.counter = true, true, count-1, i
		f.vars[obj] = binding{val: arith(token.ADD, i, constantValue(from, obj.Type())), dyn: f.dyn}
		body := f.block(func() { f.execList(st.Body.List) })
		f.emit(&stmt{kind: loop, names: []string{i.text}, right: fmt.Sprint(count), pure: true, body: body})
	})
}

// inLoop follows a loop that is not unrolled. The values of variables that the loop assigns are not
// known in the loop or after it.
func (f *frame) inLoop(st ast.Stmt, body []ast.Stmt, follow func()) {
	f.declareVars(f.assignedIn(body...), true)
	entry := f.cloneVars()
	clear(f.fn.stackCells)
	f.dyn++
	f.followLoop(false, follow)
	f.dyn--
	clear(f.fn.stackCells)

	for obj, b := range entry {
		if obj.Pos() >= st.Pos() && obj.Pos() < st.End() {
			continue // declared in every iteration
		}
		if now, ok := f.vars[obj]; ok && b.val.kind != scalar && now.val.key() != b.val.key() {
			f.fail("the target of %s differs between iterations", obj.Name())
		}
	}

	f.vars = entry
}

// followLoop follows the iterations of a loop.
func (f *frame) followLoop(unrolled bool, follow func()) {
	loops := f.loops
	f.loops = append(loops, &activeLoop{unrolled: unrolled, dyn: f.dyn})
	follow()
	f.loops = loops
}

// addPost adds the post statement of a loop: an assignment to the head of the loop, other
// statements to the end of its body.
func (f *frame) addPost(st *ast.ForStmt, out *stmt, post []*stmt) {
	if len(post) == 1 && post[0].kind == set {
		op := post[0].text
		if op == "" {
			op = " = "
		}
		out.text = "; " + out.text + "; " + post[0].names[0] + op + post[0].right
		return
	}

	ast.Inspect(st.Body, func(n ast.Node) bool {
		if b, ok := n.(*ast.BranchStmt); ok && b.Tok == token.CONTINUE {
			f.fail("continue in a loop whose post statement is not an assignment")
		}
		return true
	})
	out.body = append(out.body, post...)
}

// indexed reports whether a loop has a variable that selects elements, so that unrolling the
// loop may make it faster.
func (f *frame) indexed(st *ast.ForStmt) bool {
	if a, ok := st.Init.(*ast.AssignStmt); ok {
		return f.selects(st.Body, a.Lhs[0])
	}
	p, ok := st.Post.(*ast.IncDecStmt)
	return ok && st.Init == nil && f.selects(st.Body, p.X)
}

// unrollFor follows the iterations of a loop while its condition is known.
func (f *frame) unrollFor(st *ast.ForStmt, limit int) (end flow) {
	f.followLoop(true, func() {
		for n := 0; !end.stops(); n++ {
			cond := f.eval(st.Cond)
			switch {
			case cond.is(false):
				return
			case cond.con == nil || n > max(maxIterations, limit):
				panic(cannot)
			}

			if end = f.iteration(st.Body.List); !end.stops() {
				f.exec(st.Post)
			}
		}
	})
	return end.after()
}

// stops reports whether an iteration that ends this way is the last one.
func (end flow) stops() bool { return end != falls && end != continues }

// after returns how a loop ends whose last iteration ends this way.
func (end flow) after() flow {
	if end == leaves || end == returns {
		return end
	}
	return falls
}

// rangeLoop follows a range statement.
func (f *frame) rangeLoop(st *ast.RangeStmt) flow {
	x := f.eval(st.X)
	n := f.lengthOf(x)
	count, known := n.integer()
	if known && count <= 0 {
		return falls
	}
	small := known && count <= maxIterations*dispatchFactor
	if small && f.products(st, x) && f.attemptAsOne(f.limit*dispatchFactor, func() { f.unrollProducts(st, x, int(count)) }) {
		return falls
	}
	records := x.kind == tuple || small && f.overStructs(st, x) // slices have no other form
	if records || count == 1 || known && count <= maxIterations && (isNamed(st.Value) || f.selects(st.Body, st.Key)) {
		end, limit := falls, f.limit
		if records || f.onlyCalls(st.Body) {
			limit *= dispatchFactor
		} else if count <= maxElementwise && elementwise(st.Body) {
			limit *= dispatchFactor / 2
		}

		if f.attempt(limit, func() { end = f.unrollRange(st, x, int(count)) }) {
			return end
		}
		f.keptLoops[f.fn.decl.Name.Name] = true
	}

	if x.kind == tuple {
		at := f.fset.Position(st.Pos())
		x = f.table(fmt.Sprintf("list%s%d", strings.TrimSuffix(path.Base(at.Filename), ".go"), at.Line), x)
	}

	if !known {
		n = f.freeze(n, "count")
	}
	f.inLoop(st, []ast.Stmt{st.Body}, func() {
		i := f.counter(st)
		if known {
			i.ranged, i.lo, i.hi = true, 0, count-1
		}
		out := &stmt{kind: loop, names: []string{i.text}, right: n.text, pure: true}
		if goType(i.typ) != "int" && known {
			out.right = goType(i.typ) + "(" + n.text + ")"
		}
		out.body = f.block(func() {
			f.bindLoopVars(st, x, i)
			f.execList(st.Body.List)
		})
		f.emit(out)
	})
	return falls
}

// counter returns the variable with which a range loop counts.
func (f *frame) counter(st *ast.RangeStmt) *value {
	name := "i"
	if isNamed(st.Key) {
		name = st.Key.(*ast.Ident).Name
	}
	i := dynamic(f.unique(name), operand, f.keyType(st))
	i.stable = true
	return i
}

// keyType returns the type of the variable with which a range loop counts.
func (f *frame) keyType(st *ast.RangeStmt) types.Type {
	if id, ok := st.Key.(*ast.Ident); ok && f.info.Defs[id] != nil {
		return f.info.Defs[id].Type()
	}
	return types.Typ[types.Int]
}

// isNamed reports whether an expression is a variable other than _.
func isNamed(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name != "_"
}

// lengthOf returns the number of iterations of a range loop over x.
func (f *frame) lengthOf(x *value) *value {
	switch x.kind {
	case scalar:
		return x
	case slice:
		return x.len
	case tuple:
		return wholeNumber(len(x.list))
	}

	return wholeNumber(int(pointee(x.at.typ).Underlying().(*types.Array).Len()))
}

// bindLoopVars binds the variables of an iteration.
func (f *frame) bindLoopVars(st *ast.RangeStmt, x, i *value) {
	if isNamed(st.Key) {
		f.assign(st.Key, i)
	}
	if isNamed(st.Value) {
		f.assign(st.Value, f.load(f.elementRef(x, i)))
	}
}

// unrollRange follows the iterations of a range loop with a known count.
func (f *frame) unrollRange(st *ast.RangeStmt, x *value, count int) (end flow) {
	f.followLoop(true, func() {
		for n := 0; n < count && !end.stops(); n++ {
			end = f.withElementComment(st.Body, []ast.Expr{st.Key, st.Value}, func() flow {
				f.bindLoopVars(st, x, constantValue(int64(n), f.keyType(st)))
				return f.iteration(st.Body.List)
			})
		}
	})
	return end.after()
}

// overStructs reports whether a loop ranges over structs of the tables, or over the instructions of a program.
func (f *frame) overStructs(st *ast.RangeStmt, x *value) bool {
	if x.kind == slice && isInstruction(elemOf(x.typ)) {
		return true
	}
	if !isNamed(st.Value) || x.kind != slice || !x.at.fixed || !x.at.known {
		return false
	}
	_, ok := elemOf(x.typ).Underlying().(*types.Struct)
	return ok
}

// products reports whether a loop multiplies by a sparse matrix: each number adds a product to an
// element of another vector.
func (f *frame) products(st *ast.RangeStmt, x *value) bool {
	if !isNamed(st.Key) || !isNamed(st.Value) || x.kind != slice || len(st.Body.List) != 1 {
		return false
	}
	if !x.at.known || f.assigned[shapePrefix+x.at.shape()+"[*]"] {
		return false
	}
	a, ok := st.Body.List[0].(*ast.AssignStmt)
	if !ok || a.Tok != token.ADD_ASSIGN {
		return false
	}
	_, ok = a.Lhs[0].(*ast.IndexExpr)
	return ok && isFloat(elemOf(x.typ))
}

// dispatchFactor is the factor by which a loop may be longer than others if each of its iterations
// only calls a function. An example is the loop over the laws, which are different programs.
const dispatchFactor = 8

// onlyCalls reports whether a loop only calls a function in each iteration, not in a loop of its own.
func (f *frame) onlyCalls(body *ast.BlockStmt) bool {
	if len(body.List) > 1 {
		return false
	}
	calls, loops := false, false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			calls = calls || f.info.Selections[selector(n.Fun)] != nil
		case *ast.ForStmt, *ast.RangeStmt:
			loops = true
		}
		return true
	})
	return calls && !loops
}

// selector returns an expression as a selector, or nil.
func selector(e ast.Expr) *ast.SelectorExpr {
	sel, _ := e.(*ast.SelectorExpr)
	return sel
}

// maxIterations is the largest number of iterations that are unrolled, whatever the loop contains.
const maxIterations = 64

// selects reports whether a variable selects an element: in an index, a call or a comparison.
func (f *frame) selects(body ast.Node, variable ast.Expr) bool {
	id, ok := variable.(*ast.Ident)
	if !ok {
		return false
	}
	obj := f.info.ObjectOf(id)
	found := false
	uses := func(list ...ast.Expr) {
		for _, e := range list {
			if e == nil {
				continue
			}
			ast.Inspect(e, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				found = found || ok && obj != nil && f.info.Uses[id] == obj
				return true
			})
		}
	}

	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			uses(n.Index)
		case *ast.SliceExpr:
			uses(n.Low, n.High)
		case *ast.CallExpr:
			if !f.info.Types[n.Fun].IsType() {
				uses(n.Args...)
			}
		case *ast.BinaryExpr:
			if n.Op.Precedence() == token.EQL.Precedence() {
				uses(n)
			}
		}

		return true
	})
	return found
}

// iteration follows the statements of an iteration. After a continue that the tick decides, the
// rest of the iteration is the other branch.
func (f *frame) iteration(stmts []ast.Stmt) flow {
	for i, st := range stmts {
		c, ok := st.(*ast.IfStmt)
		if !ok || c.Else != nil || !endsWithContinue(c.Body) {
			if end := f.exec(st); end != falls {
				return end
			}
			continue
		}

		f.exec(c.Init)
		first, rest := c.Body.List[:len(c.Body.List)-1], stmts[i+1:]
		assigned := f.assignedIn(slices.Concat(first, rest)...)
		body, els := func() flow { return f.execList(first) }, func() flow { return f.iteration(rest) }
		return f.followBranches(f.eval(c.Cond), assigned, body, els)
	}

	return falls
}

// endsWithContinue reports whether a block ends with continue.
func endsWithContinue(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	last, ok := b.List[len(b.List)-1].(*ast.BranchStmt)
	return ok && last.Tok == token.CONTINUE
}

// maxElementwise is the largest number of iterations of an elementwise loop that are unrolled.
const maxElementwise = 32

// elementwise reports whether a loop contains only a few assignments: operations on vectors.
func elementwise(b *ast.BlockStmt) bool {
	isCall := func(e ast.Expr) bool { _, call := e.(*ast.CallExpr); return call }
	for _, st := range b.List {
		if a, ok := st.(*ast.AssignStmt); !ok || slices.ContainsFunc(a.Rhs, isCall) {
			return false
		}
	}

	return len(b.List) <= 4
}
