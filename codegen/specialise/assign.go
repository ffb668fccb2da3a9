package specialise

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

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
	for i, v := range got {
		if v.kind == scalar && f.hazard(st.Lhs[:i], v.text) {
			got[i] = f.steady(v, "was")
		}
	}
	for i, e := range st.Lhs {
		f.assign(e, got[i], define)
	}
}

// hazard reports whether assignments before it may change what a text reads: a variable of
// that name, or a field whose name ends so.
func (f *frame) hazard(before []ast.Expr, text string) bool {
	text = strings.ToLower(text)
	for _, e := range before {
		memory := false
		for x, ok := e.(*ast.IndexExpr); ok; x, ok = e.(*ast.IndexExpr) {
			e, memory = x.X, true
		}
		name := ""
		switch x := e.(type) {
		case *ast.Ident: // an array by another name may be any
			if name = f.vars[f.info.Uses[x]].name; memory && strings.ContainsAny(text, ".[") {
				return true
			}
		case *ast.SelectorExpr:
			name = x.Sel.Name
		case *ast.StarExpr:
			if strings.ContainsAny(text, ".[") {
				return true
			}
		}
		if name != "" && strings.Contains(text, strings.ToLower(name)) {
			return true
		}
	}
	return false
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
	switch {
	case b.name != "" && b.fresh && v.text == b.name:
		return // as it was
	case b.name == "":
		b.name = f.unique(obj.Name())
		f.emit(&stmt{kind: declare, names: []string{b.name}, right: v.text, pure: f.pure(v.text)})
	default:
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
