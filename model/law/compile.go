package law

import (
	"math"
	"reflect"
	"slices"

	"lockstep/model"
	"lockstep/model/network"
)

// Owner is the element that a law belongs to, in errors and event logs.
type Owner struct {
	Name string
	At   network.Pos
}

// Compiler compiles the laws of a plant. Elements with equal numbers have equal slopes, which it computes
// once.
type Compiler struct {
	Plant  *network.Plant
	slopes map[string]float64 // results of steepest by the key of the search
}

// Compile returns a law with the value x: its operations, its event indicators, which it adds to the
// plant, and bounds of its slopes. It returns an error where a number or a slope is not finite.
func (s *Compiler) Compile(owner Owner, x *Expr) (*network.Law, error) {
	if s.slopes == nil {
		s.slopes = map[string]float64{}
	}
	c := compiler{Plant: s.Plant, owner: owner, numbers: x, known: s.slopes}
	g := newGraph(x, c.rangeOf)
	if err := c.checkNumbers(g); err != nil {
		return nil, err
	}
	c.joinTables(g)
	l := &network.Law{Args: slices.Clone(g.leaves), At: g.at}
	c.emit(l, x)
	for _, e := range x.events {
		c.condition(e)
	}
	l.Slopes, l.Sized = c.slopes(x, g), c.sized(x, g)
	value, _, _ := g.over(g.ranges, -1, make([]span, len(g.nodes)), make([]span, len(g.nodes)))
	if size := max(math.Abs(value.low), math.Abs(value.high)); size < math.Inf(1) {
		l.Size = size
	}
	for i, f := range g.leaves {
		if slope := l.Slopes[i]; math.IsNaN(slope) || math.IsInf(slope, 0) {
			return nil, c.refuseSlope()
		}
		d, _ := x.declared(f)
		l.Ranges = append(l.Ranges, network.Range{Low: g.ranges[i].low, High: g.ranges[i].high})
		l.Combined = append(l.Combined, d.combined)
	}
	if s := x.swings; s != nil {
		rate := slices.IndexFunc(l.Args, func(f network.Form) bool { return reflect.DeepEqual(f, s.rate) })
		if rate < 0 {
			rate = len(l.Args)
			l.Args, l.Slopes = append(l.Args, s.rate), append(l.Slopes, 0)
			l.Ranges = append(l.Ranges, network.Range{Low: math.Inf(-1), High: math.Inf(1)})
			l.Combined = append(l.Combined, true)
		}
		l.Swings = &network.Oscillation{Rate: rate, Fastest: s.fastest}
	}
	return l, nil
}

// Sampled returns the program of x for a sample, which has no event indicators: at a tick nothing passes a corner.
// It has no slopes. x has no latch.
func Sampled(x *Expr) network.Law {
	g := newGraph(x, func(network.Form) span { return everything })
	l := network.Law{Args: g.leaves, Slopes: make([]float64, len(g.leaves))}
	c := compiler{sampled: true}
	c.emit(&l, x)
	return l
}

type compiler struct {
	*network.Plant
	sampled bool // no event indicators
	owner   Owner
	numbers *Expr               // holds the named numbers
	borders map[*Expr][]float64 // breakpoints of all tables that are read at an expression
	known   map[string]float64  // results of steepest, of all laws of the plant
}

// joinTables gives tables that are read at one expression the breakpoints of all of them, so that they
// share an event indicator.
func (c *compiler) joinTables(g *graph) {
	c.borders = map[*Expr][]float64{}
	for _, n := range g.nodes {
		if n.op == lookup && !n.plain {
			at := n.Expr.args[0]
			c.borders[at] = append(c.borders[at], straight(n.table).Breakpoints()...)
			slices.Sort(c.borders[at])
			c.borders[at] = slices.Compact(c.borders[at])
		}
	}
}

// checkNumbers refuses numbers that are not finite, such as a quotient by a square of 1e-200.
func (c *compiler) checkNumbers(g *graph) error {
	for _, n := range g.nodes {
		if n.op == number && (math.IsNaN(n.value) || math.IsInf(n.value, 0)) {
			return c.refuseSlope()
		}
	}
	return nil
}

// SlopeError reports a law without a finite slope. Names are its numbers, those of the most extreme
// size first.
type SlopeError struct{ Names []string }

func (e *SlopeError) Error() string {
	return "its law is infinitely steep; is the size of a parameter right?"
}

func (c *compiler) refuseSlope() error { return &SlopeError{c.numbers.extremes()} }

// rangeOf returns the range of a quantity: that of its signals, everything for a speed or a state. A
// signal without a known range has its expected size.
func (c *compiler) rangeOf(f network.Form) span {
	r := point(0)
	for _, m := range f {
		var of span
		switch m.Kind {
		case network.OfOne:
			of = point(1)
		case network.OfSignal:
			low, high := c.Range(m.Index)
			if of = (span{low, high}); !(low <= high) || math.IsInf(low, 0) || math.IsInf(high, 0) {
				most := c.MaxAbs(m.Index)
				of = span{-most, most}
			}
		case network.OfSpeed, network.OfState, network.OfAccel:
			of = everything
		default: // a torque
			of = span{-1, 1}
		}
		r = r.plus(of.times(point(m.Coef)))
	}
	return r
}

// sizeUnknown reports whether a quantity holds a signal or a torque without a known range.
func (c *compiler) sizeUnknown(f network.Form) bool {
	return slices.ContainsFunc(f, func(m network.Measure) bool {
		switch m.Kind {
		case network.OfOne, network.OfSpeed, network.OfState, network.OfAccel:
			return false
		case network.OfSignal:
			low, high := c.Range(m.Index)
			return !(low <= high) || math.IsInf(low, 0) || math.IsInf(high, 0)
		}
		return true
	})
}

// slopes returns bounds of the slopes of x along its quantities, declared or computed.
func (c *compiler) slopes(x *Expr, g *graph) (list []float64) {
	for i, f := range g.leaves {
		if d, ok := x.declared(f); ok {
			list = append(list, d.bound)
			continue
		}
		key := g.key(i)
		slope, ok := c.known[key]
		if !ok {
			slope = g.steepest(i)
			c.known[key] = slope
		}
		list = append(list, slope)
	}
	return list
}

// sized returns network.Law.Sized of x.
func (c *compiler) sized(x *Expr, g *graph) func(args []float64) []float64 {
	unsized := make([]bool, len(g.leaves))
	for i, f := range g.leaves {
		unsized[i] = !g.given[i] && c.sizeUnknown(f)
	}
	if !slices.Contains(unsized, true) {
		return nil
	}
	return func(args []float64) []float64 {
		at := *g
		at.ranges = slices.Clone(g.ranges)
		for i, is := range unsized {
			if size := math.Abs(args[i]); is && !math.IsInf(size, 0) {
				at.ranges[i] = at.ranges[i].with(span{-size, size})
			}
		}
		return c.slopes(x, &at)
	}
}

// codes are the operations of a program for those of an expression.
var codes = map[operation]model.Code{
	add: model.Add, sub: model.Sub, mul: model.Mul, div: model.Div, neg: model.Neg, abs: model.Abs, sign: model.Sign,
	minimum: model.Min, maximum: model.Max, sqrt: model.Sqrt, exp: model.Exp, atan: model.Atan, sin: model.Sin,
	cos: model.Cos, lookup: model.Look, lookup2: model.Look2, choose: model.Choose,
}

// emit appends the operations of x. A corner that x can pass becomes a choice by an event indicator,
// so that a law is smooth within a substep. A corner outside of the declared ranges keeps its plain
// operation.
func (c *compiler) emit(l *network.Law, x *Expr) {
	push := func(code model.Code, index int) { l.Ops = append(l.Ops, model.Op{Code: code, Index: index}) }
	operands := func() {
		for _, a := range x.args {
			c.emit(l, a)
		}
	}
	op := x.op
	corner := op == abs || op == sign || op == minimum || op == maximum
	if corner && (x.plain || c.sampled) || op == choose && c.sampled {
		operands()
		push(codes[op], 0)
		return
	}
	switch op {
	case number:
		l.Ops = append(l.Ops, model.Op{Code: model.Push, Value: x.value})
		return
	case quantity:
		push(model.Arg, slices.IndexFunc(l.Args, func(f network.Form) bool { return reflect.DeepEqual(f, x.form) }))
		return
	case abs, sign:
		if g, ok := c.corner(x.args[0]); ok {
			if x.op == abs {
				c.emit(l, x.args[0])
			}
			push(model.Side, g)
			if x.op == abs {
				push(model.Mul, 0)
			}
			return
		}
	case maximum, minimum:
		first, second := x.args[0], x.args[1]
		if first.op == number { // so that limits of one expression share an indicator
			first, second = second, first
		}
		if g, ok := c.corner(apply(sub, first, second)); ok {
			if x.op == minimum {
				first, second = second, first
			}
			c.emit(l, first)
			c.emit(l, second)
			push(model.If, g)
			return
		}
	case choose:
		c.emit(l, x.args[1])
		c.emit(l, x.args[2])
		push(model.If, c.condition(x.args[0]))
		return
	case latch:
		push(model.Side, c.latch(x))
		return
	case lookup:
		operands()
		if borders := c.borders[x.args[0]]; !x.plain && !c.sampled && c.passes(x.args[0], borders) {
			push(model.Side, c.indicator(x.args[0], borders))
			push(model.Line, c.table(l, withPoints(straight(x.table), borders)))
		} else {
			push(model.Look, c.table(l, x.table))
		}
		return
	case lookup2:
		table := widened(x.table)
		c.emit(l, x.args[0])
		push(model.Side, c.indicator(x.args[0], table.X[1:len(table.X)-1]))
		c.emit(l, x.args[1])
		push(model.Side, c.indicator(x.args[1], table.Y[1:len(table.Y)-1]))
		push(model.Patch, c.table(l, table))
		return
	}
	operands()
	push(codes[x.op], 0)
}

// table returns the index of a table of the law.
func (c *compiler) table(l *network.Law, t model.Table) int {
	for i := range l.Tables {
		if reflect.DeepEqual(l.Tables[i], t) {
			return i
		}
	}
	return network.Add(&l.Tables, t)
}

// corner returns the event indicator of the sign of x; ok is false if x keeps its sign over the
// declared ranges.
func (c *compiler) corner(x *Expr) (g int, ok bool) {
	if !c.passes(x, []float64{0}) {
		return 0, false
	}
	return c.indicator(x, nil), true
}

// passes reports whether x can pass one of the values over the known and declared ranges.
func (c *compiler) passes(x *Expr, at []float64) bool {
	g := newGraph(x, func(f network.Form) span {
		if c.sizeUnknown(f) {
			return everything
		}
		return c.rangeOf(f)
	})
	v, _, ok := g.over(g.ranges, -1, make([]span, len(g.nodes)), make([]span, len(g.nodes)))
	return ok && slices.ContainsFunc(at, func(b float64) bool { return !(v.low >= b || v.high <= b) })
}

// indicator returns the event indicator of the value x: its sign, or between which of the borders it
// lies. Laws of one element share it.
func (c *compiler) indicator(x *Expr, borders []float64) int {
	var l network.Law
	if f, ok := x.linear(); ok {
		x = Of(f)
	}
	l.Args = newGraph(x, c.rangeOf).leaves
	c.emit(&l, x)
	l.Borders = borders
	for i, g := range c.Indicators {
		if g.Name == c.owner.Name && reflect.DeepEqual(g.Law, l) {
			return i
		}
	}
	return network.Add(&c.Indicators, network.Indicator{Name: c.owner.Name, At: c.owner.At, Law: l})
}

// condition returns the event indicator of the sign of a condition.
func (c *compiler) condition(x *Expr) int {
	if x.op == latch {
		return c.latch(x)
	}
	return c.indicator(x, nil)
}

// latch returns the event indicator of a latch: its value reads its own side.
func (c *compiler) latch(x *Expr) int {
	var l network.Law
	l.Args = newGraph(x, c.rangeOf).leaves
	c.emit(&l, x.args[0])
	c.emit(&l, x.args[1])
	program := func(own int) network.Law {
		p := l
		p.Ops = append(slices.Clone(l.Ops), model.Op{Code: model.Side, Index: own}, model.Op{Code: model.Mul},
			model.Op{Code: model.Add})
		return p
	}
	for i, g := range c.Indicators {
		if g.Name == c.owner.Name && reflect.DeepEqual(g.Law, program(i)) {
			return i
		}
	}
	own := network.Indicator{Name: c.owner.Name, At: c.owner.At, Law: program(len(c.Indicators))}
	return network.Add(&c.Indicators, own)
}

// straight returns a table of one variable that continues its outermost lines.
func straight(t model.Table) model.Table {
	if t.Extend {
		return t
	}
	n := len(t.X) - 1
	return model.Table{Extend: true, X: padded(t.X), Z: slices.Concat(t.Z[:1], t.Z, t.Z[n:])}
}

// nearEnd is the share of the width of a table within which a point takes the place of its end: rounding would set the slope
// of a shorter line.
const nearEnd = 1e-6

// withPoints returns a straight table whose inner points are those given; it has no breakpoint beside
// them. Its outermost points are those of t, or as far beyond as t is wide: a point far away would take digits.
func withPoints(t model.Table, points []float64) model.Table {
	first, last := t.X[0], t.X[len(t.X)-1]
	wide := last - first
	if low := points[0]; !(low-first > nearEnd*wide) {
		first = low - wide
	}
	if high := points[len(points)-1]; !(last-high > nearEnd*wide) {
		last = high + wide
	}
	with := model.Table{Extend: true, X: slices.Concat([]float64{first}, points, []float64{last})}
	for _, at := range with.X {
		with.Z = append(with.Z, tableAt(&t, at))
	}
	return with
}

// padded returns points with one more beyond both ends.
func padded(x []float64) []float64 {
	first, last := x[0], x[len(x)-1]
	return slices.Concat([]float64{first - max(1, math.Abs(first))}, x, []float64{last + max(1, math.Abs(last))})
}

// widened returns a table of two variables with constant rows and columns beyond its ends.
func widened(t model.Table) model.Table {
	w := model.Table{X: padded(t.X), Y: padded(t.Y)}
	for i := range w.X {
		for j := range w.Y {
			row, column := min(max(i-1, 0), len(t.X)-1), min(max(j-1, 0), len(t.Y)-1)
			w.Z = append(w.Z, t.Z[row*len(t.Y)+column])
		}
	}
	return w
}
