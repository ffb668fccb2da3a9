package law

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"

	"lockstep/model"
	"lockstep/model/network"
)

// graph is an expression as a list of nodes, operands first. A node that is used twice appears once.
type graph struct {
	nodes  []node
	leaves []network.Form // quantities
	ranges []span         // of the leaves
	given  []bool         // leaves: the range is declared
}

// node is an expression with the indices of its operands; leaf is its index among the leaves.
type node struct {
	*Expr
	args [3]int
	leaf int
}

// newGraph returns the graph of x; rangeOf returns the range of a quantity.
func newGraph(x *Expr, rangeOf func(network.Form) span) *graph {
	g, seen := new(graph), map[*Expr]int{}
	var visit func(x *Expr) int
	visit = func(x *Expr) int {
		if i, ok := seen[x]; ok {
			return i
		}
		n := node{Expr: x, leaf: -1}
		for i, a := range x.args {
			n.args[i] = visit(a)
		}
		if x.op == quantity {
			n.leaf = g.leafOf(x, rangeOf)
		}
		g.nodes = append(g.nodes, n)
		seen[x] = len(g.nodes) - 1
		return seen[x]
	}
	visit(x)
	return g
}

// leafOf returns the index of a quantity.
func (g *graph) leafOf(x *Expr, rangeOf func(network.Form) span) int {
	for i, f := range g.leaves {
		if reflect.DeepEqual(f, x.form) {
			g.ranges[i] = g.ranges[i].inside(x.bounds)
			return i
		}
	}
	g.leaves = append(g.leaves, x.form)
	given := x.bounds != everything
	if g.given = append(g.given, given); given {
		g.ranges = append(g.ranges, x.bounds)
	} else {
		g.ranges = append(g.ranges, rangeOf(x.form).inside(x.bounds))
	}
	return len(g.leaves) - 1
}

// over returns the values of the expression for quantities in box, and its slopes along one of them.
// ok is false if a declared range does not allow the box.
func (g *graph) over(box []span, along int, v, d []span) (value, slope span, ok bool) {
	for i := range g.nodes {
		n := &g.nodes[i]
		a, b := v[n.args[0]], v[n.args[1]]
		da, db := d[n.args[0]], d[n.args[1]]
		v[i], d[i] = n.values(box, v, a, b), point(0)
		if v[i] = v[i].inside(n.bounds); v[i].low > v[i].high {
			return span{}, span{}, false
		}
		switch n.op {
		case number, latch:
		case quantity:
			if n.leaf == along {
				d[i] = point(1)
			}
		case lookup:
			_, by := tableValues(&n.table, a)
			d[i] = by.times(da)
		case lookup2:
			_, byRow, byColumn := mapValues(&n.table, a, b)
			d[i] = byRow.times(da).plus(byColumn.times(db))
		case choose:
			d[i] = chosen(a, db, d[n.args[2]])
		default:
			d[i] = slopes(n.op, a, b, da, db, v[i])
		}
	}

	last := len(g.nodes) - 1
	return v[last], d[last], true
}

// Bounds returns bounds of the values of x where its quantities have the ranges that Within declares.
func (x *Expr) Bounds() (low, high float64) {
	g := newGraph(x, func(network.Form) span { return everything })
	v, _, _ := g.over(g.ranges, -1, make([]span, len(g.nodes)), make([]span, len(g.nodes)))
	return v.low, v.high
}

// values returns the values of a node in a box; v are those of all nodes before it, a and b those of
// its operands.
func (n *node) values(box, v []span, a, b span) span {
	switch n.op {
	case number:
		return point(n.value)
	case quantity:
		return box[n.leaf]
	case lookup:
		at, _ := tableValues(&n.table, a)
		return at
	case lookup2:
		at, _, _ := mapValues(&n.table, a, b)
		return at
	case choose:
		return chosen(a, b, v[n.args[2]])
	case latch:
		return span{-1, 1}
	}
	return values(n.op, a, b)
}

// chosen returns what where(c, a, b) gives.
func chosen(c, a, b span) span {
	switch {
	case c.low >= 0:
		return a
	case c.high < 0:
		return b
	}
	return a.with(b)
}

// at returns the value for values of the quantities, and whether all of it lies in the declared
// ranges.
func (g *graph) at(leaves []float64) (value float64, holds bool) {
	holds = true
	v := make([]float64, len(g.nodes))
	for i := range g.nodes {
		n := &g.nodes[i]
		a, b := v[n.args[0]], v[n.args[1]]
		switch n.op {
		case number:
			v[i] = n.value
		case quantity:
			v[i] = leaves[n.leaf]
		case lookup:
			v[i] = tableAt(&n.table, a)
		case lookup2:
			v[i] = tableAt(&model.Table{X: n.table.X, Z: n.table.Column(b).Z}, a)
		case choose:
			if v[i] = b; a < 0 {
				v[i] = v[n.args[2]]
			}
		case latch:
			v[i] = math.Copysign(1, a)
		default:
			v[i] = values(n.op, point(a), point(b)).low
		}
		holds = holds && v[i] >= n.bounds.low && v[i] <= n.bounds.high
	}
	return v[len(v)-1], holds
}

// key holds all that steepest reads for a quantity: equal keys have equal bounds. The names of the
// quantities are not part of it.
func (g *graph) key(along int) string {
	key := binary.AppendVarint(nil, int64(along))
	whole := func(v int) { key = binary.AppendVarint(key, int64(v)) }
	numbers := func(list ...float64) {
		whole(len(list))
		for _, v := range list {
			key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
		}
	}
	for _, r := range g.ranges {
		numbers(r.low, r.high)
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		whole(int(n.op))
		for _, a := range n.args {
			whole(a)
		}
		whole(n.leaf)
		numbers(n.value, n.bounds.low, n.bounds.high)
		numbers(n.table.X...)
		numbers(n.table.Y...)
		numbers(n.table.Z...)
		if n.table.Extend {
			whole(1)
		} else {
			whole(0)
		}
	}
	return string(key)
}

// Of the search for the largest slope:
const (
	maxBoxes   = 1000  // boxes examined
	slopeSlack = 1.002 // bound over the largest slope found at which the search ends
)

// box is a part of the ranges of the quantities with a bound of the slope in it; a negative one if a
// declared range excludes it.
type box struct {
	ranges []span
	bound  float64
}

// steepest returns a bound of the absolute slope along a quantity over the ranges of all: interval
// arithmetic over boxes. The box with the largest bound is halved until the bound is close to a slope
// that occurs (Moore, Methods and applications of interval analysis, 1979).
func (g *graph) steepest(along int) float64 {
	v, d := make([]span, len(g.nodes)), make([]span, len(g.nodes))
	examine := func(ranges []span) box {
		if _, s, ok := g.over(ranges, along, v, d); ok {
			return box{ranges, s.size()}
		}
		return box{ranges, -1}
	}
	found := 0.0
	boxes := []box{examine(g.ranges)}
	for {
		worst := 0
		for i, b := range boxes {
			if !(b.bound <= boxes[worst].bound) {
				worst = i
			}
		}
		b := boxes[worst]
		found = max(found, g.slopeInside(b.ranges, along, v, d))
		if b.bound <= found*slopeSlack || len(boxes) >= maxBoxes {
			return max(b.bound, 0)
		}
		first, second, ok := halve(b.ranges, g.ranges, examine)
		if !ok {
			return b.bound
		}
		boxes[worst] = first
		boxes = append(boxes, second)
	}
}

// slopeInside returns a slope that occurs in the middle of the ranges.
func (g *graph) slopeInside(ranges []span, along int, v, d []span) float64 {
	at := make([]span, len(ranges))
	for i, r := range ranges {
		at[i] = point(middle(r))
	}
	if _, s, ok := g.over(at, along, v, d); ok && s.low*s.high > 0 {
		return min(math.Abs(s.low), math.Abs(s.high))
	}
	return 0
}

// halve halves the ranges along the quantity for which the bounds of the halves become smallest, among
// equals along the one whose range is the largest part of its whole.
func halve(ranges, whole []span, examine func([]span) box) (first, second box, ok bool) {
	most := 0.0
	for side, r := range ranges {
		at := middle(r)
		if !(at > r.low && at < r.high) {
			continue
		}
		part := (r.high - r.low) / (whole[side].high - whole[side].low)
		if math.IsNaN(part) {
			part = 1
		}
		lower, upper := slices.Clone(ranges), slices.Clone(ranges)
		lower[side].high, upper[side].low = at, at
		a, b := examine(lower), examine(upper)
		now, before := a.bound+b.bound, first.bound+second.bound
		if !ok || now < before || !(before < now) && part > most {
			first, second, most, ok = a, b, part, true
		}
	}
	return first, second, ok
}

// middle returns a value inside a span: the centre, 0 of the whole line, and twice a finite end (at
// least 1 farther) beyond it.
func middle(r span) float64 {
	switch {
	case math.IsInf(r.low, 0) && math.IsInf(r.high, 0):
		return 0
	case math.IsInf(r.high, 0):
		return r.low + max(1, math.Abs(r.low))
	case math.IsInf(r.low, 0):
		return r.high - max(1, math.Abs(r.high))
	}
	return r.low + (r.high-r.low)/2
}
