package specialise

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// value is what is known about an expression of the tick's source: a number, text that computes it
// in the generated code, or a reference.
type value struct {
	kind kind
	typ  types.Type

	// A scalar.
	con         any    // float64, int64, uint64, bool or string; nil: known in the tick only
	text        string // expression in the generated code
	prec        int    // precedence of the expression: a token's, 6 for a unary, 7 for an operand
	stable      bool   // the expression names a value that does not change
	notNegZero  bool   // the value is a float64 and not -0
	zeroProduct bool   // 0 times a finite value: 0 of either sign
	ranged      bool   // the value is a loop's index, possibly plus a constant, in [lo, hi]
	lo, hi      int64
	counter     *value // variable that counts from 0; the value is its sum with shift
	shift       int64
	bound       int // length of the array that the value indexes, as the compiler sees it

	at       *place // of a reference: its target; of a slice: the array below it
	off, len *value // of a slice

	list []*value // elements of a tuple, fields of a record
	lit  *ast.FuncLit
}

// kind is the form of a value.
type kind uint8

const (
	scalar kind = iota
	ref         // pointer, or a struct or array in place
	slice
	tuple  // array or slice literal, or several results
	record // struct literal
	absent // nil
	closure
	lost // reference that depends on the tick
)

// operand is the precedence of an expression that needs no parentheses.
const operand = 7

// constantValue returns a constant converted to a type. nil stands for an element out of range and
// gives 0.
func constantValue(con any, typ types.Type) *value {
	if con == nil {
		return zeroOf(typ)
	}
	con = wrapped(con, typ)
	v := &value{typ: typ, con: con, stable: true, prec: operand, text: literal(con)}
	if f, ok := con.(float64); ok {
		v.notNegZero = !(f == 0 && math.Signbit(f))
	}
	if strings.HasPrefix(v.text, "-") {
		v.prec = 6
	}
	return v
}

// sizes are the sizes of types on the machines that run a tick.
var sizes = types.SizesFor("gc", "amd64")

// wrapped returns an integer wrapped around to the bits of type t; other constants are unchanged.
func wrapped(con any, t types.Type) any {
	b, basic := t.Underlying().(*types.Basic)
	n, whole := (&value{con: con}).integer()
	if !basic || !whole {
		return con
	}
	unused := 64 - 8*sizes.Sizeof(types.Default(b))
	if b.Info()&types.IsUnsigned != 0 {
		return uint64(n) << unused >> unused
	}
	return n << unused >> unused
}

// wholeNumber returns the constant n of type int.
func wholeNumber(n int) *value { return constantValue(int64(n), types.Typ[types.Int]) }

// truth returns the constant b.
func truth(b bool) *value { return constantValue(b, types.Typ[types.Bool]) }

// constantOf returns a constant of the source as the tick holds it.
func constantOf(c constant.Value, t types.Type) *value {
	switch {
	case isFloat(t):
		x, _ := constant.Float64Val(constant.ToFloat(c))
		return constantValue(x, t)
	case c.Kind() == constant.Bool:
		return constantValue(constant.BoolVal(c), t)
	case c.Kind() == constant.String:
		return constantValue(constant.StringVal(c), t)
	}

	if n, ok := constant.Uint64Val(constant.ToInt(c)); ok {
		return constantValue(n, t)
	}
	n, _ := constant.Int64Val(constant.ToInt(c))
	return constantValue(n, t)
}

// zeroOf returns the zero value of a type.
func zeroOf(t types.Type) *value {
	if st, ok := t.Underlying().(*types.Struct); ok {
		out := &value{kind: record, typ: t}
		for f := range st.Fields() {
			out.list = append(out.list, zeroOf(f.Type()))
		}
		return out
	}

	if form := formOf(t); form != nil {
		return constantValue(plain(reflect.Zero(form)), t)
	}
	return &value{kind: absent, typ: t}
}

// formOf returns the type in which constants of a type are held; nil where the type has none.
func formOf(t types.Type) reflect.Type {
	switch {
	case isFloat(t):
		return reflect.TypeFor[float64]()
	case isOf(t, types.IsUnsigned):
		return reflect.TypeFor[uint64]()
	case isOf(t, types.IsInteger):
		return reflect.TypeFor[int64]()
	case isOf(t, types.IsBoolean):
		return reflect.TypeFor[bool]()
	}

	return nil
}

// plain returns a Go value in the type of value.con: float64, int64, uint64, bool or string.
func plain(v reflect.Value) any {
	switch {
	case v.CanFloat():
		return v.Float()
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}

	return v.String()
}

// literal returns a constant as a Go expression with the same bits.
func literal(con any) string {
	switch c := con.(type) {
	case float64:
		switch {
		case math.IsInf(c, 1):
			return "math.Inf(1)"
		case math.IsInf(c, -1):
			return "math.Inf(-1)"
		case math.IsNaN(c):
			return "math.NaN()"
		case c == 0 && math.Signbit(c):
			return "math.Copysign(0, -1)"
		}

		return strconv.FormatFloat(c, 'g', -1, 64)
	case uint64:
		if c > 1<<16 {
			return "0x" + strconv.FormatUint(c, 16)
		}
	case string:
		return strconv.Quote(c)
	}

	return fmt.Sprint(con)
}

// dynamic returns a scalar that the tick computes.
func dynamic(text string, prec int, typ types.Type) *value {
	return &value{typ: typ, text: text, prec: prec}
}

// in returns the text of a value as an operand of an operator of precedence prec.
func (v *value) in(prec int) string {
	if v.prec < prec {
		return "(" + v.text + ")"
	}
	return v.text
}

// integer returns the value of an integer constant.
func (v *value) integer() (int64, bool) {
	switch c := v.con.(type) {
	case int64:
		return c, true
	case uint64:
		return int64(c), true
	}

	return 0, false
}

// within reports whether a loop's index is always in [0, n).
func (v *value) within(n int) bool { return v.ranged && v.lo >= 0 && v.hi < int64(n) }

// masked returns the index modulo the smallest power of two that is at least n.
func (v *value) masked(n int) *value {
	return arith(token.AND, v, constantValue(int64(powerOfTwo(n)-1), v.typ))
}

// is reports whether the value is the constant b.
func (v *value) is(b bool) bool { c, ok := v.con.(bool); return ok && c == b }

// key returns a text that identifies what is known of a value: two values with one key are equal.
func (v *value) key() string {
	switch v.kind {
	case scalar:
		if f, ok := v.con.(float64); ok {
			return strconv.FormatFloat(f, 'x', -1, 64)
		}
		return v.text
	case ref:
		return "&" + v.at.text + v.at.sub
	case slice:
		return v.at.text + v.at.sub + "[" + v.off.key() + "+" + v.len.key() + "]"
	case absent:
		return "nil"
	case tuple, record:
		var keys []string
		for _, f := range v.list {
			keys = append(keys, f.key())
		}
		return "{" + strings.Join(keys, ",") + "}"
	}

	return "func"
}

// typed returns a constant as text that gives its type to a variable declared with it.
func (v *value) typed() string {
	switch v.con.(type) {
	case float64:
		if !strings.ContainsAny(v.text, ".e()") {
			return v.text + ".0"
		}
	case int64, uint64:
		if name := goType(v.typ); name != "int" {
			return name + "(" + v.text + ")"
		}
	}

	return v.text
}

// goType returns the generated name of a scalar's type.
func goType(t types.Type) string {
	return types.Typ[types.Default(t).Underlying().(*types.Basic).Kind()].Name()
}
