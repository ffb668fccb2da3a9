package specialise

import (
	"go/token"
	"go/types"
	"math"
)

// precedence of Go's binary operators.
var precedence = map[string]int{
	"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3,
	"+": 4, "-": 4, "|": 4, "^": 4, "*": 5, "/": 5, "%": 5, "<<": 5, ">>": 5, "&": 5, "&^": 5,
}

// arith is a op b, as the tick would compute it, to the bit.
func arith(op string, a, b *value) *value {
	typ := a.typ
	if basic, ok := typ.Underlying().(*types.Basic); ok && basic.Info()&types.IsUntyped != 0 && op != "<<" && op != ">>" {
		typ = b.typ
	}
	if precedence[op] == 3 {
		typ = types.Typ[types.Bool]
	}
	if a.con != nil && b.con != nil {
		if con := compute(op, a.con, b.con); con != nil {
			return constantValue(wrapInt(con, typ), typ)
		}
	}
	if v := identity(op, a, b); v != nil {
		return v
	}
	p := precedence[op]
	if (op == "<<" || op == ">>") && a.con != nil { // else it takes the type of what is around
		a = &value{typ: typ, text: a.typed(), prec: a.prec}
	}
	v := dynamic(a.in(p)+" "+op+" "+b.in(p+1), p, typ)
	if _, ok := a.con.(float64); ok || isFloat(a.typ) {
		v.plus = op == "+" && (a.plus || b.plus)
		v.nought = op == "*" && (isZero(a) || isZero(b))
	}
	v.span(op, a, b)
	return v
}

func isFloat(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

func isZero(v *value) bool { c, ok := v.con.(float64); return ok && c == 0 }

// span keeps the range of a loop's index through sums with and products by constants.
func (v *value) span(op string, a, b *value) {
	rangeOf := func(v *value) (lo, hi int64, ok bool) {
		if n, ok := v.integer(); ok {
			return n, n, true
		}
		return v.lo, v.hi, v.ranged
	}
	alo, ahi, aok := rangeOf(a)
	blo, bhi, bok := rangeOf(b)
	if !aok || !bok {
		return
	}
	switch op {
	case "+":
		v.lo, v.hi, v.ranged = alo+blo, ahi+bhi, true
	case "-":
		v.lo, v.hi, v.ranged = alo-bhi, ahi-blo, true
	case "*":
		if alo >= 0 && blo >= 0 {
			v.lo, v.hi, v.ranged = alo*blo, ahi*bhi, true
		}
	}
}

// identity is what a op b is where that needs no operation and no bit of it changes.
func identity(op string, a, b *value) *value {
	float := isFloat(a.typ) || isFloat(b.typ)
	switch op {
	case "+":
		switch {
		case isNumber(b, 0) && (!float || a.plus), b.nought && a.plus:
			return a
		case isNumber(a, 0) && (!float || b.plus), a.nought && b.plus:
			return b
		}
	case "-":
		if isNumber(b, 0) || b.nought && a.plus {
			return a
		}
	case "*":
		return identityOfProduct(a, b, float)
	case "/":
		if isNumber(b, 1) {
			return a
		}
	case "&&", "||":
		switch neutral := op == "&&"; {
		case a.is(!neutral), b.is(neutral):
			return a
		case a.is(neutral):
			return b
		}
	default:
		return identityOfBits(op, a, b)
	}
	return nil
}

func identityOfProduct(a, b *value, float bool) *value {
	switch {
	case isNumber(b, 1):
		return a
	case isNumber(a, 1):
		return b
	case float && isNumber(b, -1):
		return negated(a)
	case float && isNumber(a, -1):
		return negated(b)
	case !float && (isNumber(a, 0) || isNumber(b, 0)):
		return constantValue(wrapInt(int64(0), a.typ), a.typ)
	}
	return nil
}

func identityOfBits(op string, a, b *value) *value {
	switch op {
	case "<<", ">>", "|", "^", "&^":
		switch {
		case isNumber(b, 0):
			return a
		case isNumber(a, 0) && (op == "|" || op == "^"):
			return b
		case isNumber(a, 0):
			return a
		}
	case "&":
		if isNumber(a, 0) {
			return a
		}
		if isNumber(b, 0) {
			return b
		}
	}
	return nil
}

// isNumber reports whether a value is a number; 0 is not -0.
func isNumber(v *value, want float64) bool {
	switch c := v.con.(type) {
	case float64:
		return c == want && (c != 0 || !math.Signbit(c))
	case int64:
		return float64(c) == want
	case uint64:
		return float64(c) == want
	}
	return false
}

func negated(a *value) *value {
	v := dynamic("-"+a.in(6), 6, a.typ)
	v.nought = a.nought
	return v
}

// inverted is the opposite of a truth value.
func inverted(a *value) *value {
	if c, ok := a.con.(bool); ok {
		return truth(!c)
	}
	return dynamic("!"+a.in(6), 6, a.typ)
}

// wrapInt is an integer as a variable of type t holds it.
func wrapInt(con any, t types.Type) any {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return con
	}
	var n int64
	switch c := con.(type) {
	case int64:
		n = c
	case uint64:
		n = int64(c)
	default:
		return con
	}
	switch b.Kind() {
	case types.Int8:
		return int64(int8(n))
	case types.Int32:
		return int64(int32(n))
	case types.Uint8:
		return uint64(uint8(n))
	case types.Uint32:
		return uint64(uint32(n))
	case types.Uint64, types.Uint:
		return uint64(n)
	}
	return n
}

// compute is a op b of constants; nil where there is none.
func compute(op string, a, b any) any {
	switch x := a.(type) {
	case float64:
		if y, ok := b.(float64); ok {
			return computeFloat(op, x, y)
		}
	case bool:
		if y, ok := b.(bool); ok {
			switch op {
			case "&&":
				return x && y
			case "||":
				return x || y
			case "==":
				return x == y
			case "!=":
				return x != y
			}
		}
	case int64:
		switch y := b.(type) {
		case int64:
			return computeInt(op, x, y)
		case uint64:
			if op == "<<" || op == ">>" {
				return computeInt(op, x, int64(y))
			}
			return computeUint(op, uint64(x), y)
		}
	case uint64:
		switch y := b.(type) {
		case int64:
			return computeUint(op, x, uint64(y))
		case uint64:
			return computeUint(op, x, y)
		}
	}
	return nil
}

func computeFloat(op string, x, y float64) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	}
	return ordered(op, x, y)
}

func ordered[T float64 | int64 | uint64](op string, x, y T) any {
	switch op {
	case "==":
		return x == y
	case "!=":
		return x != y
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	case ">=":
		return x >= y
	}
	return nil
}

func computeInt(op string, x, y int64) any {
	switch op {
	case "<<":
		return x << y
	case ">>":
		return x >> y
	}
	return whichever(op, x, y)
}

func computeUint(op string, x, y uint64) any {
	switch op {
	case "<<":
		return x << y
	case ">>":
		return x >> y
	}
	return whichever(op, x, y)
}

func whichever[T int64 | uint64](op string, x, y T) any {
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/", "%":
		if y == 0 {
			return nil
		}
		if op == "%" {
			return x % y
		}
		return x / y
	case "&":
		return x & y
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "&^":
		return x &^ y
	}
	var t any
	switch z := any(x).(type) {
	case int64:
		t = ordered(op, z, int64(y))
	case uint64:
		t = ordered(op, z, uint64(y))
	}
	return t
}

// unaryOf is op a.
func unaryOf(op token.Token, a *value) *value {
	switch op {
	case token.NOT:
		return inverted(a)
	case token.ADD:
		return a
	case token.SUB:
		switch c := a.con.(type) {
		case float64:
			return constantValue(-c, a.typ)
		case int64:
			return constantValue(wrapInt(-c, a.typ), a.typ)
		case uint64:
			return constantValue(-c, a.typ)
		}
		return negated(a)
	case token.XOR:
		switch c := a.con.(type) {
		case int64:
			return constantValue(wrapInt(^c, a.typ), a.typ)
		case uint64:
			return constantValue(wrapInt(^c, a.typ), a.typ)
		}
		return dynamic("^"+a.in(6), 6, a.typ)
	}
	return nil
}
