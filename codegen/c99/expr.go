package c99

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Precedence of C's operators, ascending.
const (
	bindsComma = iota
	bindsCond
	bindsOr
	bindsAnd
	bindsBitOr
	bindsBitXor
	bindsBitAnd
	bindsEqual
	bindsLess
	bindsShift
	bindsAdd
	bindsMul
	bindsUnary
	bindsPostfix
)

// operand is an expression in C.
type operand struct {
	text     string
	binds    int      // precedence of its outermost operator
	interval interval // possible values of an integer
}

// in returns the text, in parentheses if its precedence is below binds.
func (o operand) in(binds int) string {
	if o.binds < binds {
		return "(" + o.text + ")"
	}
	return o.text
}

// expr translates an expression.
func (g *translator) expr(x ast.Expr) operand {
	x = ast.Unparen(x)
	if tv := g.info.Types[x]; tv.Value != nil {
		return g.literal(x, tv.Value, tv.Type)
	}
	switch x := x.(type) {
	case *ast.Ident:
		return g.variable(x)
	case *ast.SelectorExpr:
		return operand{g.selector(x), bindsPostfix, g.exprInterval(x)}
	case *ast.IndexExpr:
		return operand{g.element(x), bindsPostfix, g.tableInterval(x)}
	case *ast.UnaryExpr:
		return g.unary(x)
	case *ast.BinaryExpr:
		return g.binary(x)
	case *ast.CallExpr:
		return g.call(x)
	}

	g.refuse(x, "expression %T", x)
	return operand{}
}

// text returns the text of an expression, without parentheses around it.
func (g *translator) text(x ast.Expr) string { return g.expr(x).text }

// literal returns a constant. A double is the shortest decimal number with the same bits.
func (g *translator) literal(at ast.Node, v constant.Value, t types.Type) operand {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		g.refuse(at, "constant of type %s", t)
	}
	switch {
	case b.Info()&types.IsBoolean != 0:
		return operand{strconv.FormatBool(constant.BoolVal(v)), bindsPostfix, interval{}}
	case b.Info()&types.IsInteger != 0:
		n, ok := new(big.Int).SetString(constant.ToInt(v).ExactString(), 10)
		if !ok {
			g.refuse(at, "integer constant %s that is not whole", v)
		}
		return intLiteral(n, b.Info()&types.IsUnsigned != 0)
	case b.Info()&types.IsFloat != 0:
		f, _ := constant.Float64Val(constant.ToFloat(v))
		text := floatLiteral(f)
		if text[0] == '-' {
			return operand{text, bindsUnary, interval{}}
		}
		return operand{text, bindsPostfix, interval{}}
	}

	g.refuse(at, "constant of type %s", t)
	return operand{}
}

func floatLiteral(f float64) string {
	switch {
	case f > math.MaxFloat64:
		return "(double)INFINITY"
	case f < -math.MaxFloat64:
		return "-(double)INFINITY"
	case f != f:
		return "(double)NAN"
	}

	text := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

func intLiteral(n *big.Int, unsigned bool) operand {
	s := interval{n, n}
	switch {
	case unsigned && n.BitLen() > 31:
		return operand{fmt.Sprintf("UINT64_C(0x%x)", n), bindsPostfix, s}
	case unsigned:
		return operand{n.String() + "u", bindsPostfix, s}
	case n.BitLen() <= 31 && n.Sign() >= 0:
		return operand{n.String(), bindsPostfix, s}
	case n.BitLen() <= 31:
		return operand{n.String(), bindsUnary, s}
	case n.Sign() >= 0:
		return operand{fmt.Sprintf("INT64_C(%s)", n), bindsPostfix, s}
	case n.BitLen() == 64:
		return operand{"INT64_MIN", bindsPostfix, s}
	}

	return operand{fmt.Sprintf("-INT64_C(%s)", new(big.Int).Neg(n)), bindsUnary, s}
}

// variable translates a local, a parameter or a table.
func (g *translator) variable(x *ast.Ident) operand {
	o := g.info.ObjectOf(x)
	v, ok := o.(*types.Var)
	if !ok {
		g.refuse(x, "%s, which is not a variable", x.Name)
	}
	if v.Parent() == g.pkg.Scope() {
		g.declareTable(v, x)
		return operand{g.names[v], bindsPostfix, g.exprInterval(x)}
	}

	s := g.exprInterval(x)
	if known, ok := g.intervals[v]; ok {
		s = known
	}
	return operand{g.names[v], bindsPostfix, s}
}

// selector returns the text of a field, with the embedded structs on its path.
func (g *translator) selector(x *ast.SelectorExpr) string {
	sel := g.info.Selections[x]
	if sel == nil || sel.Kind() != types.FieldVal {
		g.refuse(x, "%s, which is not a field", x.Sel.Name)
	}
	text, _ := g.path(x.X, sel, sel.Index())
	return text
}

// path returns the text of a path of fields from x. pointer reports whether its last field is a
// pointer.
func (g *translator) path(x ast.Expr, sel *types.Selection, fields []int) (text string, pointer bool) {
	text, pointer = g.expr(x).in(bindsPostfix), is[*types.Pointer](sel.Recv())
	t := sel.Recv()
	for _, i := range fields {
		f := pointee(t).Underlying().(*types.Struct).Field(i)
		if pointer {
			text += "->"
		} else {
			text += "."
		}

		text, pointer, t = text+g.fieldName(f), is[*types.Pointer](f.Type()), f.Type()
	}

	return text, pointer
}

// element returns the text of an array's element.
func (g *translator) element(x *ast.IndexExpr) string {
	if t := pointee(g.info.TypeOf(x.X)).Underlying(); !is[*types.Array](t) {
		g.refuse(x, "index into %s, which is not an array", t)
	}
	return g.expr(x.X).in(bindsPostfix) + "[" + g.text(x.Index) + "]"
}

// address returns the text of &x. An array in C is already a pointer to its first element.
func (g *translator) address(x ast.Expr) string {
	if is[*types.Array](g.info.TypeOf(x)) {
		return g.expr(x).in(bindsUnary)
	}
	return "&" + g.expr(x).in(bindsUnary)
}

func (g *translator) unary(x *ast.UnaryExpr) operand {
	switch x.Op {
	case token.AND:
		return operand{g.address(x.X), bindsUnary, interval{}}
	case token.NOT:
		return operand{"!" + g.expr(x.X).in(bindsUnary), bindsUnary, interval{}}
	case token.SUB:
		t := g.basic(x)
		o := g.expr(x.X)
		if t.Info()&types.IsFloat != 0 {
			return operand{"-" + parenthesizeSign(o.in(bindsUnary)), bindsUnary, interval{}}
		}
		zero := big.NewInt(0)
		return g.arithmetic(x, token.SUB, t, operand{"0", bindsPostfix, interval{zero, zero}}, o)
	}

	g.refuse(x, "operator %s", x.Op)
	return operand{}
}

// parenthesizeSign puts an operand that begins with - in parentheses: two signs would be --.
func parenthesizeSign(text string) string {
	if text[0] == '-' {
		return "(" + text + ")"
	}
	return text
}

// basic returns the scalar type of an expression.
func (g *translator) basic(x ast.Expr) *types.Basic {
	b, ok := g.info.TypeOf(x).Underlying().(*types.Basic)
	if !ok {
		g.refuse(x, "%s, which is not a scalar", g.info.TypeOf(x))
	}
	return b
}

// logic gives the precedence of C's comparisons and logical operators.
var logic = map[token.Token]int{
	token.LAND: bindsAnd, token.LOR: bindsOr, token.EQL: bindsEqual, token.NEQ: bindsEqual,
	token.LSS: bindsLess, token.LEQ: bindsLess, token.GTR: bindsLess, token.GEQ: bindsLess,
}

func (g *translator) binary(x *ast.BinaryExpr) operand {
	switch x.Op {
	case token.LAND, token.LOR:
		return g.shortCircuit(x)
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
		return operand{a.in(binds) + " " + x.Op.String() + " " + b.in(binds+1), binds, interval{}}
	}

	return g.arithmetic(x, x.Op, t, a, b)
}

// shortCircuit translates && and ||. The C text evaluates hoisted calls of the right side only if
// the left side does not decide.
func (g *translator) shortCircuit(x *ast.BinaryExpr) operand {
	binds := logic[x.Op]
	if !g.hoistCalls || !g.containsCall(x.Y) {
		a, b := g.expr(x.X), g.expr(x.Y)
		if x.Op == token.LOR && g.complementary(x.X, x.Y) {
			b = operand{"!(" + a.text + ")", bindsUnary, interval{}}
		}
		if b.binds == binds { // gcc warns without parentheses
			b.binds = bindsCond
		}
		left := a.in(binds)
		if a.binds == bindsAnd && binds == bindsOr {
			left = "(" + a.text + ")"
		}
		right := b.in(bindsBitOr)
		return operand{left + " " + x.Op.String() + " " + right, binds, interval{}}
	}

	t := g.newLocal("t")
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
	return operand{t, bindsPostfix, interval{}}
}

// complementary reports whether exactly one of two comparisons holds, for all values. Compilers
// warn of "x || y" then, since the condition is always true.
func (g *translator) complementary(x, y ast.Expr) bool {
	a, ok := ast.Unparen(x).(*ast.BinaryExpr)
	b, ok2 := ast.Unparen(y).(*ast.BinaryExpr)
	if !ok || !ok2 || g.containsCall(x) || logic[a.Op] < bindsEqual || g.info.TypeOf(a.X) != g.info.TypeOf(b.X) {
		return false
	}
	t, ok := g.info.TypeOf(a.X).Underlying().(*types.Basic)
	opposite := map[token.Token]token.Token{
		token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR, token.EQL: token.NEQ,
		token.NEQ: token.EQL,
	}
	return ok && t.Info()&types.IsInteger != 0 && opposite[a.Op] == b.Op && g.text(a.X) == g.text(b.X) && g.text(a.Y) == g.text(b.Y)
}

// containsCall reports whether an expression calls a function of the tick.
func (g *translator) containsCall(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			found = found || g.flow.callee(c) != nil
		}
		return !found
	})
	return found
}

func (g *translator) compare(x *ast.BinaryExpr) operand {
	if t := g.info.TypeOf(x.X); is[*types.Array](t) || is[*types.Struct](t) {
		g.refuse(x, "comparison of %s", t)
	}
	a, b := g.expr(x.X), g.expr(x.Y)
	binds := bindsShift // an operand that is a comparison gets parentheses
	if a.text[0] == '!' {
		a.binds = bindsCond
	}
	return operand{a.in(binds) + " " + x.Op.String() + " " + b.in(binds), logic[x.Op], interval{}}
}
