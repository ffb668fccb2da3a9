package specialise

import (
	"go/ast"
	"go/types"
	"math"
	"strconv"
	"strings"
)

// value is what is known of an expression of the tick's source: a number, or a text that
// gives it in the generated code; or what the source refers to.
type value struct {
	kind kind
	typ  types.Type

	// A scalar.
	con    any    // float64, int64, uint64, bool or string; nil where it is known in the tick only
	text   string // its expression
	prec   int    // how tightly that binds: token precedence, 6 for a unary, 7 for an operand
	stable bool   // it names what does not change
	plus   bool   // a float64 that is not -0
	nought bool   // 0 times something finite: 0 of either sign
	ranged bool   // it is a loop's index, or that and a constant, in [lo, hi]
	lo, hi int64
	within int // it is an index into an array of this length, as the compiler sees

	at       *place // of a reference: what it points to; of a slice the array below it
	off, len *value // of a slice

	list []*value // of a tuple, of a record its fields
	lit  *ast.FuncLit
	env  *frame
}

type kind uint8

const (
	scalar kind = iota
	ref         // a pointer, or a struct or array where it stands
	slice
	tuple  // an array or slice written down, or several results
	record // a struct written down
	absent // nil
	closure
	lost // a reference that depends on the tick
)

const operand = 7

func constantValue(con any, typ types.Type) *value {
	v := &value{typ: typ, con: con, stable: true, prec: operand, text: literal(con)}
	if f, ok := con.(float64); ok {
		v.plus = !(f == 0 && math.Signbit(f))
	}
	if strings.HasPrefix(v.text, "-") {
		v.prec = 6
	}
	return v
}

func wholeNumber(n int) *value { return constantValue(int64(n), types.Typ[types.Int]) }

func truth(b bool) *value { return constantValue(b, types.Typ[types.Bool]) }

// literal is a constant in Go, that reads back to the same bits.
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
	case int64:
		return strconv.FormatInt(c, 10)
	case uint64:
		if c > 1<<16 {
			return "0x" + strconv.FormatUint(c, 16)
		}
		return strconv.FormatUint(c, 10)
	case bool:
		return strconv.FormatBool(c)
	}
	return strconv.Quote(con.(string))
}

// dynamic is a scalar that the tick computes.
func dynamic(text string, prec int, typ types.Type) *value {
	return &value{typ: typ, text: text, prec: prec}
}

// in is the text of a value as an operand of something that binds with prec.
func (v *value) in(prec int) string {
	if v.prec < prec {
		return "(" + v.text + ")"
	}
	return v.text
}

func (v *value) integer() (int64, bool) {
	switch c := v.con.(type) {
	case int64:
		return c, true
	case uint64:
		return int64(c), true
	}
	return 0, false
}

func (v *value) is(b bool) bool { c, ok := v.con.(bool); return ok && c == b }

// key tells what is known at the time of writing: two values of one key are the same.
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

// typed is a constant that gives a variable declared with it its type.
func (v *value) typed() string {
	if v.con == nil {
		return v.text
	}
	name := goType(v.typ)
	switch v.con.(type) {
	case float64:
		if !strings.ContainsAny(v.text, ".e()") {
			return v.text + ".0"
		}
		return v.text
	case int64, uint64:
		if name != "int" {
			return name + "(" + v.text + ")"
		}
	}
	return v.text
}

// goType is the generated name of a scalar's type.
func goType(t types.Type) string {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return "struct"
	}
	switch b.Kind() {
	case types.UntypedInt, types.UntypedRune:
		return "int"
	case types.UntypedFloat:
		return "float64"
	case types.UntypedBool:
		return "bool"
	case types.Byte:
		return "uint8"
	}
	return b.Name()
}
