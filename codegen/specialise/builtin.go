package specialise

import (
	"go/ast"
	"go/types"
	"math"
	"reflect"
	"strings"
)

// pureCalls are the names of calls without an effect.
var pureCalls = namesOf(`float64 int int64 uint64 uint int8 int32 uint8 uint32
	min max lesser greater larger atMost atLeast
	math.Abs math.Sqrt math.Floor math.Trunc math.Copysign math.Inf math.NaN
	math.Float64bits math.Float64frombits math.IsNaN math.IsInf
	bits.TrailingZeros64 bits.LeadingZeros64 bits.OnesCount64`)

// namesOf returns the set of the words of a text.
func namesOf(text string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(text) {
		set[name] = true
	}
	return set
}

// converted returns v converted to type t.
func (f *frame) converted(v *value, t types.Type) *value {
	if !isOf(t, types.IsNumeric) || v.kind != scalar {
		return v
	}
	if v.con != nil {
		return constantValue(plain(reflect.ValueOf(v.con).Convert(formOf(t))), t)
	}
	if goType(v.typ) == goType(t) && !isFloat(t) {
		w := *v
		w.typ = t
		return &w
	}

	if isFloat(v.typ) && isFloat(t) {
		return rounded(v)
	}
	out := dynamic(goType(t)+"("+v.text+")", operand, t)
	out.notNegZero = !isFloat(v.typ) && isFloat(t)
	return out
}

// builtin follows a call of a builtin function.
func (f *frame) builtin(e *ast.CallExpr, name string) []*value {
	args := f.args(e.Args)
	switch name {
	case "len", "cap":
		return []*value{f.lengthOf(args[0])}
	case "min", "max":
		out := args[0]
		for _, a := range args[1:] {
			out = f.minMax(name, out, a)
		}
		return []*value{out}
	case "copy":
		f.copyTo(args[0], args[1])
	case "clear":
		zero := zeroOf(elemOf(args[0].typ))
		f.setElements(args[0], args[0].len, func(*value) *value { return zero })
	default:
		f.fail("%s is not part of a tick", name)
	}

	return nil
}

// minMax returns the builtin min or max of two values.
func (s *spec) minMax(name string, a, b *value) *value {
	least := name == "min"
	if x, ok := a.con.(float64); ok && b.con != nil {
		if least {
			return constantValue(min(x, b.con.(float64)), a.typ)
		}
		return constantValue(max(x, b.con.(float64)), a.typ)
	}

	m, aok := a.integer()
	n, bok := b.integer()
	switch {
	case aok && bok && least:
		return constantValue(min(m, n), a.typ)
	case aok && bok:
		return constantValue(max(m, n), a.typ)
	case isFloat(a.typ):
		return s.minMaxFloat(name, a, b)
	}

	return dynamic(name+"("+a.text+", "+b.text+")", operand, a.typ)
}

// minMaxFloat returns min or max of floating-point numbers by comparisons, which the processor
// predicts. The compiler's own form takes a dozen instructions, and each waits for the
// previous one.
func (s *spec) minMaxFloat(name string, a, b *value) *value {
	if a.con != nil {
		a, b = b, a // the choice between two NaN does not matter
	}
	bound, known := b.con.(float64)
	known = known && b.notNegZero && bound == bound
	helper := "lesser"
	switch {
	case name == "max" && known:
		helper = "atLeast"
	case name == "max" && b.notNegZero:
		helper = "larger"
	case name == "max" && a.notNegZero:
		helper, a, b = "larger", b, a
	case name == "max":
		helper = "greater"
	case known:
		helper = "atMost"
	}

	s.helper[helper] = true
	out := dynamic(helper+"("+a.text+", "+b.text+")", operand, types.Typ[types.Float64])
	out.notNegZero = name == "max" && (a.notNegZero || b.notNegZero) || a.notNegZero && b.notNegZero
	return out
}

// maxCopy is the largest number of elements of a copy that is unrolled.
const maxCopy = 32

// copyTo follows the builtin copy.
func (f *frame) copyTo(dst, src *value) {
	n := dst.len
	if n.key() != src.len.key() {
		n = f.minMax("min", n, src.len)
	}
	f.setElements(dst, n, func(i *value) *value { return f.load(f.elementRef(src, i)) })
}

// setElements sets the first n elements of dst.
func (f *frame) setElements(dst, n *value, from func(i *value) *value) {
	count, known := n.integer()
	if known && count <= maxCopy {
		for i := range int(count) {
			i := wholeNumber(i)
			f.store(f.elementRef(dst, i).at, from(i))
		}

		return
	}

	i := dynamic(f.unique("i"), operand, types.Typ[types.Int])
	i.stable, i.ranged, i.hi = true, known, count-1
	body := f.block(func() { f.store(f.elementRef(dst, i).at, from(i)) })
	if len(body) > 0 {
		f.emit(&stmt{kind: loop, names: []string{i.text}, right: n.text, body: body})
	}
}

// library follows a call of package math or bits.
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
		return f.declareResults(name+"("+list+")", tup, nil)
	}
	out := dynamic(name+"("+list+")", operand, typ)
	out.notNegZero = name == "math.Abs"
	return []*value{out}
}

// declareResults emits the declaration of variables for the results of a call.
func (f *frame) declareResults(call string, tup *types.Tuple, wanted []ast.Expr) (out []*value) {
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

// knownLibrary returns the value of a call with known arguments; nil if it is not known.
func knownLibrary(name string, args []*value) *value {
	float := func(x float64) *value { return constantValue(x, types.Typ[types.Float64]) }
	if name == "math.NaN" {
		return float(math.NaN())
	}
	n, whole := args[0].integer()
	x, ok := args[0].con.(float64)
	switch {
	case whole && name == "math.Inf":
		return float(math.Inf(int(n)))
	case ok && name == "math.Abs":
		return float(math.Abs(x))
	case ok && name == "math.Sqrt":
		return float(math.Sqrt(x))
	}

	return nil
}

// writeHelpers appends the helper functions in use. They replace builtin functions that compile to
// slow code.
func (s *spec) writeHelpers(b *strings.Builder) {
	for _, h := range []string{"lesser", "greater", "larger", "atMost", "atLeast"} {
		if s.helper[h] {
			b.WriteString(helperTexts[h])
		}
	}
}

// helperTexts are the texts of the helper functions, by name.
var helperTexts = map[string]string{
	"lesser": `// lesser is the builtin min: -0 is less than 0, and NaN if an operand is NaN.
//
//go:nosplit
func lesser(a, b float64) float64 {
	if a < b {
		return a
	}
	if b < a || a == b && a != 0 {
		return b
	}
	return -(-a - b)
}

`,
	"greater": `// greater is the builtin max: 0 is greater than -0, and NaN if an operand is NaN.
//
//go:nosplit
func greater(a, b float64) float64 {
	if a > b {
		return a
	}
	if b > a || a == b && a != 0 {
		return b
	}
	return a + b
}

`,
	"larger": `// larger is the builtin max with a b that is not -0.
//
//go:nosplit
func larger(a, b float64) float64 {
	if a > b {
		return a
	}
	if b >= a {
		return b
	}
	return a + b
}

`,
	"atMost": `// atMost is the builtin min with a bound that is neither -0 nor NaN.
//
//go:nosplit
func atMost(x, bound float64) float64 {
	if x > bound {
		return bound
	}
	return x
}

`,
	"atLeast": `// atLeast is the builtin max with a bound that is neither -0 nor NaN.
//
//go:nosplit
func atLeast(x, bound float64) float64 {
	if x <= bound {
		return bound
	}
	return x
}

`,
}
