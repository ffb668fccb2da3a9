package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
)

// interval is the range of values that an integer can have. The zero value stands for other types.
type interval struct{ lo, hi *big.Int }

// within reports whether t contains s.
func (s interval) within(t interval) bool {
	return s.lo != nil && s.lo.Cmp(t.lo) >= 0 && s.hi.Cmp(t.hi) <= 0
}

// combine returns the interval of f over the bounds of s and t.
func (s interval) combine(t interval, f func(z, x, y *big.Int) *big.Int) (r interval) {
	for _, a := range []*big.Int{s.lo, s.hi} {
		for _, b := range []*big.Int{t.lo, t.hi} {
			v := f(new(big.Int), a, b)
			if r.lo == nil || v.Cmp(r.lo) < 0 {
				r.lo = v
			}
			if r.hi == nil || v.Cmp(r.hi) > 0 {
				r.hi = v
			}
		}
	}

	return r
}

// hull returns the smallest interval that contains s and t.
func (s interval) hull(t interval) interval {
	if t.lo.Cmp(s.lo) < 0 {
		s.lo = t.lo
	}
	if t.hi.Cmp(s.hi) > 0 {
		s.hi = t.hi
	}
	return s
}

// width returns the number of bits of an integer type.
func width(b *types.Basic) int {
	switch b.Kind() {
	case types.Int8, types.Uint8:
		return 8
	case types.Int32, types.Uint32:
		return 32
	}

	return 64
}

func unsigned(b *types.Basic) bool { return b.Info()&types.IsUnsigned != 0 }

// typeInterval returns the range of an integer type.
func typeInterval(b *types.Basic) interval {
	one, n := big.NewInt(1), uint(width(b))
	if unsigned(b) {
		hi := new(big.Int).Lsh(one, n)
		return interval{new(big.Int), hi.Sub(hi, one)}
	}

	half := new(big.Int).Lsh(one, n-1)
	return interval{new(big.Int).Neg(half), new(big.Int).Sub(half, one)}
}

// exprInterval returns the range of an expression's type.
func (g *translator) exprInterval(x ast.Expr) interval {
	if b, ok := g.info.TypeOf(x).Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
		return typeInterval(b)
	}
	return interval{}
}

// tableInterval returns the range of the entries of a constant table of integers.
func (g *translator) tableInterval(x *ast.IndexExpr) interval {
	whole := g.exprInterval(x)
	id, ok := ast.Unparen(x.X).(*ast.Ident)
	if !ok || whole.lo == nil {
		return whole
	}
	v := g.info.Uses[id]
	if v == nil || v.Parent() != g.pkg.Scope() || g.values[v] == nil {
		return whole
	}
	if s, ok := g.intervals[v]; ok {
		return s
	}
	s := interval{new(big.Int), new(big.Int)} // entries that are left out are 0
	for _, value := range g.values[v].Values {
		ast.Inspect(value, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if c := g.info.Types[e].Value; c != nil {
					if i, ok := new(big.Int).SetString(c.ExactString(), 10); ok {
						s = s.hull(interval{i, i})
					}
					return false
				}
			}

			return true
		})
	}

	g.intervals[v] = s
	return s
}

// fits are the operations on 64-bit integers for which C and Go agree without overflow. helper
// wraps around at an overflow.
var fits = map[token.Token]struct {
	binds    int
	interval func(z, x, y *big.Int) *big.Int
	helper   string
}{
	token.ADD: {bindsAdd, (*big.Int).Add, "add64"},
	token.SUB: {bindsAdd, (*big.Int).Sub, "sub64"},
	token.MUL: {bindsMul, (*big.Int).Mul, "mul64"},
}

// arithmetic returns an operation on integers of one type, without C's undefined behaviour. A tick
// computes in 64 bits. Narrower types only hold values; a mode, of type int8, also changes its
// sign.
func (g *translator) arithmetic(at ast.Node, op token.Token, t *types.Basic, a, b operand) operand {
	if width(t) < 64 && (op != token.SUB || t.Kind() != types.Int8) {
		g.refuse(at, "%s in %s: integers of a tick are computed in 64 bits", op, t)
	}
	switch op {
	case token.ADD, token.SUB, token.MUL:
		return g.sum(op, t, a, b)
	case token.QUO, token.REM:
		return g.divide(at, op, t, a, b)
	case token.SHL, token.SHR:
		return g.shift(op, t, a, b)
	}

	return g.bitwise(op, t, a, b)
}

func (g *translator) sum(op token.Token, t *types.Basic, a, b operand) operand {
	f := fits[op]
	s := a.interval.combine(b.interval, f.interval)
	plain := operand{a.in(f.binds) + " " + op.String() + " " + parenthesizeSign(b.in(f.binds+1)), f.binds, s}
	whole := typeInterval(t)
	switch inside := s.within(whole); {
	case inside && a.text == "0" && op == token.SUB:
		return operand{"-" + parenthesizeSign(b.in(bindsUnary)), bindsUnary, s}
	case inside:
		return plain
	case unsigned(t):
		plain.interval = whole
		return plain
	case width(t) < 64:
		plain.text = "(int64_t)" + a.in(bindsUnary) + " " + op.String() + " " + parenthesizeSign(b.in(f.binds+1))
		return g.narrow(t, plain)
	}

	return operand{g.useHelper(f.helper) + "(" + a.text + ", " + b.text + ")", bindsPostfix, whole}
}

// divide returns a truncated division, as in Go. Division by 0 panics in Go and gives 0 in C.
func (g *translator) divide(at ast.Node, op token.Token, t *types.Basic, a, b operand) operand {
	zero, minus := big.NewInt(0), big.NewInt(-1)
	nonzero := b.interval.lo.Cmp(zero) > 0 || b.interval.hi.Cmp(minus) < 0
	whole := typeInterval(t)
	if a.interval.lo.Sign() >= 0 && b.interval.lo.Sign() > 0 {
		if op == token.QUO {
			whole = a.interval.combine(b.interval, (*big.Int).Quo)
		} else {
			whole = interval{zero, new(big.Int).Sub(b.interval.hi, big.NewInt(1))}
		}
	}

	if nonzero {
		return operand{a.in(bindsMul) + " " + op.String() + " " + b.in(bindsUnary), bindsMul, whole}
	}
	if unsigned(t) {
		g.refuse(at, "division by an unsigned number that could be 0")
	}

	name := map[token.Token]string{token.QUO: "div64", token.REM: "mod64"}[op]
	return operand{g.useHelper(name) + "(" + a.text + ", " + b.text + ")", bindsPostfix, typeInterval(t)}
}

// shift returns a shift by any count. If all bits are shifted out, the result is 0, or -1 for a
// negative number shifted right.
func (g *translator) shift(op token.Token, t *types.Basic, a, b operand) operand {
	whole := typeInterval(t)
	inWidth := b.interval.within(interval{new(big.Int), big.NewInt(63)})
	if op == token.SHR {
		if !inWidth || !unsigned(t) && a.interval.lo.Sign() < 0 {
			name := map[bool]string{true: "shr64", false: "sar64"}[unsigned(t)]
			return operand{g.useHelper(name) + "(" + a.text + ", " + b.text + ")", bindsPostfix, whole}
		}

		s := interval{new(big.Int), new(big.Int).Rsh(a.interval.hi, uint(b.interval.lo.Uint64()))}
		return operand{widen(a, t).in(bindsShift) + " >> " + b.in(bindsAdd), bindsShift, s}
	}

	if inWidth && a.interval.lo.Sign() >= 0 {
		s := interval{new(big.Int), new(big.Int).Lsh(a.interval.hi, uint(b.interval.hi.Uint64()))}
		if s.within(whole) || unsigned(t) {
			if !s.within(whole) {
				s = whole
			}
			return operand{widen(a, t).in(bindsShift) + " << " + b.in(bindsAdd), bindsShift, s}
		}
	}

	bits := a.text
	if !unsigned(t) {
		bits = "(uint64_t)" + a.in(bindsUnary)
	}
	o := operand{g.useHelper("shl64") + "(" + bits + ", " + b.text + ")", bindsPostfix, typeInterval(types.Typ[types.Uint64])}
	if unsigned(t) {
		return o
	}

	return g.narrow(t, o)
}

// widen gives a constant that is shifted the width of its type.
func widen(a operand, t *types.Basic) operand {
	if a.interval.lo.Cmp(a.interval.hi) != 0 {
		return a
	}
	macro := "INT64_C("
	if unsigned(t) {
		macro = "UINT64_C("
	}
	return operand{macro + a.interval.lo.String() + ")", bindsPostfix, a.interval}
}

// bitwise returns & | ^ or &^. These types of C store a negative number as two's complement.
func (g *translator) bitwise(op token.Token, t *types.Basic, a, b operand) operand {
	s := typeInterval(t)
	nonNegative := func(o operand) bool { return o.interval.lo.Sign() >= 0 }
	switch op {
	case token.AND:
		if nonNegative(b) {
			s = interval{new(big.Int), b.interval.hi}
		}
		if nonNegative(a) && a.interval.hi.Cmp(s.hi) < 0 {
			s = interval{new(big.Int), a.interval.hi}
		}
		return operand{a.in(bindsUnary) + " & " + b.in(bindsUnary), bindsBitAnd, s}
	case token.AND_NOT:
		if nonNegative(a) {
			s = interval{new(big.Int), a.interval.hi}
		}
		not := "~" + b.in(bindsUnary)
		if unsigned(t) {
			not = "~(uint64_t)" + b.in(bindsUnary)
		}
		return operand{a.in(bindsUnary) + " & " + not, bindsBitAnd, s}
	}

	if nonNegative(a) && nonNegative(b) {
		n := uint(max(a.interval.hi.BitLen(), b.interval.hi.BitLen()))
		hi := new(big.Int).Lsh(big.NewInt(1), n)
		s = interval{new(big.Int), hi.Sub(hi, big.NewInt(1))}
	}

	binds := bindsBitOr
	if op == token.XOR {
		binds = bindsBitXor
	}
	return operand{a.in(bindsUnary) + " " + op.String() + " " + b.in(bindsUnary), binds, s}
}

// narrow converts a value to a type by its low bits, as Go does.
func (g *translator) narrow(t *types.Basic, o operand) operand {
	whole := typeInterval(t)
	if o.interval.within(whole) {
		return operand{"(" + cBasic[t.Kind()] + ")" + o.in(bindsUnary), bindsUnary, o.interval}
	}
	if unsigned(t) {
		return operand{"(" + cBasic[t.Kind()] + ")" + o.in(bindsUnary), bindsUnary, whole}
	}
	if width(t) == 8 {
		return operand{g.useHelper("wrap8") + "((uint64_t)" + o.in(bindsUnary) + ")", bindsPostfix, whole}
	}

	return operand{g.useHelper("wrap64") + "(" + o.text + ")", bindsPostfix, whole}
}

// counterInterval returns the range of a counter from 0 to n - 1.
func counterInterval(n interval) interval {
	return interval{new(big.Int), new(big.Int).Sub(n.hi, big.NewInt(1))}
}
