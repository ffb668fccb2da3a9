package specialise

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
)

// flow is how a statement ends.
type flow uint8

const (
	falls     flow = iota // to the next
	leaves                // by a jump that is in the generated code
	returns               // out of an inlined call
	breaks                // out of a loop that is written out
	continues             // to its next turn
)

func (f *frame) clone() map[types.Object]binding { return maps.Clone(f.vars) }

// block collects the statements that do makes.
func (f *frame) block(do func()) []*stmt {
	var list []*stmt
	out := f.fn.out
	f.fn.out = &list
	f.fn.rows = append(f.fn.rows, map[string]string{})
	do()
	f.fn.out, f.fn.rows = out, f.fn.rows[:len(f.fn.rows)-1]
	return list
}

// attempt does what may turn out too long or impossible, and takes it back then.
func (f *frame) attempt(limit int, do func()) (ok bool) {
	fn, vars, dyn, loops := f.fn, f.clone(), f.dyn, len(f.loops)
	kept := maps.Clone(fn.kept)
	out, emitted, rows, bound, effects := fn.out, fn.emitted, len(fn.rows), fn.bound, fn.effects
	var list []*stmt
	fn.out = &list
	fn.rows = append(fn.rows, map[string]string{})
	fn.bound = append(fn.bound, fn.emitted+limit)
	defer func() {
		r := recover()
		last := fn.rows[rows]
		fn.out, fn.rows, fn.bound = out, fn.rows[:rows], bound
		if r == nil {
			maps.Copy(fn.rows[rows-1], last)
			*fn.out = append(*fn.out, list...)
			ok = true
			return
		}
		f.vars, f.dyn, f.loops = vars, dyn, f.loops[:loops]
		fn.emitted, fn.effects, fn.kept = emitted, effects, kept
		switch e := r.(type) {
		case cannot:
		case tooLong:
			if e.of != fn {
				panic(r)
			}
		default:
			panic(r)
		}
	}()
	do()
	return
}

// apart is an attempt that counts as one statement to those around it.
func (f *frame) apart(limit int, do func()) bool {
	emitted, bound := f.fn.emitted, f.fn.bound
	f.fn.bound = nil
	ok := f.attempt(limit, do)
	f.fn.bound = bound
	if ok {
		f.fn.emitted = emitted + 1
	}
	return ok
}

// notBrief ends an attempt of what is to be brief as it is: no part of it becomes a call to
// make it so.
type notBrief struct{ of *fn }

// briefly is an attempt of a few statements, which count as the call that they stand for.
func (f *frame) briefly(do func()) (ok bool) {
	if f.few == 0 {
		return false
	}
	fn, before, emitted := f.fn, f.fn.strict, f.fn.emitted
	defer func() {
		if fn.strict = before; ok && before == 0 {
			fn.emitted = emitted + 1
		}
		if r := recover(); r != nil && r != any(notBrief{fn}) {
			panic(r)
		}
	}()
	if fn.strict = fn.emitted + f.few; before > 0 {
		fn.strict = min(fn.strict, before)
	}
	return f.attempt(f.limit, do)
}

// most is how many statements a function may have now.
func (fn *fn) most() int {
	least := 1 << 30
	for _, b := range fn.bound {
		least = min(least, b)
	}
	return least
}

func (f *frame) list(stmts []ast.Stmt) flow {
	for _, st := range stmts {
		if end := f.exec(st); end != falls {
			return end
		}
	}
	return falls
}

func (f *frame) exec(st ast.Stmt) flow {
	switch st := st.(type) {
	case *ast.BlockStmt:
		return f.list(st.List)
	case *ast.ExprStmt:
		f.statement(st.X)
	case *ast.AssignStmt:
		f.assignment(st)
	case *ast.IncDecStmt:
		op := token.ADD
		if st.Tok == token.DEC {
			op = token.SUB
		}
		f.update(st.X, op, constantValue(int64(1), f.info.TypeOf(st.X)))
	case *ast.DeclStmt:
		for _, s := range st.Decl.(*ast.GenDecl).Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				f.declared(v)
			}
		}
	case *ast.ReturnStmt:
		return f.leave(st)
	case *ast.BranchStmt:
		return f.jump(st)
	case *ast.IfStmt:
		return f.ifElse(st)
	case *ast.SwitchStmt:
		return f.choose(st)
	case *ast.ForStmt:
		return f.forLoop(st)
	case *ast.RangeStmt:
		return f.rangeLoop(st)
	default:
		f.fail(st, "%T is not part of a tick", st)
	}
	return falls
}

// statement is an expression of which only the effect counts.
func (f *frame) statement(e ast.Expr) {
	f.discard = e
	for _, v := range f.call(e.(*ast.CallExpr)) {
		if v != nil && v.kind == scalar && v.con == nil && !f.pure(v.text) {
			f.emit(&stmt{kind: line, text: v.text})
		}
	}
}

func (f *frame) declared(v *ast.ValueSpec) {
	for i, n := range v.Names {
		obj := f.info.Defs[n]
		if obj == nil {
			continue
		}
		if _, ok := obj.(*types.Const); ok {
			continue
		}
		val := zeroOf(obj.Type())
		if i < len(v.Values) {
			val = f.eval(v.Values[i])
		}
		f.bind(obj, val, true)
	}
}

// leave is return.
func (f *frame) leave(st *ast.ReturnStmt) flow {
	var got []*value
	switch {
	case len(st.Results) == 0:
		for _, obj := range f.results {
			got = append(got, f.vars[obj].val)
		}
	case len(st.Results) == 1:
		v := f.eval(st.Results[0])
		if got = []*value{v}; v.kind == tuple && len(f.types) > 1 {
			got = v.list
		}
	default:
		for _, e := range st.Results {
			got = append(got, f.eval(e))
		}
	}
	for i, t := range f.types {
		if got[i].kind == scalar && got[i].con != nil {
			v := *got[i]
			v.typ = t
			got[i] = &v
		}
	}
	if f.inlined {
		if f.dyn > 0 {
			panic(cannot{})
		}
		for i, v := range got {
			got[i] = f.final(v)
		}
		f.back = got
		return returns
	}
	f.fn.give(got)
	text := "return"
	for i, v := range got {
		if v.kind != scalar {
			f.fail(st, "a reference is returned")
		}
		if text += " "; i > 0 {
			text = text[:len(text)-1] + ", "
		}
		text += v.text
	}
	f.emit(&stmt{kind: line, text: text})
	return leaves
}

// final is a result: a variable of the call that gives it does not change any more.
func (f *frame) final(v *value) *value {
	for _, b := range f.vars {
		if b.name != "" && v.kind == scalar && v.con == nil && v.text == b.name {
			w := *v
			w.stable = true
			return &w
		}
	}
	return v
}

// give notes what a return of the function gives.
func (fn *fn) give(got []*value) {
	if !fn.returned {
		fn.returns, fn.returned = append([]*value(nil), got...), true
	}
	for i, v := range got {
		if was := fn.returns[i]; was != nil && (v.con == nil || was.con == nil || v.text != was.text) {
			fn.returns[i] = nil
		}
	}
}

func (f *frame) jump(st *ast.BranchStmt) flow {
	if st.Label != nil || len(f.loops) == 0 || st.Tok == token.GOTO || st.Tok == token.FALLTHROUGH {
		f.fail(st, "%s with a label, or out of no loop", st.Tok)
	}
	c := f.loops[len(f.loops)-1]
	if c == nil {
		if st.Tok == token.BREAK {
			f.fail(st, "break out of a switch")
		}
		for i := len(f.loops) - 1; c == nil; i-- {
			c = f.loops[i]
		}
	}
	if !c.unrolled {
		f.emit(&stmt{kind: line, text: st.Tok.String()})
		return leaves
	}
	if f.dyn > c.dyn {
		panic(cannot{})
	}
	if st.Tok == token.BREAK {
		return breaks
	}
	return continues
}

func (f *frame) ifElse(st *ast.IfStmt) flow {
	if st.Init != nil {
		f.exec(st.Init)
	}
	cond := f.eval(st.Cond)
	body := func() flow { return f.list(st.Body.List) }
	els := func() flow {
		if st.Else == nil {
			return falls
		}
		return f.exec(st.Else)
	}
	var other ast.Node
	if st.Else != nil {
		other = st.Else
	}
	return f.fork(cond, f.assignedIn(st.Body, other), body, els)
}

// fork follows both ways where the tick decides.
func (f *frame) fork(cond *value, assigned []types.Object, body, els func() flow) flow {
	switch {
	case cond.is(true):
		return body()
	case cond.is(false):
		return els()
	}
	f.settleVars(assigned, false)
	before := f.clone()
	f.dyn++
	var a, b flow
	kept := maps.Clone(f.fn.kept)
	st := &stmt{kind: branch, text: cond.text, pure: f.pure(cond.text)}
	st.body = f.block(func() { a = body() })
	after, left := f.vars, f.fn.kept
	f.vars, f.fn.kept = before, kept
	st.els = f.block(func() { b = els() })
	f.dyn--
	maps.DeleteFunc(f.fn.kept, func(cell string, v *value) bool { return left[cell] != v })
	for _, end := range []flow{a, b} {
		if end != falls && end != leaves {
			panic(cannot{})
		}
	}
	f.emit(st)
	switch {
	case a == leaves && b == leaves:
		return leaves
	case b == leaves:
		f.vars = after
		f.lower()
	case a == falls:
		f.join(after)
	}
	return falls
}

func (f *frame) choose(st *ast.SwitchStmt) flow {
	if st.Init != nil {
		f.exec(st.Init)
	}
	var tag *value
	if st.Tag != nil {
		tag = f.steady(f.eval(st.Tag), "of")
	}
	f.loops = append(f.loops, nil)
	end := f.cases(tag, st.Body.List, nil)
	f.loops = f.loops[:len(f.loops)-1]
	return end
}

// cases goes through the cases of a switch.
func (f *frame) cases(tag *value, list []ast.Stmt, other *ast.CaseClause) flow {
	if len(list) == 0 {
		if other == nil {
			return falls
		}
		return f.list(other.Body)
	}
	c := list[0].(*ast.CaseClause)
	if c.List == nil {
		return f.cases(tag, list[1:], c)
	}
	cond := truth(false)
	for _, e := range c.List {
		v := f.eval(e)
		if tag != nil {
			v = arith("==", tag, v)
		}
		cond = arith("||", cond, v)
	}
	nodes := make([]ast.Node, 0, len(list)+1)
	for _, n := range list {
		nodes = append(nodes, n)
	}
	if other != nil {
		nodes = append(nodes, other)
	}
	return f.fork(cond, f.assignedIn(nodes...), func() flow { return f.list(c.Body) }, func() flow { return f.cases(tag, list[1:], other) })
}
