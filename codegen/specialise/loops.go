package specialise

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path"
	"strings"
)

func (f *frame) forLoop(st *ast.ForStmt) flow {
	if st.Init != nil {
		f.exec(st.Init)
	}
	if f.indexed(st) {
		end, limit := falls, f.limit
		if f.dispatches(st) {
			limit *= many
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
	var nodes []ast.Node
	for _, n := range []ast.Stmt{st.Body, st.Post} {
		if n != nil {
			nodes = append(nodes, n)
		}
	}
	f.settleVars(f.assignedIn(nodes...), true)
	entry := f.clone()
	clear(f.fn.kept)
	defer clear(f.fn.kept)
	f.dyn++
	f.loops = append(f.loops, &cycle{dyn: f.dyn})
	f.keepLoop(st, entry)
	f.loops = f.loops[:len(f.loops)-1]
	f.dyn--
	f.same(st, entry)
	f.vars = entry
	return falls
}

// keepLoop makes a loop of the generated code.
func (f *frame) keepLoop(st *ast.ForStmt, entry map[types.Object]binding) {
	cond := truth(true)
	if st.Cond != nil {
		if pre := f.block(func() { cond = f.eval(st.Cond) }); len(pre) > 0 {
			if !onlyRows(pre) {
				f.fail(st.Cond, "the condition of a loop needs statements of its own")
			}
			for _, row := range pre {
				f.emit(row)
			}
		}
	}
	if cond.is(false) {
		return
	}
	out := &stmt{kind: loop}
	if cond.con == nil {
		out.text = cond.text
	}
	out.body = f.block(func() { f.list(st.Body.List) })
	if st.Post != nil {
		f.vars = maps.Clone(entry)
		f.step(st, out, f.block(func() { f.exec(st.Post) }))
	}
	f.emit(out)
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

// same checks that a turn of a loop leaves references as they were.
func (f *frame) same(n ast.Node, entry map[types.Object]binding) {
	for obj, b := range entry {
		if obj.Pos() >= n.Pos() && obj.Pos() < n.End() {
			continue // made anew in every turn
		}
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
	if p, ok := st.Post.(*ast.IncDecStmt); ok && st.Init == nil {
		id, ok := p.X.(*ast.Ident)
		return ok && f.selects(st.Body, f.info.Uses[id])
	}
	return false
}

// unrollFor follows the turns of a loop as long as its condition is known.
func (f *frame) unrollFor(st *ast.ForStmt, limit int) flow {
	c := &cycle{unrolled: true, dyn: f.dyn}
	f.loops = append(f.loops, c)
	defer func() { f.loops = f.loops[:len(f.loops)-1] }()
	for n := 0; ; n++ {
		cond := f.eval(st.Cond)
		if cond.con == nil || n > max(turns, limit) && cond.is(true) {
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
	products := known && count <= turns*many && f.products(st, x)
	if products && f.apart(f.limit*many, func() { f.unrollProducts(st, x, int(count)) }) {
		return falls
	}
	records := known && f.records(st, x) && count <= turns*many
	if known && (count == 1 || count <= turns && f.gains(st)) || x.kind == tuple || records {
		end, limit := falls, f.limit
		if x.kind == tuple || records { // of slices nothing else can be made
			limit *= many
		} else if known && count <= vector && elementwise(st.Body) {
			limit *= many / 2
		}
		if f.attempt(limit, func() { end = f.unrollRange(st, x, int(count)) }) {
			return end
		}
		f.notes[f.fn.decl.Name.Name] = true
	}
	if x.kind == tuple {
		x = f.spread(st, x)
	}
	if !known {
		n = f.steady(n, "count")
	}
	f.settleVars(f.assignedIn(st.Body), true)
	entry := f.clone()
	clear(f.fn.kept)
	defer clear(f.fn.kept)
	f.dyn++
	f.loops = append(f.loops, &cycle{dyn: f.dyn})
	i := f.counter(st)
	if known {
		i.ranged, i.lo, i.hi = true, 0, count-1
	}
	out := &stmt{kind: loop, names: []string{i.text}, right: n.text, pure: true}
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

// counter is what a loop over a range counts with.
func (f *frame) counter(st *ast.RangeStmt) *value {
	name := "i"
	id, named := st.Key.(*ast.Ident)
	if named && id.Name != "_" {
		name = id.Name
	}
	i := dynamic(f.unique(name), operand, types.Typ[types.Int])
	if named && f.info.Defs[id] != nil {
		i.typ = f.info.Defs[id].Type()
	}
	i.stable = true
	return i
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
		end := f.entitled(st.Body, []ast.Expr{st.Key, st.Value}, func() flow {
			f.turn(st, x, i)
			return f.turnList(st.Body.List)
		})
		switch end {
		case breaks:
			return falls
		case leaves, returns:
			return end
		}
	}
	return falls
}
