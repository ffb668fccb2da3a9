package specialise

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// assignment follows =, := and an assignment with an operation.
func (f *frame) assignment(st *ast.AssignStmt) {
	define := st.Tok == token.DEFINE
	if !define && st.Tok != token.ASSIGN {
		f.update(st.Lhs[0], st.Tok+(token.ADD-token.ADD_ASSIGN), f.eval(st.Rhs[0])) // both lists of tokens have one order
		return
	}

	var got []*value
	if len(st.Lhs) > 1 && len(st.Rhs) == 1 {
		got = f.call(st.Rhs[0].(*ast.CallExpr), callMode{wanted: st.Lhs})
	} else {
		for _, e := range st.Rhs {
			got = append(got, f.eval(e))
		}
	}

	for i, v := range got {
		if v.kind == scalar && f.hazard(st.Lhs[:i], v.text) {
			got[i] = f.freeze(v, "was")
		}
	}

	for i, e := range st.Lhs {
		f.assign(e, got[i])
	}
}

// hazard reports whether the assignments in before may change what a text reads: a variable of that
// name, or a field whose name contains it.
func (f *frame) hazard(before []ast.Expr, text string) bool {
	text = strings.ToLower(text)
	for _, e := range before {
		memory := false
		for x, ok := e.(*ast.IndexExpr); ok; x, ok = e.(*ast.IndexExpr) {
			e, memory = x.X, true
		}
		name := ""
		switch x := e.(type) {
		case *ast.Ident: // an array under another name may be any array
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
func (f *frame) assign(e ast.Expr, v *value) {
	id, ok := e.(*ast.Ident)
	switch {
	case !ok:
		f.store(f.address(e).at, v)
	case id.Name == "_":
		f.effect(v)
	case f.info.Defs[id] != nil:
		f.bind(f.info.Defs[id], v, true)
	default:
		f.bind(f.info.Uses[id], v, false)
	}
}

// bind gives a variable a value.
func (f *frame) bind(obj types.Object, v *value, define bool) {
	b := f.vars[obj]
	if define {
		b = binding{dyn: f.dyn}
	}
	defer func() { f.vars[obj] = b }()

	switch {
	case v.kind != scalar:
		b.val = f.freezeOffsets(v)
		return
	case v.con != nil:
		b.val, b.fresh = constantValue(v.con, obj.Type()), false
		if b.name != "" && f.dyn > b.dyn {
			f.emit(&stmt{kind: set, names: []string{b.name}, right: b.val.text, pure: true})
			b.fresh = true
		}

		return
	case define && v.stable && !f.reassigned[obj]: // another name for a value that does not change
		b.val = v
		return
	case b.name != "" && b.fresh && v.text == b.name:
		return // unchanged
	}

	st := &stmt{kind: set, names: []string{b.name}, right: v.text, pure: f.pure(v.text)}
	if b.name == "" {
		b.name = f.unique(obj.Name())
		st.kind, st.names[0] = declare, b.name
	}

	f.emit(st)
	b.val, b.fresh = f.variable(obj, b.name), true
	b.val.notNegZero = v.notNegZero
}

// freezeOffsets returns a reference whose offsets later assignments do not change.
func (f *frame) freezeOffsets(v *value) *value {
	if v.kind != slice {
		return v
	}
	w := *v
	w.off, w.len = f.freeze(v.off, "from"), f.freeze(v.len, "count")
	return &w
}

// update follows x op= v.
func (f *frame) update(e ast.Expr, op token.Token, v *value) {
	id, ok := e.(*ast.Ident)
	if !ok {
		f.updatePlace(f.address(e).at, op, v)
		return
	}

	obj := f.info.Uses[id]
	b := f.vars[obj]
	sum := arith(op, b.val, v)
	switch {
	case sum == b.val:
	case b.fresh && b.val.con == nil && sum.con == nil && sum != v && b.val.text == b.name:
		f.emit(&stmt{kind: set, names: []string{b.name}, right: v.text, text: assigns(op), pure: f.pure(v.text)})
		b.val = f.variable(obj, b.name)
		b.val.notNegZero = sum.notNegZero
		f.vars[obj] = b
	default:
		f.bind(obj, sum, false)
	}
}

// updatePlace is update for a place.
func (f *frame) updatePlace(at *place, op token.Token, v *value) {
	now := f.number(at)
	sum := arith(op, now, v)
	switch {
	case sum == now:
	case now.con != nil || sum.con != nil:
		f.storeScalar(at, sum, token.ASSIGN)
	default:
		f.storeScalar(at, v, op)
	}
}

// join keeps the values of variables on which both branches agree.
func (f *frame) join(other map[types.Object]binding) {
	for obj, b := range f.vars {
		o, ok := other[obj]
		if !ok {
			continue
		}
		same := b.val.key() == o.val.key()
		switch {
		case b.val.kind != scalar || o.val.kind != scalar:
			if !same {
				b.val = &value{kind: lost, typ: b.val.typ}
			}
		case b.val.con != nil && o.val.con != nil && b.val.text == o.val.text:
			b.fresh = b.fresh && o.fresh
		case !same:
			b.val, b.fresh = f.variable(obj, b.name), true
		case !o.val.notNegZero:
			v := *b.val
			v.notNegZero = false
			b.val = &v
		}

		f.vars[obj] = b
	}
}

// variable returns the value of a variable of the generated code.
func (f *frame) variable(obj types.Object, name string) *value {
	v := dynamic(name, operand, obj.Type())
	v.stable = !f.reassigned[obj]
	return v
}

// declareVars gives a generated variable to every scalar that a branch or a loop assigns, and sets
// it. With forget its value is no longer known.
func (f *frame) declareVars(list []types.Object, forget bool) {
	for _, obj := range list {
		b, ok := f.vars[obj]
		if !ok || b.val.kind != scalar {
			continue
		}
		switch {
		case b.name == "":
			b.name = f.unique(obj.Name())
			v := *b.val
			v.typ = obj.Type()
			f.emit(&stmt{kind: declare, names: []string{b.name}, right: v.typed(), pure: f.pure(v.text)})
		case !b.fresh:
			f.emit(&stmt{kind: set, names: []string{b.name}, right: b.val.text, pure: f.pure(b.val.text)})
		}

		b.fresh = true
		if forget || b.val.con == nil {
			notNegZero := b.val.notNegZero && !forget
			b.val = f.variable(obj, b.name)
			b.val.notNegZero = notNegZero
		}

		f.vars[obj] = b
	}
}
