package specialise

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"math"
	"slices"
	"strings"
)

// flow is the way in which a statement ends.
type flow uint8

const (
	falls     flow = iota // at the next statement
	leaves                // with a jump that is in the generated code
	returns               // out of an inlined call
	breaks                // out of a loop that is unrolled
	continues             // at the next iteration of such a loop
)

// cloneVars returns a copy of the variables.
func (f *frame) cloneVars() map[types.Object]binding { return maps.Clone(f.vars) }

// block collects the statements that do emits.
func (f *frame) block(do func()) []*stmt {
	var list []*stmt
	out := f.fn.out
	f.fn.out = &list
	f.fn.rows = append(f.fn.rows, map[string]string{})
	do()
	f.fn.out, f.fn.rows = out, f.fn.rows[:len(f.fn.rows)-1]
	return list
}

// attempt runs do and reports true. It undoes do and reports false if the code becomes too long or
// a jump is impossible.
func (f *frame) attempt(limit int, do func()) (ok bool) {
	fn, was, frame := f.fn, *f.fn, *f
	vars, kept, rows := f.cloneVars(), maps.Clone(fn.stackCells), map[string]string{}
	var list []*stmt
	fn.out, fn.rows, fn.bound = &list, append(fn.rows, rows), min(fn.bound, fn.emitted+limit)
	defer func() {
		r := recover()
		fn.out, fn.rows, fn.bound = was.out, was.rows, was.bound
		if r == nil {
			maps.Copy(fn.rows[len(fn.rows)-1], rows)
			*fn.out = append(*fn.out, list...)
			ok = true
			return
		}

		f.vars, f.dyn, f.loops = vars, frame.dyn, frame.loops
		fn.emitted, fn.effects, fn.stackCells = was.emitted, was.effects, kept
		if r != tooLong && r != cannot {
			panic(r)
		}
	}()

	do()
	return
}

// attemptAsOne is an attempt that counts as one statement for the code around it.
func (f *frame) attemptAsOne(limit int, do func()) bool {
	was := *f.fn
	f.fn.bound = unlimited
	ok := f.attempt(limit, do)
	f.fn.bound = was.bound
	if ok {
		f.fn.emitted = was.emitted + 1
	}
	return ok
}

// attemptBrief is an attempt to inline a call as a few statements, which count as the one statement
// that they replace. None of them may become a call of a generated function.
func (f *frame) attemptBrief(do func()) (ok bool) {
	if f.maxInline == 0 {
		return false
	}
	fn, was := f.fn, *f.fn
	fn.strict = min(was.strict, fn.emitted+f.maxInline)
	defer func() {
		if fn.strict = was.strict; ok && fn.strict == unlimited {
			fn.emitted = was.emitted + 1
		}
		if r := recover(); r != nil && r != notBrief {
			panic(r)
		}
	}()

	return f.attempt(f.limit, do)
}

// unlimited is a bound of statements that is never reached.
const unlimited = math.MaxInt

// execList follows statements up to the first one that does not end at the next statement.
func (f *frame) execList(stmts []ast.Stmt) flow {
	for _, st := range stmts {
		if end := f.exec(st); end != falls {
			return end
		}
	}

	return falls
}

// exec follows one statement.
func (f *frame) exec(st ast.Stmt) flow {
	if st == nil { // for example a missing else
		return falls
	}
	f.at = st
	switch st := st.(type) {
	case *ast.BlockStmt:
		return f.execList(st.List)
	case *ast.ExprStmt:
		for _, v := range f.call(st.X.(*ast.CallExpr), callMode{discard: true}) {
			f.effect(v)
		}
	case *ast.AssignStmt:
		f.assignment(st)
	case *ast.IncDecStmt:
		op := token.ADD
		if st.Tok == token.DEC {
			op = token.SUB
		}
		f.update(st.X, op, constantValue(int64(1), f.info.TypeOf(st.X)))
	case *ast.DeclStmt:
		f.declStmt(st.Decl.(*ast.GenDecl))
	case *ast.ReturnStmt:
		return f.returnStmt(st)
	case *ast.BranchStmt:
		return f.breakOrContinue(st)
	case *ast.IfStmt:
		return f.ifStmt(st)
	case *ast.SwitchStmt:
		return f.switchStmt(st)
	case *ast.ForStmt:
		return f.forLoop(st)
	case *ast.RangeStmt:
		return f.rangeLoop(st)
	default:
		f.fail("%T is not part of a tick", st)
	}

	return falls
}

// declStmt binds the variables of a declaration.
func (f *frame) declStmt(d *ast.GenDecl) {
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		for i, n := range v.Names {
			obj, ok := f.info.Defs[n].(*types.Var)
			switch {
			case !ok: // a constant
			case i < len(v.Values):
				f.bind(obj, f.eval(v.Values[i]), true)
			default:
				f.bind(obj, zeroOf(obj.Type()), true)
			}
		}
	}
}

// returnStmt follows a return statement.
func (f *frame) returnStmt(st *ast.ReturnStmt) flow {
	var got []*value
	for _, e := range st.Results {
		got = append(got, f.eval(e))
	}
	switch {
	case len(got) == 0:
		for _, obj := range f.results {
			got = append(got, f.vars[obj].val)
		}
	case len(got) < len(f.types): // a call with several results
		got = got[0].list
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
			panic(cannot)
		}
		for i, v := range got {
			got[i] = f.final(v)
		}
		f.inlineResults = got
		return returns
	}

	f.fn.recordReturn(got)
	var texts []string
	for _, v := range got {
		if v.kind != scalar {
			f.fail("a reference is returned")
		}
		texts = append(texts, v.text)
	}

	f.emit(&stmt{kind: line, text: strings.TrimSpace("return " + strings.Join(texts, ", "))})
	return leaves
}

// final returns result v of an inlined call. A variable of the call is marked stable, since it does
// not change after the call.
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

// recordReturn records the results of one return of the function.
func (fn *fn) recordReturn(got []*value) {
	if fn.returns == nil {
		fn.returns = slices.Clone(got)
	}
	for i, v := range got {
		if was := fn.returns[i]; was != nil && (v.con == nil || was.con == nil || v.text != was.text) {
			fn.returns[i] = nil
		}
	}
}

// breakOrContinue follows break or continue, which must belong to a loop, not to a switch.
func (f *frame) breakOrContinue(st *ast.BranchStmt) flow {
	if st.Label != nil || len(f.loops) == 0 || st.Tok != token.CONTINUE && f.loops[len(f.loops)-1] == nil {
		f.fail("%s with a label, in a switch or outside a loop", st.Tok)
	}
	c := f.loops[len(f.loops)-1]
	for i := len(f.loops) - 1; c == nil; i-- {
		c = f.loops[i]
	}
	switch {
	case !c.unrolled:
		f.emit(&stmt{kind: line, text: st.Tok.String()})
		return leaves
	case f.dyn > c.dyn:
		panic(cannot)
	case st.Tok == token.BREAK:
		return breaks
	}

	return continues
}

// ifStmt follows an if statement.
func (f *frame) ifStmt(st *ast.IfStmt) flow {
	f.exec(st.Init)
	body, els := func() flow { return f.execList(st.Body.List) }, func() flow { return f.exec(st.Else) }
	return f.followBranches(f.eval(st.Cond), f.assignedIn(st.Body, st.Else), body, els)
}

// followBranches follows the branch that a known condition selects, or both branches if the tick
// computes the condition.
func (f *frame) followBranches(cond *value, assigned []types.Object, body, els func() flow) flow {
	switch {
	case cond.is(true):
		return body()
	case cond.is(false):
		return els()
	}

	f.declareVars(assigned, false)
	before := f.cloneVars()
	f.dyn++
	var a, b flow
	kept := maps.Clone(f.fn.stackCells)
	st := &stmt{kind: branch, text: cond.text, pure: f.pure(cond.text)}
	st.body = f.block(func() { a = body() })
	after, left := f.vars, f.fn.stackCells
	f.vars, f.fn.stackCells = before, kept
	st.els = f.block(func() { b = els() })
	f.dyn--
	maps.DeleteFunc(f.fn.stackCells, func(cell string, v *value) bool { return left[cell] != v })
	if max(a, b) > leaves {
		panic(cannot)
	}
	f.emit(st)
	switch {
	case a == leaves && b == leaves:
		return leaves
	case b == leaves:
		f.vars = after
	case a == falls:
		f.join(after)
	}

	return falls
}

// switchStmt follows a switch statement.
func (f *frame) switchStmt(st *ast.SwitchStmt) flow {
	f.exec(st.Init)
	var tag *value
	if st.Tag != nil {
		tag = f.freeze(f.eval(st.Tag), "of")
	}
	f.loops = append(f.loops, nil)
	end := f.cases(tag, st.Body.List, nil)
	f.loops = f.loops[:len(f.loops)-1]
	return end
}

// cases follows the cases of a switch. other holds the statements of its default.
func (f *frame) cases(tag *value, list, other []ast.Stmt) flow {
	if len(list) == 0 {
		return f.execList(other)
	}
	c := list[0].(*ast.CaseClause)
	if c.List == nil {
		return f.cases(tag, list[1:], c.Body)
	}
	cond := truth(false)
	for _, e := range c.List {
		v := f.eval(e)
		if tag != nil {
			v = arith(token.EQL, tag, v)
		}
		cond = arith(token.LOR, cond, v)
	}

	body, els := func() flow { return f.execList(c.Body) }, func() flow { return f.cases(tag, list[1:], other) }
	return f.followBranches(cond, f.assignedIn(slices.Concat(list, other)...), body, els)
}
