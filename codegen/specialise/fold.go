package specialise

import (
	"fmt"
	"go/token"
	"go/types"
	"math"
	"strings"
)

// arith returns a op b as the tick would compute it, to the bit.
func arith(op token.Token, a, b *value) *value {
	typ, p := a.typ, op.Precedence()
	if p == token.EQL.Precedence() {
		typ = types.Typ[types.Bool]
	}
	if con := compute(op, a, b); con != nil {
		return constantValue(con, typ)
	}
	if v := identity(op, a, b); v != nil {
		return v
	}
	if c, ok := b.integer(); ok && a.counter != nil && (op == token.ADD || op == token.SUB) {
		if op == token.SUB {
			c = -c
		}
		return a.shifted(c)
	}
	if (op == token.SHL || op == token.SHR) && a.con != nil { // otherwise the constant takes the type of its context
		a = &value{typ: typ, text: a.typed(), prec: a.prec}
	}

	v := dynamic(a.in(p)+" "+op.String()+" "+b.in(p+1), p, typ)
	if isFloat(a.typ) {
		if rest, minus := strings.CutPrefix(b.text, "-"); op == token.ADD && minus && single(rest) {
			v.text = a.in(p) + " - " + rest // the compiler would negate first
		}
		v.notNegZero = op == token.ADD && (a.notNegZero || b.notNegZero)
		v.zeroProduct = op == token.MUL && (isZero(a) || isZero(b))
		if op == token.QUO && isPowerOfTwo(b) {
			return rounded(v)
		}
	}

	v.spanRange(op, a, b)
	return v
}

// shifted returns the sum of a variable that counts from 0 and constants, and n.
func (v *value) shifted(n int64) *value {
	w, i := *v, v.counter
	w.shift, w.lo, w.hi = v.shift+n, v.lo+n, v.hi+n
	w.text, w.prec = i.text, i.prec
	if w.shift != 0 {
		w.prec = token.ADD.Precedence()
	}
	switch {
	case w.shift > 0:
		w.text = fmt.Sprintf("%d + %s", w.shift, i.text)
	case w.shift < 0:
		w.text = fmt.Sprintf("%s - %d", i.text, -w.shift)
	}
	return &w
}

// rounded returns a float64 whose product or quotient is rounded before a sum: without the conversion
// some processors fuse both into one operation. Other operations are always rounded.
func rounded(v *value) *value {
	if v.con != nil || v.prec != token.MUL.Precedence() || !isFloat(v.typ) {
		return v
	}
	w := *v
	w.text, w.prec = "float64("+v.text+")", operand
	return &w
}

// isPowerOfTwo reports whether a value is a constant whose inverse a compiler may multiply by.
func isPowerOfTwo(v *value) bool {
	x, ok := v.con.(float64)
	part, _ := math.Frexp(math.Abs(x))
	return ok && part == 0.5
}

// isFloat reports whether a type is a floating-point type.
func isFloat(t types.Type) bool { return isOf(t, types.IsFloat) }

// isOf reports whether a type is one of a kind of basic types.
func isOf(t types.Type, kind types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&kind != 0
}

// isZero reports whether a value is the constant 0 or -0.
func isZero(v *value) bool { c, ok := v.con.(float64); return ok && c == 0 }

// spanRange sets the range of v = a op b, for a sum, difference or product of values with ranges.
func (v *value) spanRange(op token.Token, a, b *value) {
	alo, ahi, aok := a.bounds()
	blo, bhi, bok := b.bounds()
	if !aok || !bok {
		return
	}
	switch op {
	case token.ADD:
		v.lo, v.hi, v.ranged = alo+blo, ahi+bhi, true
	case token.SUB:
		v.lo, v.hi, v.ranged = alo-bhi, ahi-blo, true
	case token.MUL:
		if alo >= 0 && blo >= 0 {
			v.lo, v.hi, v.ranged = alo*blo, ahi*bhi, true
		}
	}
}

// bounds returns the smallest and the largest value of an integer, where they are known.
func (v *value) bounds() (lo, hi int64, ok bool) {
	if n, ok := v.integer(); ok {
		return n, n, true
	}
	return v.lo, v.hi, v.ranged
}

// identity returns a op b where the result needs no operation and keeps every bit; otherwise nil.
func identity(op token.Token, a, b *value) *value {
	float := isFloat(a.typ)
	switch op {
	case token.ADD:
		switch {
		case isNumber(b, 0) && (!float || a.notNegZero), b.zeroProduct && a.notNegZero:
			return a
		case isNumber(a, 0) && (!float || b.notNegZero), a.zeroProduct && b.notNegZero:
			return b
		}
	case token.SUB:
		if isNumber(b, 0) || b.zeroProduct && a.notNegZero {
			return a
		}
	case token.MUL:
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
			return constantValue(int64(0), a.typ)
		}
	case token.QUO:
		if isNumber(b, 1) {
			return rounded(a)
		}
	case token.LAND, token.LOR:
		switch neutral := op == token.LAND; {
		case a.is(!neutral), b.is(neutral):
			return a
		case a.is(neutral):
			return b
		}
	case token.OR, token.XOR:
		switch {
		case isNumber(b, 0):
			return a
		case isNumber(a, 0):
			return b
		}
	case token.SHL, token.SHR, token.AND_NOT:
		if isNumber(a, 0) || isNumber(b, 0) {
			return a
		}
	case token.AND:
		switch {
		case isNumber(a, 0):
			return a
		case isNumber(b, 0):
			return b
		}
	}

	return nil
}

// isNumber reports whether a value is the constant want; 0 is not -0.
func isNumber(v *value, want float64) bool {
	if c, ok := v.con.(float64); ok {
		return c == want && (c != 0 || !math.Signbit(c))
	}
	n, ok := v.integer()
	return ok && float64(n) == want
}

// negated returns -a.
func negated(a *value) *value {
	v := dynamic("-"+a.in(6), 6, a.typ)
	v.zeroProduct = a.zeroProduct
	return v
}

// inverted returns !a.
func inverted(a *value) *value {
	if c, ok := a.con.(bool); ok {
		return truth(!c)
	}
	return dynamic("!"+a.in(6), 6, a.typ)
}

// compute returns a op b of two constants; nil where there is no result.
func compute(op token.Token, a, b *value) any {
	if x, ok := a.con.(string); ok { // an option of the kernel
		if y, ok := b.con.(string); ok && op == token.EQL {
			return x == y
		}
		return nil
	}
	if x, ok := a.con.(float64); ok {
		y, ok := b.con.(float64)
		switch {
		case !ok:
			return nil
		case op == token.QUO:
			return x / y
		}

		return computeNumber(op, x, y)
	}

	m, aok := a.integer()
	n, bok := b.integer()
	if !aok || !bok {
		return nil
	}
	_, signed := a.con.(int64)
	if _, also := b.con.(int64); signed && (also || op == token.SHL || op == token.SHR) {
		return computeInteger(op, m, n)
	}
	return computeInteger(op, uint64(m), uint64(n))
}

// computeInteger is compute for the operations of integers.
func computeInteger[T int64 | uint64](op token.Token, x, y T) any {
	switch op {
	case token.QUO, token.REM:
		switch {
		case y == 0:
			return nil
		case op == token.REM:
			return x % y
		}

		return x / y
	case token.AND:
		return x & y
	case token.OR:
		return x | y
	case token.XOR:
		return x ^ y
	case token.AND_NOT:
		return x &^ y
	case token.SHL:
		return x << y
	case token.SHR:
		return x >> y
	}

	return computeNumber(op, x, y)
}

// computeNumber is compute for the operations of all numbers.
func computeNumber[T float64 | int64 | uint64](op token.Token, x, y T) any {
	switch op {
	case token.ADD:
		return x + y
	case token.SUB:
		return x - y
	case token.MUL:
		return x * y
	case token.EQL:
		return x == y
	case token.NEQ:
		return x != y
	case token.LSS:
		return x < y
	case token.LEQ:
		return x <= y
	case token.GTR:
		return x > y
	case token.GEQ:
		return x >= y
	}

	return nil
}
