package c99

import (
	"go/ast"
	"go/constant"
	"go/types"
	"math"
	"math/big"
	"strings"
)

// call translates a call, a conversion or a built-in function.
func (g *translator) call(x *ast.CallExpr) operand {
	if g.info.Types[x.Fun].IsType() {
		return g.convert(x)
	}
	if name := g.builtinName(x); name != "" {
		return g.builtin(x, name)
	}
	if fn := g.flow.callee(x); fn != nil {
		return g.tickCall(x, fn)
	}
	if s, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr); ok {
		if fn, ok := g.info.Uses[s.Sel].(*types.Func); ok && fn.Pkg() != nil && fn.Pkg() != g.pkg {
			return g.libraryCall(x, fn)
		}
	}

	g.refuse(x, "call of a function outside the tick")
	return operand{}
}

// tickCall translates a call of a function of the tick. With hoistCalls it is a statement of its
// own, before the present one.
func (g *translator) tickCall(x *ast.CallExpr, fn *types.Func) operand {
	text := g.callText(x, fn)
	r := fn.Signature().Results()
	o := operand{text, bindsPostfix, interval{}}
	if r.Len() == 1 {
		if b, ok := r.At(0).Type().Underlying().(*types.Basic); ok && b.Info()&types.IsInteger != 0 {
			o.interval = typeInterval(b)
		}
		if g.hoistCalls {
			o.text = g.newLocal("t")
			g.out.put("const %s = %s;", g.declare(r.At(0).Type(), o.text, x), text)
		}
	}

	return o
}

// callText returns the text of a call of a function of the tick.
func (g *translator) callText(x *ast.CallExpr, fn *types.Func) string {
	var args []string
	params := fn.Signature().Params()
	list := x.Args
	if recv := fn.Signature().Recv(); recv != nil {
		s, ok := ast.Unparen(x.Fun).(*ast.SelectorExpr)
		if !ok || g.info.Uses[s.Sel] != fn { // indirect call: the receiver is the first argument
			args, list = append(args, g.argument(list[0], recv)), list[1:]
		} else {
			args = append(args, g.receiver(s))
		}
	}

	if len(list) != params.Len() {
		g.refuse(x, "call whose arguments are the results of another call")
	}
	for i, a := range list {
		args = append(args, g.argument(a, params.At(i)))
	}
	return g.names[fn] + "(" + strings.Join(args, ", ") + ")"
}

// receiver returns the text of a method's receiver, a pointer.
func (g *translator) receiver(s *ast.SelectorExpr) string {
	sel := g.info.Selections[s]
	text, pointer := g.path(s.X, sel, sel.Index()[:len(sel.Index())-1])
	if !pointer {
		g.refuse(s, "method call whose receiver is not a pointer")
	}
	return text
}

// argument returns the text of an argument.
func (g *translator) argument(x ast.Expr, p *types.Var) string {
	if is[*types.Array](p.Type()) {
		g.refuse(x, "array argument passed by value")
	}
	return g.text(x)
}

// convert translates a conversion between scalars.
func (g *translator) convert(x *ast.CallExpr) operand {
	to, ok := g.info.TypeOf(x).Underlying().(*types.Basic)
	if !ok { // types with one underlying type
		return g.expr(x.Args[0])
	}
	from := g.basic(x.Args[0])
	o := g.expr(x.Args[0])
	same := cBasic[to.Kind()] == cBasic[from.Kind()]
	switch {
	case to.Info()&types.IsBoolean != 0, to.Info()&from.Info()&types.IsFloat != 0:
		return o // float64(a*b) keeps Go from fusing a product; C is compiled without contraction
	case to.Info()&types.IsFloat != 0:
		return operand{"(double)" + o.in(bindsUnary), bindsUnary, interval{}}
	case from.Info()&types.IsInteger != 0 && same:
		return o
	case from.Info()&types.IsInteger != 0 && (width(to) != 32 && cBasic[to.Kind()] != ""):
		return g.narrow(to, o)
	case cBasic[to.Kind()] != "int64_t":
		g.refuse(x, "conversion of %s to %s", from, to)
	}

	return operand{g.useHelper("to_int64") + "(" + o.text + ")", bindsPostfix, typeInterval(to)}
}

// builtin translates min and max of signed integers.
func (g *translator) builtin(x *ast.CallExpr, name string) operand {
	if name != "min" && name != "max" {
		g.refuse(x, "function %s", name)
	}
	if t := g.basic(x); cBasic[t.Kind()] != "int64_t" {
		g.refuse(x, "function %s of %s", name, t)
	}

	o := g.expr(x.Args[0])
	constant := g.isConst(x.Args[0])
	for _, a := range x.Args[1:] {
		b, c := g.expr(a), g.isConst(a)
		if constant && !c {
			o, b = b, o
		}
		text := g.useHelper(name+"_int64") + "(" + o.text + ", " + b.text + ")"
		o = operand{text, bindsPostfix, minMaxInterval(name, o.interval, b.interval)}
		constant = constant && c
	}

	return o
}

// minMaxInterval returns the interval of the min or max of two integers.
func minMaxInterval(name string, a, b interval) interval {
	pick := func(x, y *big.Int) *big.Int {
		if (x.Cmp(y) < 0) == (name == "min") {
			return x
		}
		return y
	}

	return interval{pick(a.lo, b.lo), pick(a.hi, b.hi)}
}

// libraryC gives the C function for each function of Go's standard library: one of cCalled, or a
// helper.
var libraryC = map[string]string{
	"math.Abs": "fabs", "math.Sqrt": "sqrt", "math.Copysign": "copysign", "math.NaN": "not_a_number",
	"math.Float64bits": "bits_of", "math.Float64frombits": "double_of",
	"bits.LeadingZeros64": "leading_zeros", "bits.TrailingZeros64": "trailing_zeros", "bits.OnesCount64": "ones_count",
	"bits.Mul64": "multiply_wide", "bits.Add64": "add_carry", "bits.Sub64": "sub_borrow",
}

// libraryCall translates a call of package math or math/bits.
func (g *translator) libraryCall(x *ast.CallExpr, fn *types.Func) operand {
	if text := g.constantCall(x, fn); text != "" {
		return operand{text, bindsUnary, interval{}}
	}
	name, ok := libraryC[fn.Pkg().Name()+"."+fn.Name()]
	if !ok {
		g.refuse(x, "function %s.%s", fn.Pkg().Name(), fn.Name())
	}
	if !cCalled[name] {
		name = g.useHelper(name)
	}
	args := make([]string, len(x.Args))
	for i, a := range x.Args {
		args[i] = g.text(a)
	}
	s := interval{}
	switch r := fn.Signature().Results(); {
	case r.Len() > 1:
		g.resultType(r, x)
	case types.Identical(r.At(0).Type(), types.Typ[types.Int]): // a number of bits
		s = interval{new(big.Int), big.NewInt(64)}
	case types.Identical(r.At(0).Type(), types.Typ[types.Uint64]):
		s = typeInterval(types.Typ[types.Uint64])
	}

	return operand{name + "(" + strings.Join(args, ", ") + ")", bindsPostfix, s}
}

// constantCall returns the value of a call with constant arguments that Go does not treat as a
// constant: -0, an infinity, or a number given by its bits. An initialiser in C may contain it.
// Otherwise the result is "".
func (g *translator) constantCall(x *ast.CallExpr, fn *types.Func) string {
	args := make([]float64, len(x.Args))
	for i, a := range x.Args {
		v := g.info.Types[a].Value
		if v == nil {
			return ""
		}
		args[i], _ = constant.Float64Val(constant.ToFloat(v))
	}

	switch fn.Name() {
	case "Inf":
		return floatLiteral(math.Inf(int(args[0])))
	case "Copysign":
		return floatLiteral(math.Copysign(args[0], args[1]))
	case "Float64frombits":
		if bits, ok := constant.Uint64Val(constant.ToInt(g.info.Types[x.Args[0]].Value)); ok {
			if f := math.Float64frombits(bits); f == f {
				return floatLiteral(f)
			}
		}
	}

	return ""
}
