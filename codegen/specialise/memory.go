package specialise

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strings"
)

// selected is the place of a field, through what is embedded.
func (f *frame) selected(e *ast.SelectorExpr) *value {
	sel := f.info.Selections[e]
	if sel == nil {
		if id, ok := e.X.(*ast.Ident); ok { // of a package
			if lit, ok := f.program.vars[f.info.Uses[e.Sel]]; ok {
				return f.global(f.info.Uses[e.Sel], lit)
			}
			f.fail(e, "%s.%s is not known", id.Name, e.Sel.Name)
		}
	}
	base := f.eval(e.X)
	return f.through(e, base, sel.Index())
}

// through follows a path of fields.
func (f *frame) through(e ast.Expr, base *value, path []int) *value {
	for _, i := range path {
		switch base.kind {
		case record:
			base = base.list[i]
		case ref:
			st := structOf(base.at.typ)
			at := base.at.field(st.Field(i), i)
			base = &value{kind: ref, at: at, typ: at.typ}
		default:
			f.fail(e, "no field of %s", base.key())
		}
	}
	return base
}

// load is what stands at a place: a number, a slice, or the place where it is more.
func (f *frame) load(v *value) *value {
	if v.kind != ref {
		return v
	}
	switch u := v.at.typ.Underlying().(type) {
	case *types.Basic:
		return f.number(v.at)
	case *types.Slice:
		return f.wholeSlice(v.at)
	case *types.Pointer:
		if v.at.many == nil && v.at.one.IsValid() && v.at.one.IsNil() {
			return &value{kind: absent, typ: u}
		}
	}
	return v
}

// wholeSlice is a slice where it is a variable.
func (f *frame) wholeSlice(at *place) *value {
	fam := at.family()
	list := make([]any, len(fam.list))
	isNil := true
	for i, m := range fam.list {
		if m.IsValid() {
			list[i] = int64(m.Len())
			isNil = isNil && m.IsNil()
		}
	}
	if isNil {
		return &value{kind: slice, typ: at.typ, at: at, off: wholeNumber(0), len: wholeNumber(0)}
	}
	return &value{kind: slice, typ: at.typ, at: at, off: wholeNumber(0), len: f.column(at, fam.at, list, types.Typ[types.Int], "Len")}
}

// number is the scalar at a place: a constant where nothing assigns to it.
func (f *frame) number(at *place) *value {
	if v := f.fn.kept[at.cell()]; v != nil {
		return v
	}
	if !at.fixed && !at.param && f.isGiven(at.cell()) || at.param {
		if !at.param {
			f.ask(at.cell())
			f.shape(at)
			f.fn.looks = f.fn.looks || keeps(at.cell())
		}
		return dynamic(at.full(), operand, at.typ)
	}
	if at.many == nil {
		if !at.one.IsValid() {
			return zeroOf(at.typ) // out of reach: a branch that is never taken
		}
		return constantValue(plain(at.one), at.typ)
	}
	return f.lookup(at)
}

// plain is a number as constants hold it.
func plain(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Float64:
		return v.Float()
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	}
	return v.Int()
}

// address is &x, or x where it is a struct or an array.
func (f *frame) address(x ast.Expr) *value {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return f.selected(x)
	case *ast.IndexExpr:
		return f.elementOf(x)
	case *ast.CompositeLit:
		return f.composite(x)
	case *ast.ParenExpr:
		return f.address(x.X)
	case *ast.StarExpr:
		return f.eval(x.X)
	}
	v := f.eval(x)
	if v.kind != ref {
		f.fail(x, "address of a variable")
	}
	return v
}

// elementOf is the place of an element.
func (f *frame) elementOf(e *ast.IndexExpr) *value {
	base, i := f.eval(e.X), f.eval(e.Index)
	return f.nth(e, base, i)
}

func (f *frame) nth(e ast.Expr, base, i *value) *value {
	i = f.converted(i, types.Typ[types.Int])
	switch base.kind {
	case tuple:
		if n, ok := i.integer(); ok {
			return base.list[n]
		}
		f.fail(e, "index into what is written down")
	case slice:
		elem := base.typ.Underlying().(*types.Slice).Elem()
		if _, scalar := elem.Underlying().(*types.Basic); !scalar {
			i = f.steady(i, "at")
		}
		at := f.element(base.at, f.behind(base, i), elem)
		return &value{kind: ref, at: at, typ: elem}
	case ref:
		t := base.at.typ
		if ptr, ok := t.Underlying().(*types.Pointer); ok {
			t = ptr.Elem()
		}
		if arr, ok := t.Underlying().(*types.Array); ok {
			return &value{kind: ref, at: f.element(base.at, i, arr.Elem()), typ: arr.Elem()}
		}
	}
	f.fail(e, "no element of %s", base.key())
	return nil
}

func (f *frame) loadIndex(e *ast.IndexExpr) *value { return f.load(f.elementOf(e)) }

// sliced is x[lo:hi].
func (f *frame) sliced(e *ast.SliceExpr) *value {
	base := f.eval(e.X)
	if base.kind == ref {
		t := base.at.typ
		if ptr, ok := t.Underlying().(*types.Pointer); ok {
			t = ptr.Elem()
		}
		arr, ok := t.Underlying().(*types.Array)
		if !ok {
			f.fail(e, "slice of no array")
		}
		base = &value{kind: slice, typ: types.NewSlice(arr.Elem()), at: base.at, off: wholeNumber(0), len: wholeNumber(int(arr.Len()))}
	}
	if base.kind != slice {
		f.fail(e, "slice of %s", base.key())
	}
	lo, hi := wholeNumber(0), base.len
	if e.Low != nil {
		lo = f.steady(f.eval(e.Low), "from")
	}
	if e.High != nil {
		hi = f.steady(f.eval(e.High), "to")
	}
	length := arith("-", hi, lo)
	if e.Low != nil && e.High != nil { // x[i*n : (i+1)*n] has a length that is known
		if n, ok := f.distance(e.Low, e.High); ok {
			length = n
		}
	}
	return &value{kind: slice, typ: base.typ, at: base.at, off: arith("+", base.off, lo), len: length}
}

// distance is hi - lo where that is the same whatever the variables are.
func (f *frame) distance(lo, hi ast.Expr) (*value, bool) {
	a, aok := f.linear(lo)
	b, bok := f.linear(hi)
	if !aok || !bok {
		return nil, false
	}
	var rest int64
	for name, c := range b {
		if d := c - a[name]; name == "" {
			rest = d
		} else if d != 0 {
			return nil, false
		}
	}
	for name, c := range a {
		if _, ok := b[name]; !ok {
			if c != 0 && name != "" {
				return nil, false
			}
			if name == "" {
				rest -= c
			}
		}
	}
	return wholeNumber(int(rest)), true
}

// linear is an expression as a sum of variables with whole factors.
func (f *frame) linear(e ast.Expr) (map[string]int64, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.linear(e.X)
	case *ast.BinaryExpr:
		a, aok := f.linear(e.X)
		b, bok := f.linear(e.Y)
		if !aok || !bok {
			return nil, false
		}
		return combined(e.Op, a, b)
	case *ast.CallExpr:
		if id, ok := e.Fun.(*ast.Ident); !ok || id.Name != "len" {
			return nil, false
		}
	}
	v := f.eval(e)
	if n, ok := v.integer(); ok {
		return map[string]int64{"": n}, true
	}
	return map[string]int64{v.text: 1}, v.kind == scalar
}

func combined(op token.Token, a, b map[string]int64) (map[string]int64, bool) {
	out := map[string]int64{}
	switch op {
	case token.ADD, token.SUB:
		sign := int64(1)
		if op == token.SUB {
			sign = -1
		}
		for n, c := range a {
			out[n] += c
		}
		for n, c := range b {
			out[n] += sign * c
		}
		return out, true
	case token.MUL:
		if _, ok := a[""]; len(a) == 1 && ok {
			a, b = b, a
		}
		if c, ok := b[""]; len(b) == 1 && ok {
			for n, d := range a {
				out[n] = c * d
			}
			return out, true
		}
	}
	return nil, false
}

// store assigns to a place.
func (f *frame) store(e ast.Node, at *place, v *value) {
	if v.kind == record || v.kind == ref {
		st, ok := at.typ.Underlying().(*types.Struct)
		if !ok {
			f.storeArray(e, at, v)
			return
		}
		for i := range st.NumFields() {
			f.store(e, at.field(st.Field(i), i), f.load(f.through(nil, v, []int{i})))
		}
		return
	}
	if v.kind != scalar {
		f.fail(e, "%s is assigned a reference", at.full())
	}
	f.put(e, at, v, "")
}

// storeArray copies a whole array.
func (f *frame) storeArray(e ast.Node, at *place, v *value) {
	arr, ok := at.typ.Underlying().(*types.Array)
	if !ok || v.kind != ref {
		f.fail(e, "%s is assigned what is no number", at.full())
	}
	for i := range arr.Len() {
		n := wholeNumber(int(i))
		f.store(e, f.element(at, n, arr.Elem()), f.load(&value{kind: ref, at: f.element(v.at, n, arr.Elem())}))
	}
}

// put stores a scalar; op is "" or that of an assignment such as +=.
func (f *frame) put(e ast.Node, at *place, v *value, op string) {
	if at.fixed {
		f.fail(e, "%s is part of the tables", at.full())
	}
	cell := at.cell()
	f.fn.effects = true
	if keeps(cell) {
		if op == "" {
			v = f.steady(v, "top")
		}
		f.keep(cell, v, op)
	}
	if !at.param {
		if op == "" && v.con != nil && !f.isGiven(cell) && f.holds(at, v) {
			return
		}
		if !f.isAsked(cell) {
			if !f.pure(v.text) {
				f.emit(&stmt{kind: set, names: []string{"_"}, right: v.text})
			}
			return
		}
		f.give(cell)
		f.shape(at)
	}
	text := " = "
	if op != "" {
		text = " " + op + "= "
	}
	f.emit(&stmt{kind: set, names: []string{at.full()}, right: v.text, text: text})
}

// holds reports whether all that a place can be is v after New.
func (f *frame) holds(at *place, v *value) bool {
	for _, m := range at.family().list {
		if m.IsValid() {
			if was := constantValue(plain(m), at.typ); was.text != v.text {
				return false
			}
		}
	}
	return true
}

// steady is a scalar in a form that later assignments do not change.
func (f *frame) steady(v *value, name string) *value {
	if v.kind != scalar || v.stable || v.con != nil {
		return v
	}
	if only := strings.TrimFunc(v.text, func(r rune) bool { return r != '.' && r != '[' && r != '(' }); only == "" && v.ranged {
		return v // of a loop's index and constants
	}
	name = f.unique(name)
	f.emit(&stmt{kind: declare, names: []string{name}, right: v.text, pure: f.pure(v.text)})
	out := *v
	out.text, out.prec, out.stable = name, operand, true
	return &out
}

// unique is a name that the function does not have yet.
func (f *frame) unique(name string) string {
	for {
		f.fn.names[name]++
		n := f.fn.names[name]
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s%d", strings.TrimRight(name, "0123456789")+"_", n)
			if strings.TrimRight(name, "0123456789") == name {
				try = fmt.Sprintf("%s%d", name, n)
			}
		}
		if !f.used[try] && (n == 1 || f.fn.names[try] == 0) {
			f.fn.names[try] = max(f.fn.names[try], 1)
			return try
		}
	}
}
