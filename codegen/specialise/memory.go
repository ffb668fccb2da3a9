package specialise

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"strconv"
	"strings"
)

// address returns the place that an expression names, or the value of a literal.
func (f *frame) address(x ast.Expr) *value {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return f.through(f.eval(x.X), f.info.Selections[x].Index())
	case *ast.IndexExpr:
		return f.elementRef(f.eval(x.X), f.eval(x.Index))
	case *ast.StarExpr:
		return f.eval(x.X)
	}

	return f.eval(x)
}

// refer returns a reference to a place.
func refer(at *place) *value { return &value{kind: ref, at: at, typ: at.typ} }

// through follows a path of fields.
func (f *frame) through(base *value, path []int) *value {
	for _, i := range path {
		if base.kind == record {
			base = base.list[i]
		} else {
			base = refer(base.at.field(i))
		}
	}

	return base
}

// elementRef returns a reference to element i of base.
func (f *frame) elementRef(base, i *value) *value {
	i = f.converted(i, types.Typ[types.Int])
	switch base.kind {
	case tuple:
		n, ok := i.integer()
		if !ok {
			f.fail("index of a literal is computed in the tick")
		}
		return base.list[n]
	case slice:
		if _, scalar := elemOf(base.typ).Underlying().(*types.Basic); !scalar {
			i = f.freeze(i, "at")
		}
		i = f.elementIndex(base, i)
	}

	return refer(f.element(base.at, i))
}

// load returns the content of a place: a number or a slice, otherwise the place itself.
func (f *frame) load(v *value) *value {
	if v.kind != ref {
		return v
	}
	switch v.at.typ.Underlying().(type) {
	case *types.Basic:
		return f.number(v.at)
	case *types.Slice:
		return f.wholeSlice(v.at)
	case *types.Pointer:
		if v.at.known && f.isNil(v).is(true) {
			return &value{kind: absent, typ: v.at.typ}
		}
	}

	return v
}

// wholeSlice returns the slice stored at a place.
func (f *frame) wholeSlice(at *place) *value {
	count := f.columnOf(at, types.Typ[types.Int], "Len", func(m reflect.Value) any { return int64(m.Len()) })
	return &value{kind: slice, typ: at.typ, at: at, off: wholeNumber(0), len: count}
}

// number returns the scalar at a place: a constant where nothing assigns to it.
func (f *frame) number(at *place) *value {
	if v := f.fn.stackCells[at.cell()]; v != nil {
		return v
	}
	switch {
	case at.param:
		return dynamic(at.full(), operand, at.typ)
	case f.isProgramConstant(at):
		return f.columnOf(at, at.typ, "", plain)
	case !at.fixed && f.assigned.has(at):
		f.read.add(at)
		f.recordShape(at)
		return dynamic(at.full(), operand, at.typ)
	case at.known || at.index == nil: // 0 for an index out of range, in a branch that is never taken
		return f.columnOf(at, at.typ, "", plain)
	}

	return f.lookup(at)
}

// sliced returns x[lo:hi].
func (f *frame) sliced(e *ast.SliceExpr) *value {
	base := f.eval(e.X)
	lo, hi := wholeNumber(0), base.len
	if e.Low != nil {
		lo = f.freeze(f.eval(e.Low), "from")
	}
	if e.High != nil {
		hi = f.freeze(f.eval(e.High), "to")
	}
	length := arith(token.SUB, hi, lo)
	if e.Low != nil && e.High != nil { // x[i*n : (i+1)*n] has a known length
		if n, ok := f.distance(e.Low, e.High); ok {
			length = n
		}
	}

	return &value{kind: slice, typ: base.typ, at: base.at, off: arith(token.ADD, base.off, lo), len: length}
}

// distance returns hi - lo where it does not depend on variables.
func (f *frame) distance(lo, hi ast.Expr) (*value, bool) {
	rest := combined(token.SUB, f.linear(hi), f.linear(lo))
	for name, c := range rest {
		if c != 0 && name != "" {
			return nil, false
		}
	}

	return wholeNumber(int(rest[""])), rest != nil
}

// sum is a sum of variables with integer factors; the constant has the name "". It is nil for an
// expression that is not such a sum.
type sum map[string]int64

// linear returns an expression as a sum.
func (f *frame) linear(e ast.Expr) sum {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return f.linear(e.X)
	case *ast.BinaryExpr:
		return combined(e.Op, f.linear(e.X), f.linear(e.Y))
	case *ast.CallExpr:
		return nil // a call is followed only once
	}

	v := f.eval(e)
	if n, ok := v.integer(); ok {
		return sum{"": n}
	}
	return sum{v.text: 1}
}

// combined returns a op b.
func combined(op token.Token, a, b sum) sum {
	if a == nil || b == nil {
		return nil
	}
	out := sum{}
	switch op {
	case token.ADD, token.SUB:
		sign := int64(1)
		if op == token.SUB {
			sign = -1
		}
		maps.Copy(out, a)
		for n, c := range b {
			out[n] += sign * c
		}
		return out
	case token.MUL:
		if _, ok := a[""]; len(a) == 1 && ok {
			a, b = b, a
		}
		if c, ok := b[""]; len(b) == 1 && ok {
			for n, d := range a {
				out[n] = c * d
			}
			return out
		}
	}

	return nil
}

// store assigns to a place.
func (f *frame) store(at *place, v *value) {
	switch v.kind {
	case record, ref:
		for i := range structOf(at.typ).NumFields() {
			f.store(at.field(i), f.load(f.through(v, []int{i})))
		}
	case scalar:
		f.storeScalar(at, v, token.ASSIGN)
	default:
		f.fail("%s is assigned a reference", at.full())
	}
}

// storeScalar stores a scalar; op is = or the operation of an assignment such as +=.
func (f *frame) storeScalar(at *place, v *value, op token.Token) {
	if at.fixed {
		f.fail("%s is part of the tables", at.full())
	}
	cell := at.cell()
	f.fn.effects = true
	if isStackCell(cell) {
		if op == token.ASSIGN {
			v = f.freeze(v, "top")
		}
		f.recordCell(cell, v, op)
	}

	if !at.param {
		if op == token.ASSIGN && v.con != nil && !f.assigned.has(at) && f.alwaysHolds(at, v) {
			return
		}
		if f.lastRead != nil && !f.lastRead.has(at) {
			f.effect(v)
			return
		}

		f.recordAssigned(at)
		f.recordShape(at)
	}

	f.emit(&stmt{kind: set, names: []string{at.full()}, right: v.text, text: assigns(op)})
}

// assigns returns the assignment operator for op.
func assigns(op token.Token) string {
	if op == token.ASSIGN {
		return " = "
	}
	return " " + op.String() + "= "
}

// effect emits an expression whose effect alone is wanted.
func (f *frame) effect(v *value) {
	if v != nil && v.kind == scalar && v.con == nil && !f.pure(v.text) {
		f.emit(&stmt{kind: set, names: []string{"_"}, right: v.text})
	}
}

// alwaysHolds reports whether every cell that a place can stand for has the value v after New.
func (f *frame) alwaysHolds(at *place, v *value) bool {
	for _, m := range at.family().list {
		if m.IsValid() {
			if was := constantValue(plain(m), at.typ); was.text != v.text {
				return false
			}
		}
	}

	return true
}

// freeze returns a scalar in a form that later assignments do not change.
func (f *frame) freeze(v *value, name string) *value {
	if v.kind != scalar || v.stable || v.con != nil {
		return v
	}
	if v.ranged && !strings.ContainsAny(v.text, ".[(") {
		return v // made of a loop's index and constants
	}
	name = f.unique(name)
	f.emit(&stmt{kind: declare, names: []string{name}, right: v.text, pure: f.pure(v.text)})
	out := *v
	out.text, out.prec, out.stable = name, operand, true
	return &out
}

// unique returns a name that the function does not have yet.
func (f *frame) unique(name string) string {
	for {
		f.fn.names[name]++
		n := f.fn.names[name]
		try := name
		if n > 1 {
			try = strings.TrimRight(name, "0123456789")
			if try != name {
				try += "_"
			}
			try = fmt.Sprint(try, n)
		}

		if !f.used[try] && (n == 1 || f.fn.names[try] == 0) {
			f.fn.names[try] = max(f.fn.names[try], 1)
			return try
		}
	}
}

// isStackCell reports whether a cell belongs to the stack of programs. If the index of such a cell
// is known, generated code holds its value in a variable.
func isStackCell(cell string) bool { return strings.HasPrefix(cell, "k.stack[") }

// isProgramConstant reports whether a cell is a constant of the programs: those are below their arguments in the stack,
// and nothing stores to them.
func (s *spec) isProgramConstant(at *place) bool {
	if at.index == nil || !isStackCell(at.cell()) {
		return false
	}
	n, ok := at.index.integer()
	return ok && n < s.firstArg
}

// dropStackStores removes the stores to cells of the stack of programs that nothing reads in place: those of results, which
// only their own program reads, where the function does not, and those of arguments where no function does.
func (f *frame) dropStackStores(list []*stmt) []*stmt {
	own := map[string]bool{} // cells that the function reads
	for st := range all(list) {
		for _, m := range stackCell().FindAllStringSubmatch(st.text+" "+st.right, -1) {
			own[m[1]] = true
		}
	}
	return dropStores(list, func(cell string) bool {
		index := stackCell().FindStringSubmatch(cell)[1]
		n, err := strconv.ParseInt(strings.TrimSuffix(index, "]"), 10, 64)
		switch {
		case err != nil || own[""]:
			return false
		case n >= f.firstResult:
			return !own[index]
		}
		return !f.read[cell] && !f.read["k.stack[*]"]
	})
}

// stackCell matches a cell of the stack of programs, and its index if that is known.
var stackCell = lazyRegexp(`k\.stack\[(\d+\]|)`)

// dropStores removes the stores to cells of the stack of programs that are not needed.
func dropStores(list []*stmt, needless func(cell string) bool) (left []*stmt) {
	for _, st := range list {
		st.body, st.els = dropStores(st.body, needless), dropStores(st.els, needless)
		if st.kind != set || !isStackCell(st.names[0]) || !needless(st.names[0]) {
			left = append(left, st)
		}
	}

	return left
}

// recordCell records the value of a cell of the stack of programs.
func (f *frame) recordCell(cell string, v *value, op token.Token) {
	if op != token.ASSIGN || strings.Contains(cell, "*") {
		clear(f.fn.stackCells)
		return
	}

	f.fn.stackCells[cell] = v
}
