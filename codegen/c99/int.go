package c99

import (
	"go/ast"
	"go/token"
	"go/types"
	"math/big"
)

// span is what an integer can be; the zero value is that of what is none.
type span struct{ lo, hi *big.Int }

func spanOf(lo, hi *big.Int) span { return span{lo, hi} }

// within says whether all of s is in t.
func (s span) within(t span) bool {
	return s.lo != nil && s.lo.Cmp(t.lo) >= 0 && s.hi.Cmp(t.hi) <= 0
}

func (s span) not() span {
	return span{new(big.Int).Not(s.hi), new(big.Int).Not(s.lo)}
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
	case types.Int16, types.Uint16:
		return 16
	case types.Int32, types.Uint32:
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

// arithmetic is an operation on integers of one type, without what C leaves undefined.
func (g *translator) arithmetic(op token.Token, t *types.Basic, a, b operand) operand {
	switch op {
	case token.ADD, token.SUB, token.MUL:
		return g.sum(op, t, a, b)
	case token.QUO, token.REM:
		return g.divide(op, t, a, b)
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
	switch {
	case s.within(whole) && (width(t) == 64 || s.within(wholeSpan(types.Typ[types.Int16]))):
		if a.text == "0" && op == token.SUB {
			return operand{"-" + spaced(b.in(bindsUnary)), bindsUnary, s}
		}
		return plain
	case unsigned(t) && width(t) == 64:
		plain.span = whole
		return plain
	case unsigned(t):
		plain.text = "(uint64_t)" + a.in(bindsUnary) + " " + op.String() + " " + b.in(f.binds+1)
		return operand{"(" + cBasic[t.Kind()] + ")(" + plain.text + ")", bindsUnary, whole}
	case width(t) < 64:
		plain.text = "(int64_t)" + a.in(bindsUnary) + " " + op.String() + " " + spaced(b.in(f.binds+1))
		return g.narrow(t, plain)
	}
	return operand{g.help(f.helper) + "(" + a.text + ", " + b.text + ")", bindsPostfix, whole}
}

// divide truncates, as Go does. Where the divisor could be 0, at which Go stops, it gives 0.
func (g *translator) divide(op token.Token, t *types.Basic, a, b operand) operand {
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
	name := map[token.Token]string{token.QUO: "div64", token.REM: "mod64"}[op]
	if unsigned(t) {
		name = "u" + name
	}
	o := operand{g.help(name) + "(" + a.text + ", " + b.text + ")", bindsPostfix, wholeSpan(types.Typ[types.Int64])}
	if unsigned(t) {
		o.span = wholeSpan(t)
	}
	if width(t) == 64 {
		return o
	}
	return g.narrow(t, o)
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
		if s.within(whole) || unsigned(t) && width(t) == 64 {
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
	if unsigned(t) && width(t) == 64 {
		return o
	}
	return g.narrow(t, o)
}

// wide makes a constant that is shifted as wide as its type.
func wide(a operand, t *types.Basic) operand {
	if a.span.lo == nil || a.span.lo.Cmp(a.span.hi) != 0 {
		if width(t) < 64 {
			return operand{"(" + map[bool]string{true: "uint64_t", false: "int64_t"}[unsigned(t)] + ")" + a.in(bindsUnary), bindsUnary, a.span}
		}
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
		if unsigned(t) && width(t) == 64 {
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
	name := map[int]string{8: "wrap8", 16: "wrap16", 32: "wrap32", 64: "wrap64"}[width(t)]
	if width(t) < 64 {
		return operand{g.help(name) + "((uint64_t)" + o.in(bindsUnary) + ")", bindsPostfix, whole}
	}
	return operand{g.help(name) + "(" + o.text + ")", bindsPostfix, whole}
}
