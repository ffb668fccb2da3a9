package specialise

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// frame is a call of a function of the source while it is followed.
type frame struct {
	*spec
	fn      *fn
	vars    map[types.Object]binding
	dyn     int // how deep in branches and loops that the tick decides
	loops   []*cycle
	inlined bool
	results []types.Object // named ones
	types   []types.Type
	back    []*value   // what an inlined call gave
	level   int        // of calls
	discard ast.Expr   // a call whose results nobody wants
	wanted  []ast.Expr // what the results of a call are assigned to
}

// binding is what a variable is.
type binding struct {
	val   *value
	name  string // in the generated code; "" where it is not there
	fresh bool   // and it holds val
	dyn   int
}

// cycle is a loop of the source while it is followed.
type cycle struct {
	unrolled bool
	dyn      int
}

func (f *frame) emit(st *stmt) {
	*f.fn.out = append(*f.fn.out, st)
	f.fn.emitted++
	if f.fn.strict > 0 && f.fn.emitted > f.fn.strict {
		panic(notBrief{f.fn})
	}
	if f.fn.emitted > f.fn.most() {
		panic(tooLong{f.fn})
	}
}

// tooLong ends an attempt to write a loop out.
type tooLong struct{ of *fn }

// cannot ends an attempt that needs a jump which it does not have.
type cannot struct{}

// eval is the value of an expression.
func (f *frame) eval(e ast.Expr) *value {
	if tv, ok := f.info.Types[e]; ok && tv.Value != nil {
		return constantOf(tv.Value, tv.Type)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.eval(e.X)
	case *ast.Ident:
		return f.ident(e)
	case *ast.SelectorExpr:
		return f.load(f.selected(e))
	case *ast.IndexExpr:
		return f.loadIndex(e)
	case *ast.SliceExpr:
		return f.sliced(e)
	case *ast.StarExpr:
		return f.load(f.eval(e.X))
	case *ast.UnaryExpr:
		if e.Op == token.AND {
			v := f.address(e.X)
			if v.kind == ref {
				w := *v
				w.at = f.rebuilt(v.at, func(i *value) *value { return f.steady(i, "at") })
				return &w
			}
			return v
		}
		return unaryOf(e.Op, f.eval(e.X))
	case *ast.BinaryExpr:
		return f.binary(e)
	case *ast.CompositeLit:
		return f.composite(e)
	case *ast.CallExpr:
		got := f.call(e)
		if len(got) == 1 {
			return got[0]
		}
		return &value{kind: tuple, list: got}
	case *ast.FuncLit:
		return &value{kind: closure, lit: e, env: f}
	}
	f.fail(e, "%T is not part of a tick", e)
	return nil
}

// constantOf is a constant of the source as the tick holds it.
func constantOf(c constant.Value, t types.Type) *value {
	b, _ := t.Underlying().(*types.Basic)
	switch {
	case b == nil || b.Info()&types.IsBoolean != 0:
		return &value{typ: t, con: constant.BoolVal(c), text: c.ExactString(), prec: operand, stable: true}
	case b.Info()&types.IsString != 0:
		return constantValue(constant.StringVal(c), t)
	case b.Info()&types.IsFloat != 0:
		x, _ := constant.Float64Val(constant.ToFloat(c))
		return constantValue(x, t)
	case b.Info()&types.IsUnsigned != 0:
		n, _ := constant.Uint64Val(constant.ToInt(c))
		return constantValue(n, t)
	}
	n, _ := constant.Int64Val(constant.ToInt(c))
	return constantValue(n, t)
}

func (f *frame) ident(e *ast.Ident) *value {
	obj := f.info.Uses[e]
	if obj == nil {
		obj = f.info.Defs[e]
	}
	if b, ok := f.vars[obj]; ok {
		if b.val.kind == lost {
			f.fail(e, "what %s refers to depends on the tick", e.Name)
		}
		return b.val
	}
	if _, ok := obj.(*types.Nil); ok {
		return &value{kind: absent}
	}
	if lit, ok := f.program.vars[obj]; ok {
		return f.global(obj, lit)
	}
	f.fail(e, "%s is not known", e.Name)
	return nil
}

// global is a table of the source.
func (f *frame) global(obj types.Object, lit ast.Expr) *value {
	arr, ok := obj.Type().Underlying().(*types.Array)
	if !ok {
		f.fail(lit, "%s is no array", obj.Name())
	}
	v := f.composite(lit.(*ast.CompositeLit))
	name := obj.Name()
	return &value{kind: ref, typ: obj.Type(), at: &place{text: name, key: name, typ: obj.Type(), fixed: true, one: solid(v.list, arr)}}
}

// solid is a tuple of constants as an array.
func solid(list []*value, arr *types.Array) reflect.Value {
	var of reflect.Type
	switch list[0].con.(type) {
	case float64:
		of = reflect.TypeFor[float64]()
	case uint64:
		of = reflect.TypeFor[uint64]()
	default:
		of = reflect.TypeFor[int64]()
	}
	out := reflect.MakeSlice(reflect.SliceOf(of), int(arr.Len()), int(arr.Len()))
	for i, v := range list {
		if v.con != nil {
			out.Index(i).Set(reflect.ValueOf(v.con).Convert(of))
		}
	}
	return out
}

func (f *frame) binary(e *ast.BinaryExpr) *value {
	a := f.eval(e.X)
	if e.Op == token.LAND && a.is(false) || e.Op == token.LOR && a.is(true) {
		return a
	}
	if e.Op == token.LAND || e.Op == token.LOR {
		return f.either(e, a)
	}
	b := f.eval(e.Y)
	if a.kind != scalar || b.kind != scalar {
		return f.compareRefs(e, a, b)
	}
	return arith(e.Op.String(), a, b)
}

// either is a && b or a || b: b is only computed where it counts.
func (f *frame) either(e *ast.BinaryExpr, a *value) *value {
	if a.con != nil {
		return f.eval(e.Y)
	}
	var b *value
	before, kept := f.clone(), maps.Clone(f.fn.kept)
	f.dyn++
	body := f.block(func() { b = f.eval(e.Y) })
	f.dyn--
	f.vars, f.fn.kept = before, kept
	if len(body) > 0 {
		clear(f.fn.kept)
	}
	if b.con != nil && len(body) > 0 && onlyPure(body) {
		body = nil
	}
	if f.pure(a.text) && (e.Op == token.LAND && b.is(false) || e.Op == token.LOR && b.is(true)) {
		return b
	}
	if len(body) == 0 {
		return arith(e.Op.String(), a, b)
	}
	if onlyRows(body) {
		for _, st := range body {
			f.emit(st)
		}
		return arith(e.Op.String(), a, b)
	}
	name := "and"
	if e.Op == token.LOR {
		name = "or"
	}
	name = f.unique(name)
	f.emit(&stmt{kind: declare, names: []string{name}, right: a.text, pure: f.pure(a.text)})
	cond := name
	if e.Op == token.LOR {
		cond = "!" + name
	}
	body = append(body, &stmt{kind: set, names: []string{name}, right: b.text, pure: f.pure(b.text)})
	f.emit(&stmt{kind: branch, text: cond, body: body})
	v := dynamic(name, operand, a.typ)
	v.stable = true
	return v
}

func onlyPure(list []*stmt) bool {
	for _, st := range list {
		if st.kind != declare || !st.pure {
			return false
		}
	}
	return true
}

// onlyRows reports whether statements do no more than point at rows of tables.
func onlyRows(list []*stmt) bool {
	for _, st := range list {
		if st.kind != declare || !strings.HasPrefix(st.right, "&") {
			return false
		}
	}
	return true
}

// pure reports whether an expression calls nothing that may have an effect.
func (s *spec) pure(text string) bool {
	return !slices.ContainsFunc(callNames(text), func(name string) bool { return !silent[name] && !s.silent[name] })
}

// compareRefs compares with nil, or two structs of constants.
func (f *frame) compareRefs(e *ast.BinaryExpr, a, b *value) *value {
	if b.kind != absent {
		a, b = b, a
	}
	if b.kind != absent {
		f.fail(e, "only nil is compared with")
	}
	isNil := f.isNil(a)
	if e.Op == token.NEQ {
		return inverted(isNil)
	}
	return isNil
}

// isNil tells whether a reference is nil.
func (f *frame) isNil(a *value) *value {
	if a.kind == absent {
		return truth(true)
	}
	if a.at.param {
		return truth(false)
	}
	if a.kind == slice && (a.off.con == nil || a.off.con.(int64) != 0) {
		return truth(false)
	}
	fam := a.at.family()
	list := make([]any, len(fam.list))
	for i, m := range fam.list {
		switch {
		case !m.IsValid():
		case m.Kind() == reflect.Pointer || m.Kind() == reflect.Slice:
			list[i] = m.IsNil()
		default:
			list[i] = false
		}
	}
	return f.column(a.at, fam.at, list, types.Typ[types.Bool], "Nil")
}

// composite is an array, a slice or a struct that is written down.
func (f *frame) composite(e *ast.CompositeLit) *value {
	typ := f.info.Types[e].Type
	if st, ok := typ.Underlying().(*types.Struct); ok {
		out := &value{kind: record, typ: typ, list: make([]*value, st.NumFields())}
		for i := range out.list {
			out.list[i] = zeroOf(st.Field(i).Type())
		}
		for n, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				for i := range out.list {
					if st.Field(i).Name() == kv.Key.(*ast.Ident).Name {
						out.list[i] = f.eval(kv.Value)
					}
				}
				continue
			}
			out.list[n] = f.eval(el)
		}
		return out
	}
	out := &value{kind: tuple, typ: typ}
	for _, el := range e.Elts {
		out.list = append(out.list, f.eval(el))
	}
	if arr, ok := typ.Underlying().(*types.Array); ok {
		for int64(len(out.list)) < arr.Len() {
			out.list = append(out.list, zeroOf(arr.Elem()))
		}
	}
	return out
}

// zeroOf is the zero value of a type.
func zeroOf(t types.Type) *value {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsFloat != 0:
			return constantValue(0.0, t)
		case u.Info()&types.IsBoolean != 0:
			return constantValue(false, t)
		case u.Info()&types.IsUnsigned != 0:
			return constantValue(uint64(0), t)
		case u.Info()&types.IsString != 0:
			return constantValue("", t)
		}
		return constantValue(int64(0), t)
	case *types.Struct:
		out := &value{kind: record, typ: t}
		for i := range u.NumFields() {
			out.list = append(out.list, zeroOf(u.Field(i).Type()))
		}
		return out
	}
	return &value{kind: absent, typ: t}
}
