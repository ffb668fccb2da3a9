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

// How tightly C's operators bind.
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
	text  string
	binds int
	span  span // of an integer
}

// in is the text, in parentheses where it binds less tightly.
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
		return g.constant(x, tv)
	}
	switch x := x.(type) {
	case *ast.Ident:
		return g.variable(x)
	case *ast.SelectorExpr:
		return operand{g.selector(x), bindsPostfix, g.typeSpan(x)}
	case *ast.IndexExpr:
		return operand{g.element(x), bindsPostfix, g.tableSpan(x)}
	case *ast.StarExpr:
		return g.target(x)
	case *ast.UnaryExpr:
		return g.unary(x)
	case *ast.BinaryExpr:
		return g.binary(x)
	case *ast.CallExpr:
		return g.call(x)
	case *ast.CompositeLit:
		t := g.info.TypeOf(x)
		return operand{"(" + g.declare(t, "", x) + ")" + strings.Join(strings.Fields(g.initializer(x, t)), " "), bindsPostfix, span{}}
	}
	g.refuse(x, "an expression that is not in what is translated")
	return operand{}
}

// text is an expression where anything may stand.
func (g *translator) text(x ast.Expr) string { return g.expr(x).text }

// constant is a literal, or the name of a constant of the package.
func (g *translator) constant(x ast.Expr, tv types.TypeAndValue) operand {
	if id, ok := x.(*ast.Ident); ok {
		if c, ok := g.info.Uses[id].(*types.Const); ok && c.Parent() == g.pkg.Scope() {
			if o, ok := g.named(c, tv); ok {
				return o
			}
		}
	}
	return g.literal(x, tv.Value, tv.Type)
}

// named is the name of a constant, if it is of the type that is wanted.
func (g *translator) named(c *types.Const, tv types.TypeAndValue) (operand, bool) {
	b, ok := tv.Type.Underlying().(*types.Basic)
	if !ok {
		return operand{}, false
	}
	switch {
	case b.Info()&types.IsInteger != 0:
		v, _ := new(big.Int).SetString(constant.ToInt(c.Val()).ExactString(), 10)
		if v == nil || !v.IsInt64() || v.Int64() > math.MaxInt32 || v.Int64() < -math.MaxInt32 || b.Info()&types.IsUnsigned != 0 {
			return operand{}, false
		}
		g.useConst(c)
		return operand{g.names[c], bindsPostfix, spanOf(v, v)}, true
	case b.Info()&types.IsFloat != 0:
		if k, ok := c.Type().Underlying().(*types.Basic); ok && k.Info()&types.IsFloat != 0 && !g.noNames {
			g.useConst(c)
			return operand{g.names[c], bindsPostfix, span{}}, true
		}
	}
	return operand{}, false
}

// literal writes a constant: a double by the shortest decimal that reads back to it.
func (g *translator) literal(at ast.Node, v constant.Value, t types.Type) operand {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		g.refuse(at, "a constant of type %s", t)
	}
	switch {
	case b.Info()&types.IsBoolean != 0:
		return operand{strconv.FormatBool(constant.BoolVal(v)), bindsPostfix, span{}}
	case b.Info()&types.IsInteger != 0:
		n, ok := new(big.Int).SetString(constant.ToInt(v).ExactString(), 10)
		if !ok {
			g.refuse(at, "the constant %s is not whole", v)
		}
		return intLiteral(n, b.Info()&types.IsUnsigned != 0)
	case b.Info()&types.IsFloat != 0:
		f, _ := constant.Float64Val(constant.ToFloat(v))
		text := floatLiteral(f)
		if text[0] == '-' {
			return operand{text, bindsUnary, span{}}
		}
		return operand{text, bindsPostfix, span{}}
	}
	g.refuse(at, "a constant of type %s", t)
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
	s := spanOf(n, n)
	switch {
	case unsigned && n.BitLen() > 31:
		return operand{fmt.Sprintf("UINT64_C(%s)", hexOver(n)), bindsPostfix, s}
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

// hexOver writes wide bit patterns in hex.
func hexOver(n *big.Int) string { return fmt.Sprintf("0x%x", n) }

// variable is a local, a parameter or a table.
func (g *translator) variable(x *ast.Ident) operand {
	o := g.info.ObjectOf(x)
	v, ok := o.(*types.Var)
	if !ok {
		g.refuse(x, "%s is no value", x.Name)
	}
	if v.Parent() == g.pkg.Scope() {
		g.useTable(v, x)
		return operand{g.names[v], bindsPostfix, g.typeSpan(x)}
	}
	s := g.typeSpan(x)
	if known, ok := g.spans[v]; ok {
		s = known
	}
	if text, ok := g.instead[v]; ok {
		return operand{text, bindsPostfix, s}
	}
	return operand{g.names[v], bindsPostfix, s}
}

// selector is a field, through embedded structs where it is one of theirs.
func (g *translator) selector(x *ast.SelectorExpr) string {
	sel := g.info.Selections[x]
	if sel == nil || sel.Kind() != types.FieldVal {
		g.refuse(x, "%s is no field", x.Sel.Name)
	}
	text, _ := g.path(x.X, sel, sel.Index())
	return text
}

// path goes from x through fields, and says whether what it comes to is a pointer.
func (g *translator) path(x ast.Expr, sel *types.Selection, fields []int) (text string, pointer bool) {
	text, pointer = g.expr(x).in(bindsPostfix), isPointer(sel.Recv())
	if star, ok := ast.Unparen(x).(*ast.StarExpr); ok {
		text, pointer = g.expr(star.X).in(bindsPostfix), true
	}
	t := sel.Recv()
	for _, i := range fields {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(i)
		if pointer {
			text += "->"
		} else {
			text += "."
		}
		text, pointer, t = text+g.fieldName(f), isPointer(f.Type()), f.Type()
	}
	return text, pointer
}

// element is an entry of an array, or of one that is pointed to.
func (g *translator) element(x *ast.IndexExpr) string {
	t := g.info.TypeOf(x.X).Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	if _, ok := t.(*types.Array); !ok {
		g.refuse(x, "an index of %s, which is no array", t)
	}
	return g.expr(x.X).in(bindsPostfix) + "[" + g.text(x.Index) + "]"
}

// target is what a pointer points to; that of an array is in C the pointer itself.
func (g *translator) target(x *ast.StarExpr) operand {
	o := g.expr(x.X)
	if isArray(g.info.TypeOf(x)) {
		return o
	}
	return operand{"*" + o.in(bindsUnary), bindsUnary, g.typeSpan(x)}
}

func isArray(t types.Type) bool {
	_, ok := t.Underlying().(*types.Array)
	return ok
}

func isStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// address is &x; an array is in C a pointer to its first element already.
func (g *translator) address(x ast.Expr) string {
	x = ast.Unparen(x)
	if star, ok := x.(*ast.StarExpr); ok {
		return g.text(star.X)
	}
	if isArray(g.info.TypeOf(x)) {
		return g.expr(x).in(bindsUnary)
	}
	return "&" + g.expr(x).in(bindsUnary)
}

func (g *translator) unary(x *ast.UnaryExpr) operand {
	switch x.Op {
	case token.AND:
		return operand{g.address(x.X), bindsUnary, span{}}
	case token.NOT:
		return operand{"!" + g.expr(x.X).in(bindsUnary), bindsUnary, span{}}
	case token.ADD:
		return g.expr(x.X)
	case token.SUB:
		t := g.basic(x)
		o := g.expr(x.X)
		if t.Info()&types.IsFloat != 0 {
			return operand{"-" + spaced(o.in(bindsUnary)), bindsUnary, span{}}
		}
		zero := big.NewInt(0)
		return g.arithmetic(token.SUB, t, operand{"0", bindsPostfix, spanOf(zero, zero)}, o)
	case token.XOR:
		t := g.basic(x)
		o := g.expr(x.X)
		not := operand{"~" + o.in(bindsUnary), bindsUnary, o.span.not()}
		if width(t) == 64 {
			not.span = wholeSpan(t)
			return not
		}
		return g.narrow(t, not)
	}
	g.refuse(x, "the operator %s", x.Op)
	return operand{}
}

// spaced keeps two signs apart.
func spaced(text string) string {
	if text[0] == '-' {
		return "(" + text + ")"
	}
	return text
}

// basic is the scalar type of an expression.
func (g *translator) basic(x ast.Expr) *types.Basic {
	b, ok := g.info.TypeOf(x).Underlying().(*types.Basic)
	if !ok {
		g.refuse(x, "%s is no scalar", g.info.TypeOf(x))
	}
	return b
}
