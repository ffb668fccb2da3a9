package c99

import (
	"go/ast"
	"go/token"
	"go/types"
)

// comparisons and logic of C, and how tightly they bind.
var logic = map[token.Token]int{
	token.LAND: bindsAnd, token.LOR: bindsOr, token.EQL: bindsEqual, token.NEQ: bindsEqual,
	token.LSS: bindsLess, token.LEQ: bindsLess, token.GTR: bindsLess, token.GEQ: bindsLess,
}

func (g *translator) binary(x *ast.BinaryExpr) operand {
	switch x.Op {
	case token.LAND, token.LOR:
		return g.connect(x)
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return g.compare(x)
	}
	t := g.basic(x)
	a, b := g.expr(x.X), g.expr(x.Y)
	if t.Info()&types.IsFloat != 0 {
		binds := bindsAdd
		if x.Op == token.MUL || x.Op == token.QUO {
			binds = bindsMul
		}
		return operand{a.in(binds) + " " + x.Op.String() + " " + b.in(binds+1), binds, span{}}
	}
	return g.arithmetic(x.Op, t, a, b)
}

// connect is && or ||: where calls have to stand alone, those of the right side do so
// only where the right side is reached.
func (g *translator) connect(x *ast.BinaryExpr) operand {
	binds := logic[x.Op]
	if !g.apart || !g.calls(x.Y) {
		a, b := g.expr(x.X), g.expr(x.Y)
		if x.Op == token.LOR && g.always(x.X, x.Y) {
			b = operand{"!(" + a.text + ")", bindsUnary, span{}}
		}
		if b.binds == binds { // gcc wants to see what is meant
			b.binds = bindsCond
		}
		left := a.in(binds)
		if a.binds == bindsAnd && binds == bindsOr {
			left = "(" + a.text + ")"
		}
		right := b.in(bindsBitOr)
		return operand{left + " " + x.Op.String() + " " + right, binds, span{}}
	}
	t := g.temporary("t")
	g.out.put("bool %s = %s;", t, g.text(x.X))
	not := ""
	if x.Op == token.LOR {
		not = "!"
	}
	g.out.put("if (%s%s) {", not, t)
	g.out.indent++
	g.out.put("%s = %s;", t, g.text(x.Y))
	g.out.indent--
	g.out.put("}")
	return operand{t, bindsPostfix, span{}}
}

// always says whether one of two comparisons holds in any case: of that compilers warn where
// they see it.
func (g *translator) always(x, y ast.Expr) bool {
	a, ok := ast.Unparen(x).(*ast.BinaryExpr)
	b, ok2 := ast.Unparen(y).(*ast.BinaryExpr)
	if !ok || !ok2 || g.calls(x) || logic[a.Op] < bindsEqual || g.info.TypeOf(a.X) != g.info.TypeOf(b.X) {
		return false
	}
	t, ok := g.info.TypeOf(a.X).Underlying().(*types.Basic)
	opposite := map[token.Token]token.Token{token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL}
	return ok && t.Info()&types.IsInteger != 0 && opposite[a.Op] == b.Op && g.text(a.X) == g.text(b.X) && g.text(a.Y) == g.text(b.Y)
}

// calls says whether an expression calls a function of the text.
func (g *translator) calls(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			found = found || g.flow.callee(c) != nil
		}
		return !found
	})
	return found
}

func (g *translator) compare(x *ast.BinaryExpr) operand {
	t := g.info.TypeOf(x.X)
	if isArray(t) || isStruct(t) {
		rows := "" // C does not make rows constant itself
		if a, ok := t.Underlying().(*types.Array); ok && isArray(a.Elem()) {
			rows = "(const " + g.declare(types.NewPointer(t), "", x) + ")"
		}
		text := g.useEqual(t, x) + "(" + rows + g.address(x.X) + ", " + rows + g.address(x.Y) + ")"
		if x.Op == token.NEQ {
			return operand{"!" + text, bindsUnary, span{}}
		}
		return operand{text, bindsPostfix, span{}}
	}
	a, b := g.expr(x.X), g.expr(x.Y)
	binds := bindsShift // of what is compared; another comparison gets parentheses
	if a.text[0] == '!' {
		a.binds = bindsCond
	}
	return operand{a.in(binds) + " " + x.Op.String() + " " + b.in(binds), logic[x.Op], span{}}
}
