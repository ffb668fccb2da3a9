package specialise

import (
	"go/ast"
	"go/types"
	"math"
	"strings"
)

// silent are the names of calls without an effect.
var silent = map[string]bool{
	"float64": true, "int": true, "int64": true, "uint64": true, "uint": true, "int8": true, "int32": true, "uint8": true, "uint32": true,
	"min": true, "max": true, "lesser": true, "greater": true, "atMost": true, "atLeast": true, "math.Abs": true, "math.Sqrt": true, "math.Floor": true, "math.Trunc": true, "math.Copysign": true, "math.Inf": true, "math.NaN": true,
	"math.Float64bits": true, "math.Float64frombits": true, "math.IsNaN": true, "math.IsInf": true,
	"bits.TrailingZeros64": true, "bits.LeadingZeros64": true, "bits.OnesCount64": true,
}

// converted is v as a t.
func (f *frame) converted(v *value, t types.Type) *value {
	b, ok := t.Underlying().(*types.Basic)
	if !ok || v.kind != scalar {
		return v
	}
	switch c := v.con.(type) {
	case float64:
		if b.Info()&types.IsFloat != 0 {
			return constantValue(c, t)
		}
		if b.Info()&types.IsUnsigned != 0 {
			return constantValue(wrapInt(uint64(c), t), t)
		}
		return constantValue(wrapInt(int64(c), t), t)
	case int64, uint64:
		n, _ := v.integer()
		if b.Info()&types.IsFloat != 0 {
			if u, ok := c.(uint64); ok {
				return constantValue(float64(u), t)
			}
			return constantValue(float64(n), t)
		}
		if b.Info()&types.IsUnsigned != 0 {
			return constantValue(wrapInt(uint64(n), t), t)
		}
		return constantValue(wrapInt(n, t), t)
	case nil:
		if goType(v.typ) == goType(t) && !isFloat(t) {
			w := *v
			w.typ = t
			return &w
		}
		out := dynamic(goType(t)+"("+v.text+")", operand, t)
		out.plus = v.plus
		if !isFloat(v.typ) && isFloat(t) {
			out.plus = true
		}
		return out
	}
	return v
}

func (f *frame) builtin(e *ast.CallExpr, name string) []*value {
	switch name {
	case "len", "cap":
		return []*value{f.lengthOf(e, f.eval(e.Args[0]))}
	case "min", "max":
		out := f.eval(e.Args[0])
		for _, a := range e.Args[1:] {
			out = f.extreme(name, out, f.eval(a))
		}
		return []*value{out}
	case "copy":
		f.copyTo(e, f.eval(e.Args[0]), f.eval(e.Args[1]))
	case "clear":
		f.clear(e, f.eval(e.Args[0]))
	case "panic":
		f.fail(e, "a tick that panics")
	default:
		f.fail(e, "%s is not part of a tick", name)
	}
	return nil
}

// extreme is the builtin min or max of two.
func (s *spec) extreme(name string, a, b *value) *value {
	typ := a.typ
	if basic := typ.Underlying().(*types.Basic); basic.Info()&types.IsUntyped != 0 {
		typ = b.typ
	}
	if a.con != nil && b.con != nil {
		switch x := a.con.(type) {
		case float64:
			if name == "min" {
				return constantValue(min(x, b.con.(float64)), typ)
			}
			return constantValue(max(x, b.con.(float64)), typ)
		default:
			x1, _ := a.integer()
			y1, _ := b.integer()
			if name == "min" {
				return constantValue(wrapInt(min(x1, y1), typ), typ)
			}
			return constantValue(wrapInt(max(x1, y1), typ), typ)
		}
	}
	if isFloat(typ) {
		return s.extremeFloat(name, a, b)
	}
	return dynamic(name+"("+a.text+", "+b.text+")", operand, typ)
}

// extremeFloat is that of floating-point numbers by comparisons, which the processor foresees:
// the compiler's own form takes a dozen instructions, each of which waits for the one before.
func (s *spec) extremeFloat(name string, a, b *value) *value {
	if a.con != nil {
		a, b = b, a // of two that are no number either is as good
	}
	bound, known := b.con.(float64)
	helper := map[string]string{"min": "lesser", "max": "greater"}[name]
	if known && b.plus && bound == bound {
		helper = map[string]string{"min": "atMost", "max": "atLeast"}[name]
	}
	s.helper[helper] = true
	out := dynamic(helper+"("+a.text+", "+b.text+")", operand, types.Typ[types.Float64])
	out.plus = name == "max" && (a.plus || b.plus) || a.plus && b.plus
	return out
}

// outright is up to how many elements a copy is written out.
const outright = 32

func (f *frame) copyTo(e ast.Node, dst, src *value) {
	n := f.extreme("min", dst.len, src.len)
	if goType(n.typ) == "int" && dst.len.key() == src.len.key() {
		n = dst.len
	}
	f.eachTo(e, dst, n, func(i *value) *value { return f.load(f.nth(nil, src, i)) })
}

func (f *frame) clear(e ast.Node, dst *value) {
	zero := zeroOf(dst.typ.Underlying().(*types.Slice).Elem())
	f.eachTo(e, dst, dst.len, func(*value) *value { return zero })
}

// eachTo sets the first n elements of dst.
func (f *frame) eachTo(e ast.Node, dst, n *value, from func(i *value) *value) {
	if count, ok := n.integer(); ok && count <= outright {
		for i := range count {
			i := wholeNumber(int(i))
			f.store(e, f.nth(nil, dst, i).at, from(i))
		}
		return
	}
	i := dynamic(f.unique("i"), operand, types.Typ[types.Int])
	i.stable = true
	if count, ok := n.integer(); ok {
		i.ranged, i.hi = true, count-1
	}
	body := f.block(func() { f.store(e, f.nth(nil, dst, i).at, from(i)) })
	if len(body) > 0 {
		f.emit(&stmt{kind: loop, names: []string{i.text}, right: n.text, body: body})
	}
}

// library is a call of package math or bits.
func (f *frame) library(e *ast.CallExpr, name string) []*value {
	args := f.args(e.Args)
	if known := knownLibrary(name, args); known != nil {
		return []*value{known}
	}
	typ := f.info.TypeOf(e)
	var texts []string
	for _, a := range args {
		texts = append(texts, a.text)
	}
	list := strings.Join(texts, ", ")
	if tup, ok := typ.(*types.Tuple); ok {
		return f.several(name+"("+list+")", tup, nil)
	}
	out := dynamic(name+"("+list+")", operand, typ)
	out.plus = name == "math.Abs"
	return []*value{out}
}

// several binds the results of a call to variables.
func (f *frame) several(call string, tup *types.Tuple, wanted []ast.Expr) (out []*value) {
	st := &stmt{kind: declare, right: call, pure: f.pure(call)}
	for i := range tup.Len() {
		name := tup.At(i).Name()
		if i < len(wanted) {
			if id, ok := wanted[i].(*ast.Ident); ok && id.Name != "_" {
				name = id.Name
			}
		}
		if name == "" || name == "_" {
			name = "got"
		}
		name = f.unique(name)
		st.names = append(st.names, name)
		v := dynamic(name, operand, tup.At(i).Type())
		v.stable = true
		out = append(out, v)
	}
	f.emit(st)
	return out
}

// knownLibrary is the value of a call where its arguments are known.
func knownLibrary(name string, args []*value) *value {
	var x []float64
	for _, a := range args {
		switch c := a.con.(type) {
		case float64:
			x = append(x, c)
		case int64:
			x = append(x, float64(c))
		default:
			return nil
		}
	}
	float := func(v float64) *value { return constantValue(v, types.Typ[types.Float64]) }
	switch name {
	case "math.Abs":
		return float(math.Abs(x[0]))
	case "math.Sqrt":
		return float(math.Sqrt(x[0]))
	case "math.Floor":
		return float(math.Floor(x[0]))
	case "math.Copysign":
		return float(math.Copysign(x[0], x[1]))
	case "math.Inf":
		return float(math.Inf(int(x[0])))
	case "math.NaN":
		return float(math.NaN())
	}
	return nil
}

// enclosed is a call of a function that is written down in another.
func (f *frame) enclosed(e *ast.CallExpr, c *value) []*value {
	i := 0
	for _, p := range c.lit.Type.Params.List {
		for _, n := range p.Names {
			f.bind(f.info.Defs[n], f.steady(f.eval(e.Args[i]), n.Name), true)
			i++
		}
	}
	ret, ok := c.lit.Body.List[0].(*ast.ReturnStmt)
	if !ok || len(ret.Results) != 1 {
		f.fail(e, "a function in a function is more than an expression")
	}
	return []*value{f.eval(ret.Results[0])}
}
