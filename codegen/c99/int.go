package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
)

// span is what an integer can be; the zero value is that of what is none.
type span struct{ lo, hi *big.Int }

// within says whether all of s is in t.
func (s span) within(t span) bool {
	return s.lo != nil && s.lo.Cmp(t.lo) >= 0 && s.hi.Cmp(t.hi) <= 0
}

// combine is the span of f over the corners of two.
func (s span) combine(t span, f func(z, x, y *big.Int) *big.Int) (r span) {
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

// cover is the span of both.
func (s span) cover(t span) span {
	if t.lo.Cmp(s.lo) < 0 {
		s.lo = t.lo
	}
	if t.hi.Cmp(s.hi) > 0 {
		s.hi = t.hi
	}
	return s
}

// width is the number of bits of a type of integers.
func width(b *types.Basic) int {
	switch b.Kind() {
	case types.Int8, types.Uint8:
		return 8
	case types.Int32:
		return 32
	}

	return 64
}

func unsigned(b *types.Basic) bool { return b.Info()&types.IsUnsigned != 0 }

// wholeSpan is what a type holds.
func wholeSpan(b *types.Basic) span {
	one, n := big.NewInt(1), uint(width(b))
	if unsigned(b) {
		hi := new(big.Int).Lsh(one, n)
		return span{new(big.Int), hi.Sub(hi, one)}
	}

	half := new(big.Int).Lsh(one, n-1)
	return span{new(big.Int).Neg(half), new(big.Int).Sub(half, one)}
}

// typeSpan is what an expression can be by its type.
func (g *translator) typeSpan(x ast.Expr) span {
	if b, ok := g.info.TypeOf(x).Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
		return wholeSpan(b)
	}
	return span{}
}

// tableSpan is what an entry of a constant table of integers can be.
func (g *translator) tableSpan(x *ast.IndexExpr) span {
	whole := g.typeSpan(x)
	id, ok := ast.Unparen(x.X).(*ast.Ident)
	if !ok || whole.lo == nil {
		return whole
	}
	v := g.info.Uses[id]
	if v == nil || v.Parent() != g.pkg.Scope() || g.values[v] == nil {
		return whole
	}
	if s, ok := g.spans[v]; ok {
		return s
	}
	s := span{new(big.Int), new(big.Int)} // entries that are left out are 0
	for _, value := range g.values[v].Values {
		ast.Inspect(value, func(n ast.Node) bool {
			if e, ok := n.(ast.Expr); ok {
				if c := g.info.Types[e].Value; c != nil {
					if i, ok := new(big.Int).SetString(c.ExactString(), 10); ok {
						s = s.cover(span{i, i})
					}
					return false
				}
			}

			return true
		})
	}

	g.spans[v] = s
	return s
}

// fits are 64-bit operations that C does as Go does while they do not overflow.
var fits = map[token.Token]struct {
	binds  int
	span   func(z, x, y *big.Int) *big.Int
	helper string
}{
	token.ADD: {bindsAdd, (*big.Int).Add, "add64"},
	token.SUB: {bindsAdd, (*big.Int).Sub, "sub64"},
	token.MUL: {bindsMul, (*big.Int).Mul, "mul64"},
}

// arithmetic is an operation at a place on integers of one type, without what C leaves undefined.
// A tick counts in 64 bits. Narrower types hold values, and modes, of int8, change their sign.
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
	s := a.span.combine(b.span, f.span)
	plain := operand{a.in(f.binds) + " " + op.String() + " " + spaced(b.in(f.binds+1)), f.binds, s}
	whole := wholeSpan(t)
	switch inside := s.within(whole); {
	case inside && a.text == "0" && op == token.SUB:
		return operand{"-" + spaced(b.in(bindsUnary)), bindsUnary, s}
	case inside:
		return plain
	case unsigned(t):
		plain.span = whole
		return plain
	case width(t) < 64:
		plain.text = "(int64_t)" + a.in(bindsUnary) + " " + op.String() + " " + spaced(b.in(f.binds+1))
		return g.narrow(t, plain)
	}

	return operand{g.help(f.helper) + "(" + a.text + ", " + b.text + ")", bindsPostfix, whole}
}

// divide truncates, as Go does. Where the divisor could be 0, at which Go stops, it gives 0.
func (g *translator) divide(at ast.Node, op token.Token, t *types.Basic, a, b operand) operand {
	zero, minus := big.NewInt(0), big.NewInt(-1)
	spared := b.span.lo.Cmp(zero) > 0 || b.span.hi.Cmp(minus) < 0
	whole := wholeSpan(t)
	if a.span.lo.Sign() >= 0 && b.span.lo.Sign() > 0 {
		if op == token.QUO {
			whole = a.span.combine(b.span, (*big.Int).Quo)
		} else {
			whole = span{zero, new(big.Int).Sub(b.span.hi, big.NewInt(1))}
		}
	}

	if spared {
		return operand{a.in(bindsMul) + " " + op.String() + " " + b.in(bindsUnary), bindsMul, whole}
	}
	if unsigned(t) {
		g.refuse(at, "a division by an unsigned number that could be 0")
	}

	name := map[token.Token]string{token.QUO: "div64", token.REM: "mod64"}[op]
	return operand{g.help(name) + "(" + a.text + ", " + b.text + ")", bindsPostfix, wholeSpan(t)}
}

// shift gives 0, or the sign, where all bits are shifted out.
func (g *translator) shift(op token.Token, t *types.Basic, a, b operand) operand {
	whole := wholeSpan(t)
	short := b.span.within(span{new(big.Int), big.NewInt(63)})
	if op == token.SHR {
		if !short || !unsigned(t) && a.span.lo.Sign() < 0 {
			name := map[bool]string{true: "shr64", false: "sar64"}[unsigned(t)]
			return operand{g.help(name) + "(" + a.text + ", " + b.text + ")", bindsPostfix, whole}
		}

		s := span{new(big.Int), new(big.Int).Rsh(a.span.hi, uint(b.span.lo.Uint64()))}
		return operand{wide(a, t).in(bindsShift) + " >> " + b.in(bindsAdd), bindsShift, s}
	}

	if short && a.span.lo.Sign() >= 0 {
		s := span{new(big.Int), new(big.Int).Lsh(a.span.hi, uint(b.span.hi.Uint64()))}
		if s.within(whole) || unsigned(t) {
			if !s.within(whole) {
				s = whole
			}
			return operand{wide(a, t).in(bindsShift) + " << " + b.in(bindsAdd), bindsShift, s}
		}
	}

	bits := a.text
	if !unsigned(t) {
		bits = "(uint64_t)" + a.in(bindsUnary)
	}
	o := operand{g.help("shl64") + "(" + bits + ", " + b.text + ")", bindsPostfix, wholeSpan(types.Typ[types.Uint64])}
	if unsigned(t) {
		return o
	}

	return g.narrow(t, o)
}

// wide makes a constant that is shifted as wide as its type.
func wide(a operand, t *types.Basic) operand {
	if a.span.lo.Cmp(a.span.hi) != 0 {
		return a
	}
	macro := "INT64_C("
	if unsigned(t) {
		macro = "UINT64_C("
	}
	return operand{macro + a.span.lo.String() + ")", bindsPostfix, a.span}
}

// bitwise is & | ^ or &^; in C a negative number has two's complement in these types.
func (g *translator) bitwise(op token.Token, t *types.Basic, a, b operand) operand {
	s := wholeSpan(t)
	positive := func(o operand) bool { return o.span.lo.Sign() >= 0 }
	switch op {
	case token.AND:
		if positive(b) {
			s = span{new(big.Int), b.span.hi}
		}
		if positive(a) && a.span.hi.Cmp(s.hi) < 0 {
			s = span{new(big.Int), a.span.hi}
		}
		return operand{a.in(bindsUnary) + " & " + b.in(bindsUnary), bindsBitAnd, s}
	case token.AND_NOT:
		if positive(a) {
			s = span{new(big.Int), a.span.hi}
		}
		not := "~" + b.in(bindsUnary)
		if unsigned(t) {
			not = "~(uint64_t)" + b.in(bindsUnary)
		}
		return operand{a.in(bindsUnary) + " & " + not, bindsBitAnd, s}
	}

	if positive(a) && positive(b) {
		n := uint(max(a.span.hi.BitLen(), b.span.hi.BitLen()))
		hi := new(big.Int).Lsh(big.NewInt(1), n)
		s = span{new(big.Int), hi.Sub(hi, big.NewInt(1))}
	}

	binds := bindsBitOr
	if op == token.XOR {
		binds = bindsBitXor
	}
	return operand{a.in(bindsUnary) + " " + op.String() + " " + b.in(bindsUnary), binds, s}
}

// narrow brings a value into a type as Go does: by its low bits.
func (g *translator) narrow(t *types.Basic, o operand) operand {
	whole := wholeSpan(t)
	if o.span.within(whole) {
		return operand{"(" + cBasic[t.Kind()] + ")" + o.in(bindsUnary), bindsUnary, o.span}
	}
	if unsigned(t) {
		return operand{"(" + cBasic[t.Kind()] + ")" + o.in(bindsUnary), bindsUnary, whole}
	}
	if width(t) == 8 {
		return operand{g.help("wrap8") + "((uint64_t)" + o.in(bindsUnary) + ")", bindsPostfix, whole}
	}

	return operand{g.help("wrap64") + "(" + o.text + ")", bindsPostfix, whole}
}

// countSpan is what a counter can be that goes from 0 up to below n.
func countSpan(n span) span {
	return span{new(big.Int), new(big.Int).Sub(n.hi, big.NewInt(1))}
}
