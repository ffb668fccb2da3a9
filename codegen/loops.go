package codegen

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"strings"
)

// turns is how often a loop is written out at most, whatever is in it.
const turns = 64

func (f *frame) forLoop(st *ast.ForStmt) flow {
	if st.Init != nil {
		f.exec(st.Init)
	}
	if f.indexed(st) {
		end := falls
		if f.attempt(f.limit, func() { end = f.unrollFor(st) }) {
			return end
		}
	}
	var nodes []ast.Node
	for _, n := range []ast.Stmt{st.Body, st.Post} {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	f.settleVars(f.assignedIn(nodes...), true)
	out := &stmt{kind: loop}
	entry := f.clone()
	f.dyn++
	f.loops = append(f.loops, &cycle{dyn: f.dyn})
	cond := truth(true)
	if st.Cond != nil {
		if pre := f.block(func() { cond = f.eval(st.Cond) }); len(pre) > 0 {
			f.fail(st.Cond, "the condition of a loop needs statements of its own")
		}
	}
	if cond.con == nil || cond.is(true) {
		out.text = cond.text
		if cond.con != nil {
			out.text = ""
		}
		out.body = f.block(func() { f.list(st.Body.List) })
		if st.Post != nil {
			f.vars = merged(f, entry)
			post := f.block(func() { f.exec(st.Post) })
			f.step(st, out, post)
		}
		f.emit(out)
	}
	f.loops = f.loops[:len(f.loops)-1]
	f.dyn--
	f.same(st, entry)
	f.vars = entry
	return falls
}

// step adds what a loop does behind each turn: to its head where it is an assignment.
func (f *frame) step(st *ast.ForStmt, out *stmt, post []*stmt) {
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
			f.fail(b, "a loop whose step is no assignment goes on early")
		}
		return true
	})
	out.body = append(out.body, post...)
}

// merged is what is known at the end of a turn: no more than at its begin.
func merged(f *frame, entry map[types.Object]binding) map[types.Object]binding {
	out := map[types.Object]binding{}
	for obj, b := range entry {
		out[obj] = b
	}
	return out
}

// same checks that a turn of a loop leaves references as they were.
func (f *frame) same(n ast.Node, entry map[types.Object]binding) {
	for obj, b := range entry {
		if now, ok := f.vars[obj]; ok && b.val.kind != scalar && now.val.key() != b.val.key() {
			f.fail(n, "what %s refers to changes from turn to turn", obj.Name())
		}
	}
}

// indexed reports whether a loop has a variable: it may pay to write it out.
func (f *frame) indexed(st *ast.ForStmt) bool {
	if a, ok := st.Init.(*ast.AssignStmt); ok {
		return f.selects(st.Body, f.info.Defs[a.Lhs[0].(*ast.Ident)])
	}
	if st.Init == nil && st.Post == nil && st.Cond != nil {
		return f.eval(st.Cond).con != nil
	}
	return false
}

// gains reports whether a loop is simpler where its turns are written out.
func (f *frame) gains(st *ast.RangeStmt) bool {
	if named(st.Value) {
		return true
	}
	id, ok := st.Key.(*ast.Ident)
	return ok && f.selects(st.Body, f.info.Defs[id])
}

// selects reports whether a variable says which element is meant: in an index, a call, a
// comparison.
func (f *frame) selects(body ast.Node, obj types.Object) bool {
	found := false
	uses := func(n ast.Node) {
		if n != nil {
			ast.Inspect(n, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && obj != nil && f.info.Uses[id] == obj {
					found = true
				}
				return true
			})
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IndexExpr:
			uses(n.Index)
		case *ast.SliceExpr:
			uses(n.Low)
			uses(n.High)
		case *ast.CallExpr:
			if !f.info.Types[n.Fun].IsType() {
				for _, a := range n.Args {
					uses(a)
				}
			}
		case *ast.BinaryExpr:
			if precedence[n.Op.String()] == 3 {
				uses(n)
			}
		}
		return true
	})
	return found
}

// unrollFor follows the turns of a loop as long as its condition is known.
func (f *frame) unrollFor(st *ast.ForStmt) flow {
	c := &cycle{unrolled: true, dyn: f.dyn}
	f.loops = append(f.loops, c)
	defer func() { f.loops = f.loops[:len(f.loops)-1] }()
	for n := 0; ; n++ {
		cond := f.eval(st.Cond)
		if cond.con == nil || n > turns && cond.is(true) {
			panic(cannot{})
		}
		if cond.is(false) {
			return falls
		}
		switch end := f.turnList(st.Body.List); end {
		case breaks:
			return falls
		case leaves, returns:
			return end
		}
		if st.Post != nil {
			f.exec(st.Post)
		}
	}
}

func (f *frame) rangeLoop(st *ast.RangeStmt) flow {
	x := f.eval(st.X)
	n := f.lengthOf(st, x)
	count, known := n.integer()
	if known && count <= 0 {
		return falls
	}
	if known && (count == 1 || count <= turns && f.gains(st)) || x.kind == tuple {
		end := falls
		if f.attempt(f.limit, func() { end = f.unrollRange(st, x, int(count)) }) {
			return end
		}
		f.notes["too long or with jumps of its own: "+f.fset.Position(st.Pos()).String()]++
	}
	if x.kind == tuple {
		x = f.spread(st, x)
	}
	if !known {
		n = f.steady(n, "count")
	}
	f.settleVars(f.assignedIn(st.Body), true)
	entry := f.clone()
	f.dyn++
	f.loops = append(f.loops, &cycle{dyn: f.dyn})
	name := "i"
	if id, ok := st.Key.(*ast.Ident); ok && id.Name != "_" {
		name = id.Name
	}
	name = f.unique(name)
	i := dynamic(name, operand, types.Typ[types.Int])
	if id, ok := st.Key.(*ast.Ident); ok && f.info.Defs[id] != nil {
		i.typ = f.info.Defs[id].Type()
	}
	i.stable = true
	if known {
		i.ranged, i.lo, i.hi = true, 0, count-1
	}
	out := &stmt{kind: loop, names: []string{name}, right: n.text, pure: true}
	if goType(i.typ) != "int" && known {
		out.right = goType(i.typ) + "(" + n.text + ")"
	}
	out.body = f.block(func() {
		f.turn(st, x, i)
		f.list(st.Body.List)
	})
	f.emit(out)
	f.loops = f.loops[:len(f.loops)-1]
	f.dyn--
	f.same(st, entry)
	f.vars = entry
	return falls
}

// spread is a tuple of numbers as a table.
func (f *frame) spread(st *ast.RangeStmt, x *value) *value {
	arr, ok := x.typ.Underlying().(*types.Array)
	if !ok {
		f.fail(st, "a loop over what is written down is too long")
	}
	for _, v := range x.list {
		if v.kind != scalar || v.con == nil {
			f.fail(st, "a loop over what is written down is too long")
		}
	}
	at := f.fset.Position(st.Pos())
	name := fmt.Sprintf("list%s%d", strings.TrimSuffix(path.Base(at.Filename), ".go"), at.Line)
	return &value{kind: ref, typ: x.typ, at: &place{text: name, key: name, typ: x.typ, fixed: true, one: solid(x.list, arr)}}
}

func named(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name != "_"
}

// lengthOf is over how much a loop ranges.
func (f *frame) lengthOf(n ast.Node, x *value) *value {
	switch x.kind {
	case scalar:
		return x
	case slice:
		return x.len
	case tuple:
		return wholeNumber(len(x.list))
	case absent:
		return wholeNumber(0)
	case ref:
		t := x.at.typ
		if ptr, ok := t.Underlying().(*types.Pointer); ok {
			t = ptr.Elem()
		}
		if arr, ok := t.Underlying().(*types.Array); ok {
			return wholeNumber(int(arr.Len()))
		}
	}
	f.fail(n, "no length of %s", x.key())
	return nil
}

// turn binds the variables of a turn.
func (f *frame) turn(st *ast.RangeStmt, x, i *value) {
	if named(st.Key) {
		f.assign(st.Key, i, st.Tok == token.DEFINE)
	}
	if named(st.Value) {
		f.assign(st.Value, f.load(f.nth(st.X, x, i)), st.Tok == token.DEFINE)
	}
}

func (f *frame) unrollRange(st *ast.RangeStmt, x *value, count int) flow {
	c := &cycle{unrolled: true, dyn: f.dyn}
	f.loops = append(f.loops, c)
	defer func() { f.loops = f.loops[:len(f.loops)-1] }()
	typ := types.Typ[types.Int]
	for n := range count {
		i := constantValue(int64(n), typ)
		if id, ok := st.Key.(*ast.Ident); ok && f.info.Defs[id] != nil {
			t := f.info.Defs[id].Type()
			i = constantValue(wrapInt(int64(n), t), t)
		}
		f.turn(st, x, i)
		switch end := f.turnList(st.Body.List); end {
		case breaks:
			return falls
		case leaves, returns:
			return end
		}
	}
	return falls
}

// turnList follows the statements of a turn. One that goes on early where the tick decides
// has the rest of its turn as the other way.
func (f *frame) turnList(stmts []ast.Stmt) flow {
	for i, st := range stmts {
		c, ok := st.(*ast.IfStmt)
		if ok && c.Else == nil && len(c.Body.List) == 1 {
			if b, is := c.Body.List[0].(*ast.BranchStmt); is && b.Tok == token.CONTINUE {
				if c.Init != nil {
					f.exec(c.Init)
				}
				rest := stmts[i+1:]
				nodes := make([]ast.Node, len(rest))
				for n, r := range rest {
					nodes[n] = r
				}
				cond := inverted(f.eval(c.Cond))
				return f.fork(cond, f.assignedIn(nodes...), func() flow { return f.turnList(rest) }, func() flow { return falls })
			}
		}
		if end := f.exec(st); end != falls {
			return end
		}
	}
	return falls
}

// assignment is = or := or an operation with it.
func (f *frame) assignment(st *ast.AssignStmt) {
	if st.Tok != token.ASSIGN && st.Tok != token.DEFINE {
		op := map[token.Token]token.Token{
			token.ADD_ASSIGN: token.ADD, token.SUB_ASSIGN: token.SUB, token.MUL_ASSIGN: token.MUL, token.QUO_ASSIGN: token.QUO, token.REM_ASSIGN: token.REM,
			token.AND_ASSIGN: token.AND, token.OR_ASSIGN: token.OR, token.XOR_ASSIGN: token.XOR, token.SHL_ASSIGN: token.SHL, token.SHR_ASSIGN: token.SHR, token.AND_NOT_ASSIGN: token.AND_NOT,
		}[st.Tok]
		f.update(st.Lhs[0], op, f.eval(st.Rhs[0]))
		return
	}
	define := st.Tok == token.DEFINE
	if len(st.Lhs) == 1 {
		f.assign(st.Lhs[0], f.eval(st.Rhs[0]), define)
		return
	}
	var got []*value
	if len(st.Rhs) == 1 {
		f.wanted = st.Lhs
		got = f.eval(st.Rhs[0]).list
	} else {
		for _, e := range st.Rhs {
			got = append(got, f.eval(e))
		}
	}
	if hazard := f.hazard(st); hazard {
		for i, v := range got {
			if v.kind == scalar {
				got[i] = f.steady(v, "was")
			}
		}
	}
	for i, e := range st.Lhs {
		f.assign(e, got[i], define)
	}
}

// hazard reports whether an assignment of several values may overwrite what a later one
// reads: a variable, or memory where not all values are variables.
func (f *frame) hazard(st *ast.AssignStmt) bool {
	memory, variables := false, false
	for _, e := range st.Lhs {
		id, ok := e.(*ast.Ident)
		switch {
		case !ok:
			memory = true
		case id.Name == "_", f.info.Defs[id] != nil:
		default:
			variables = true
		}
	}
	plain := true
	for _, e := range st.Rhs {
		if _, ok := e.(*ast.Ident); !ok {
			plain = false
		}
	}
	return variables || memory && !plain
}

// assign gives a variable or a place a value.
func (f *frame) assign(e ast.Expr, v *value, define bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		f.assign(e.X, v, define)
		return
	case *ast.Ident:
		if e.Name == "_" {
			if v.kind == scalar && v.con == nil && !f.pure(v.text) {
				f.emit(&stmt{kind: set, names: []string{"_"}, right: v.text})
			}
			return
		}
		obj := f.info.Defs[e]
		isNew := obj != nil
		if obj == nil {
			obj = f.info.Uses[e]
		}
		f.bind(obj, v, isNew)
		return
	}
	to := f.address(e)
	f.store(e, to.at, v)
}

// bind gives a variable a value.
func (f *frame) bind(obj types.Object, v *value, define bool) {
	b := f.vars[obj]
	if define {
		b = binding{dyn: f.dyn}
	}
	switch {
	case v.kind != scalar:
		b.val = f.held(v)
		f.vars[obj] = b
		return
	case v.con != nil:
		if b.val, b.fresh = constantValue(wrapInt(v.con, obj.Type()), obj.Type()), false; b.name != "" && f.dyn > b.dyn {
			f.emit(&stmt{kind: set, names: []string{b.name}, right: b.val.text, pure: true})
			b.fresh = true
		}
		f.vars[obj] = b
		return
	case define && v.stable && !f.multi[obj]: // another name for what does not change
		b.val = v
		f.vars[obj] = b
		return
	}
	if b.name == "" {
		b.name = f.unique(obj.Name())
		f.emit(&stmt{kind: declare, names: []string{b.name}, right: v.text, pure: f.pure(v.text)})
	} else {
		f.emit(&stmt{kind: set, names: []string{b.name}, right: v.text, pure: f.pure(v.text)})
	}
	w := f.variable(obj, b.name)
	w.plus = v.plus
	if w.stable {
		w.ranged, w.lo, w.hi = false, 0, 0
	}
	b.val, b.fresh = w, true
	f.vars[obj] = b
}

// held is a reference whose offsets later assignments do not change.
func (f *frame) held(v *value) *value {
	if v.kind != slice {
		return v
	}
	w := *v
	w.off, w.len = f.steady(v.off, "from"), f.steady(v.len, "count")
	return &w
}

// update is x op= v.
func (f *frame) update(e ast.Expr, op token.Token, v *value) {
	if id, ok := e.(*ast.Ident); ok {
		obj := f.info.Uses[id]
		b := f.vars[obj]
		sum := arith(op.String(), b.val, v)
		if sum == b.val {
			return
		}
		if b.name != "" && b.fresh && b.val.con == nil && sum.con == nil && sum != v && b.val.text == b.name {
			f.emit(&stmt{kind: set, names: []string{b.name}, right: v.text, text: " " + op.String() + "= ", pure: f.pure(v.text)})
			w := f.variable(obj, b.name)
			w.plus = sum.plus
			b.val = w
			f.vars[obj] = b
			return
		}
		f.bind(obj, sum, false)
		return
	}
	to := f.address(e).at
	now := f.number(to)
	sum := arith(op.String(), now, v)
	switch {
	case sum == now:
	case now.con != nil || sum.con != nil:
		f.put(e, to, sum, "")
	default:
		f.put(e, to, v, op.String())
	}
}
