// Package law owns the laws of elements as expressions: a formula as in a textbook becomes the
// operations of a law, the event indicators of its corners and bounds of its slopes.
//
// An element gives a formula and the quantities in it; nobody writes operations, indicators or slopes
// by hand. The package does not know element types or plant files.
//
// Reading order: expr.go (expressions), formula.go (their text), compile.go (operations and event
// indicators), span.go (interval arithmetic), slope.go (bounds of slopes).
package law

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"

	"lockstep/model"
	"lockstep/model/network"
)

// Expr is an expression: a number, a quantity of the plant, or an operation on expressions. It never
// changes.
type Expr struct {
	op     operation
	value  float64            // of a number
	form   network.Form       // of a quantity
	table  model.Table        // of a table
	args   []*Expr            // operands
	bounds span               // values in operation; the whole line if they are not declared
	names  map[string]float64 // numbers of the formula by name, for errors
	swings *oscillation       // nil: none
	bound  []declaredSlope
	plain  bool    // no event indicators for its corners
	events []*Expr // further event indicators: the sign of each
}

// operation is the kind of an expression.
type operation int

const (
	number operation = iota
	quantity
	add
	sub
	mul
	div
	neg
	abs
	sign
	minimum
	maximum
	sqrt
	exp
	atan
	sin
	cos
	lookup  // value of the table at one operand
	lookup2 // value of the table at row and column
	choose  // the second operand where the first is positive or 0, otherwise the third
	latch   // +1 or -1
)

// Of returns a quantity of the plant.
func Of(f network.Form) *Expr { return &Expr{op: quantity, form: f, bounds: everything} }

// Number returns a number.
func Number(v float64) *Expr { return &Expr{op: number, value: v, bounds: everything} }

// Within declares that x lies between low and high in operation. The bounds of slopes hold there;
// beyond, the value is right, but the step may be too long for it.
func (x *Expr) Within(low, high float64) *Expr {
	y := *x
	y.bounds = span{low, high}
	return &y
}

// declaredSlope is a bound of the slope along a quantity.
type declaredSlope struct {
	along    network.Form
	bound    float64
	combined bool
}

// WithSlope declares a bound of the slope of x along a quantity, where interval arithmetic finds none
// or a much larger one.
func (x *Expr) WithSlope(along network.Form, bound float64) *Expr {
	y := *x
	y.bound = append(slices.Clone(x.bound), declaredSlope{along, math.Abs(bound), false})
	return &y
}

// WithCombinedSlope declares the slope that x has along a quantity together with the other laws of
// its element. Alone x may be steeper: where it is, they are flatter.
func (x *Expr) WithCombinedSlope(along network.Form, bound float64) *Expr {
	y := x.WithSlope(along, bound)
	y.bound[len(y.bound)-1].combined = true
	return y
}

// declared returns the declared bound of the slope along a quantity.
func (x *Expr) declared(along network.Form) (d declaredSlope, ok bool) {
	i := slices.IndexFunc(x.bound, func(d declaredSlope) bool { return reflect.DeepEqual(d.along, along) })
	if i < 0 {
		return declaredSlope{}, false
	}
	return x.bound[i], true
}

// Plain returns x without event indicators for the corners of its last operation: for a corner at an
// event of another kind, or where rounding decides on the side.
func (x *Expr) Plain() *Expr {
	y := *x
	y.plain = true
	return &y
}

// WithEvent ends a substep also where the sign of another expression changes: at a corner of x that
// is Plain.
func (x *Expr) WithEvent(sign *Expr) *Expr {
	y := *x
	y.events = append(slices.Clone(x.events), sign)
	return &y
}

// oscillation is a network.Oscillation before it is compiled.
type oscillation struct {
	rate    network.Form
	fastest float64
}

// WithOscillation declares that x oscillates with up to fastest, rad/s, while the quantity that has
// this rate grows.
func (x *Expr) WithOscillation(rate network.Form, fastest float64) *Expr {
	y := *x
	y.swings = &oscillation{rate, fastest}
	return &y
}

// Power returns the power of a torque at a speed. It has no slopes: it is read as a signal, or warms a
// heat capacity slowly.
func Power(tau, w network.Form) *Expr {
	return apply(mul, Of(tau), Of(w)).WithoutSlopes()
}

// WithoutSlopes returns x without slopes along its quantities: for a value that is read as a signal, or acts slowly.
func (x *Expr) WithoutSlopes() *Expr {
	for _, f := range newGraph(x, func(network.Form) span { return everything }).leaves {
		x = x.WithCombinedSlope(f, 0)
	}
	return x
}

// Lookup returns the value of a table of one variable at x.
func Lookup(t model.Table, x *Expr) *Expr {
	if len(t.X) == 1 {
		return Number(t.Z[0])
	}
	return &Expr{op: lookup, table: t, args: []*Expr{x}, bounds: everything}
}

// isNumber reports whether x is the number v.
func (x *Expr) isNumber(v float64) bool { return x.op == number && x.value == v }

// apply returns an operation on operands. Operations on numbers alone become numbers, and those
// without an effect are left out.
func apply(op operation, args ...*Expr) *Expr {
	numbers := true
	for _, a := range args {
		numbers = numbers && a.op == number
	}
	if numbers && op < lookup {
		return Number(evaluate(op, args))
	}

	a := args[0]
	var b *Expr
	if len(args) > 1 {
		b = args[1]
	}
	switch {
	case op == div && b.isNumber(0): // by a number that is too small; Compile refuses it
		return Number(math.NaN())
	case op == add && a.isNumber(0), op == mul && a.isNumber(1), op == mul && b.isNumber(0):
		return b
	case (op == add || op == sub) && b.isNumber(0), (op == mul || op == div) && b.isNumber(1), op == mul && a.isNumber(0):
		return a
	case op == sub && a.isNumber(0), op == mul && a.isNumber(-1):
		return apply(neg, b)
	case op == neg && a.op == neg:
		return a.args[0]
	}
	return &Expr{op: op, args: args, bounds: everything}
}

// evaluate returns the value of an operation on numbers; a quotient by 0 is not finite.
func evaluate(op operation, args []*Expr) float64 {
	v := point(args[0].value)
	w := v
	if len(args) > 1 {
		w = point(args[1].value)
	}
	if op == div {
		return v.low / w.low
	}
	return values(op, v, w).low
}

// linear returns x as a linear form; ok is false if x is not linear.
func (x *Expr) linear() (f network.Form, ok bool) {
	switch x.op {
	case number:
		if x.value == 0 {
			return nil, true
		}
		return network.One(x.value), true
	case quantity:
		return x.form, true
	case neg:
		f, ok = x.args[0].linear()
		return f.Scaled(-1), ok
	case add, sub:
		f, ok = x.args[0].linear()
		g, also := x.args[1].linear()
		if x.op == sub {
			g = g.Scaled(-1)
		}
		return f.Plus(g), ok && also
	case div:
		if d := x.args[1]; d.op == number && d.value != 0 {
			f, ok = x.args[0].linear()
			return f.Scaled(1 / d.value), ok
		}
	case mul:
		for i, a := range x.args {
			if a.op == number {
				f, ok = x.args[1-i].linear()
				return f.Scaled(a.value), ok
			}
		}
	}
	return nil, false
}

// extremes returns the names of the numbers in x, those of the most extreme size first.
func (x *Expr) extremes() []string {
	size := func(name string) float64 { return math.Abs(math.Log(math.Abs(x.names[name]))) }
	return slices.SortedStableFunc(maps.Keys(x.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a, b))
	})
}
