package specialise

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// frame is a call of a source function while it is followed.
type frame struct {
	*spec
	fn            *fn
	vars          map[types.Object]binding // values of the variables
	dyn           int                      // depth of branches and loops that the tick decides
	loops         []*activeLoop            // loops around the present statement; nil stands for a switch
	inlined       bool                     // the call is followed in place
	results       []types.Object           // named results
	types         []types.Type
	inlineResults []*value
	level         int // depth of calls
}

// binding is the value of a variable.
type binding struct {
	val   *value
	name  string // name in the generated code; "": not there
	fresh bool   // the variable of that name holds val
	dyn   int    // depth at which it was declared
}

// activeLoop is a loop of the source while it is followed.
type activeLoop struct {
	unrolled bool // the loop is unrolled
	dyn      int
}

// abandoned is the reason for which an attempt ends.
type abandoned string

const (
	tooLong  abandoned = "the generated code is too long"
	notBrief abandoned = "an inlined call is too long"
	cannot   abandoned = "a branch contains a jump out of an unrolled loop or an inlined call"
)

// emit appends a statement to the function; it panics with the reason where the bound of an attempt
// is passed.
func (f *frame) emit(st *stmt) {
	*f.fn.out = append(*f.fn.out, st)
	f.fn.emitted++
	switch {
	case f.fn.emitted > f.fn.strict:
		panic(notBrief)
	case f.fn.emitted > f.fn.bound:
		panic(tooLong)
	}
}

// eval returns the value of an expression.
func (f *frame) eval(e ast.Expr) *value {
	if tv, ok := f.info.Types[e]; ok && tv.Value != nil {
		return constantOf(tv.Value, tv.Type)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.eval(e.X)
	case *ast.Ident:
		return f.ident(e)
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return f.load(f.address(e))
	case *ast.SliceExpr:
		return f.sliced(e)
	case *ast.UnaryExpr:
		return f.unary(e)
	case *ast.BinaryExpr:
		return f.binary(e)
	case *ast.CompositeLit:
		return f.composite(e)
	case *ast.CallExpr:
		got := f.call(e, callMode{})
		if len(got) == 1 {
			return got[0]
		}
		return &value{kind: tuple, list: got}
	case *ast.FuncLit:
		return &value{kind: closure, lit: e}
	}

	f.fail("%T is not part of a tick", e)
	return nil
}

// ident returns the value of a variable, or a table of the package.
func (f *frame) ident(e *ast.Ident) *value {
	obj := f.info.Uses[e]
	if b, ok := f.vars[obj]; ok {
		if b.val.kind == lost {
			f.fail("the target of %s is computed in the tick", e.Name)
		}
		return b.val
	}

	if _, ok := obj.(*types.Nil); ok {
		return &value{kind: absent}
	}
	lit, ok := f.program.vars[obj].(*ast.CompositeLit)
	if !ok {
		f.fail("%s has no known value", e.Name)
	}
	return f.table(obj.Name(), f.composite(lit))
}

// table returns a tuple of constants as a table of the tick.
func (f *frame) table(name string, v *value) *value {
	at := variablePlace(name, v.typ, sliceOf(v))
	at.fixed = true
	return refer(at)
}

// sliceOf returns a tuple of constants as a Go slice.
func sliceOf(v *value) reflect.Value {
	of := reflect.TypeOf(v.list[0].con)
	out := reflect.MakeSlice(reflect.SliceOf(of), len(v.list), len(v.list))
	for i, el := range v.list {
		if el.con == nil {
			panic("a table has an element that the tick computes")
		}
		out.Index(i).Set(reflect.ValueOf(el.con))
	}

	return out
}

// unary returns the value of a unary expression.
func (f *frame) unary(e *ast.UnaryExpr) *value {
	if e.Op == token.AND {
		v := f.address(e.X)
		switch v.kind {
		case scalar:
			f.fail("address of a variable")
		case ref:
			return refer(f.withIndices(v.at, func(i *value) *value { return f.freeze(i, "at") }))
		}

		return v
	}

	a := f.eval(e.X)
	x, float := a.con.(float64)
	switch n, whole := a.integer(); {
	case e.Op == token.NOT:
		return inverted(a)
	case e.Op != token.SUB:
		f.fail("%s is not part of a tick", e.Op)
	case float:
		return constantValue(-x, a.typ)
	case whole:
		return constantValue(-n, a.typ)
	}

	return negated(a)
}

// binary returns the value of a binary expression.
func (f *frame) binary(e *ast.BinaryExpr) *value {
	a := f.eval(e.X)
	if e.Op == token.LAND && a.is(false) || e.Op == token.LOR && a.is(true) {
		return a
	}
	if e.Op == token.LAND || e.Op == token.LOR {
		return f.either(e, a)
	}
	b := f.eval(e.Y)
	switch {
	case a.kind == scalar && b.kind == scalar:
		return arith(e.Op, a, b)
	case b.kind != absent:
		f.fail("comparison of references other than with nil")
	case e.Op == token.NEQ:
		return inverted(f.isNil(a))
	}

	return f.isNil(a)
}

// either returns a && b or a || b. The tick evaluates b only if a does not decide.
func (f *frame) either(e *ast.BinaryExpr, a *value) *value {
	if a.con != nil {
		return f.eval(e.Y)
	}
	var b *value
	before, kept := f.cloneVars(), maps.Clone(f.fn.stackCells)
	f.dyn++
	body := f.block(func() { b = f.eval(e.Y) })
	f.dyn--
	f.vars, f.fn.stackCells = before, kept
	if len(body) > 0 {
		clear(f.fn.stackCells)
	}
	impure := func(st *stmt) bool { return st.kind != declare || !st.pure }
	if b.con != nil && !slices.ContainsFunc(body, impure) {
		body = nil
	}
	if f.pure(a.text) && (e.Op == token.LAND && b.is(false) || e.Op == token.LOR && b.is(true)) {
		return b
	}
	if onlyRows(body) {
		for _, st := range body {
			f.emit(st)
		}
		return arith(e.Op, a, b)
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

// onlyRows reports whether all statements declare pointers to rows of tables.
func onlyRows(list []*stmt) bool {
	others := func(st *stmt) bool { return st.kind != declare || !strings.HasPrefix(st.right, "&") }
	return !slices.ContainsFunc(list, others)
}

// pure reports whether an expression calls no function that may have an effect.
func (s *spec) pure(text string) bool {
	mayHaveEffect := func(name string) bool { return !pureCalls[name] && !s.pureFuncs[name] }
	return !slices.ContainsFunc(callNames(text), mayHaveEffect)
}

// isNil returns whether a reference is nil.
func (f *frame) isNil(a *value) *value {
	switch {
	case a.kind == absent:
		return truth(true)
	case a.at.param || a.kind == slice && !isNumber(a.off, 0):
		return truth(false)
	}

	return f.columnOf(a.at, types.Typ[types.Bool], "Nil", func(m reflect.Value) any {
		return (m.Kind() == reflect.Pointer || m.Kind() == reflect.Slice) && m.IsNil()
	})
}

// composite returns the value of an array, slice or struct literal.
func (f *frame) composite(e *ast.CompositeLit) *value {
	typ := f.info.Types[e].Type
	if st, ok := typ.Underlying().(*types.Struct); ok {
		out := zeroOf(typ)
		fields := slices.Collect(st.Fields())
		for n, el := range e.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				name := kv.Key.(*ast.Ident).Name
				n = slices.IndexFunc(fields, func(field *types.Var) bool { return field.Name() == name })
				el = kv.Value
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
