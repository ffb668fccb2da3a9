package model

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

func constant(v float64) Source { return Source{T: []float64{0}, V: []float64{v}} }

// course is a value over time while it is read: a sum of products of factors.
type course [][]factor

// factor is a source, or a signal of the plant.
type factor struct {
	leaf   Source
	signal int // -1: leaf counts
}

func single(s Source) course { return course{{{s, -1}}} }

// Bounds of a sum of products.
const (
	maxTerms   = 64
	maxFactors = 8
	maxUnroll  = 1000 // periods of a pulse that ends
)

// courseKeys are the ways to write a value over time.
var courseKeys = []string{"constant", "table", "step", "ramp", "sine", "pulse", "trapezoid", "sum", "product"}

// course reads a value over time. With named, names of inputs and of signals of
// elements are accepted.
func (l *loader) course(f field, what string, want wanted, named bool) course {
	if text, ok := ScalarText(f.node); ok && named {
		if c, ok := l.namedCourse(f, text, what, want); ok {
			return c
		}
	}
	if _, ok := f.node.(ast.MapNode); !ok {
		return single(constant(l.quantity(f, what, want)))
	}
	fields := l.entries(f.node, f.at, what)
	l.known(fields, what, append(courseKeys, "held", "period", "startTime")...)
	var main field
	for _, g := range fields {
		if slices.Index(courseKeys, g.key) < 0 {
			continue
		}
		if main.key != "" {
			l.fail(g.keyAt, "%s: %s and %s in one value; write a sum", what, main.key, g.key)
		}
		main = g
	}
	if main.key == "" {
		l.fail(f.at, "%s: empty; a value or {table: [[t, v], ...]} is wanted", what)
		return single(constant(0))
	}
	what += ": " + main.key
	for _, g := range fields {
		if g.key != main.key && main.key != "table" {
			l.fail(g.keyAt, "%s: %s goes with table", what, g.key)
		}
	}
	if l.err != nil {
		return single(constant(0))
	}
	switch main.key {
	case "sum":
		return l.sumCourse(main, what, want, named)
	case "product":
		return l.productCourse(main, what, want, named)
	case "constant":
		return single(constant(l.quantity(main, what, want)))
	case "table":
		return single(l.tableSource(main, fields, what, want))
	}
	return single(l.shape(main, what, want))
}

// namedCourse resolves a name: a signal of the enclosing assembly, of an element, or
// an input.
func (l *loader) namedCourse(f field, name, what string, want wanted) (course, bool) {
	if b, ok := l.scope.signals[name]; ok {
		inside := l.scope
		l.scope = b.scope
		c := l.course(b.field, b.what, want, true)
		l.scope = inside
		return c, true
	}
	i, kind := l.signalNamed(name)
	if i < 0 {
		return nil, false
	}
	s := &l.plant.signals[i]
	s.read = true
	if s.at == (pos{}) {
		s.at = f.at // of an element that may be read later
	}
	if s.unit.Dim != want.Dim {
		l.fail(f.at, "%s: %s %q is in %s; %s is wanted", what, kind, name, s.unit.SI, want.spelled)
	}
	return course{{{Source{}, i}}}, true
}

// signalNamed is the signal of an element in the scope, an input, or what an element
// exerts; -1 if there is none.
func (l *loader) signalNamed(name string) (i int, kind string) {
	for _, full := range []string{l.scope.prefix + name, name} {
		if i, ok := l.provided[full]; ok {
			return i, "signal"
		}
	}
	if i, ok := l.inputs[name]; ok {
		return i, "input"
	}
	for _, full := range []string{l.scope.prefix + name, name} {
		if i := l.exertion(full); i >= 0 {
			return i, "signal"
		}
	}
	return -1, ""
}

func (l *loader) sumCourse(f field, what string, want wanted, named bool) course {
	var all course
	for _, n := range l.items(f.node, f.at, what) {
		all = append(all, l.course(field{at: startOf(n), node: n}, what, want, named)...)
		if len(all) > maxTerms {
			l.fail(f.at, "%s: more than %d terms", what, maxTerms)
			return all
		}
	}
	if len(all) == 0 {
		l.fail(f.at, "%s: empty; values to add are wanted", what)
	}
	return all
}

// productCourse multiplies out. Signals and inputs have their units, the first factor
// what is left of the wanted one, the others are numbers.
func (l *loader) productCourse(f field, what string, want wanted, named bool) course {
	all := course{{}}
	number, _ := Units("1")
	items := l.items(f.node, f.at, what)
	in := make([]wanted, len(items))
	for i, n := range items {
		in[i] = wanted{number, "1"}
		text, _ := ScalarText(n)
		if s, _ := l.signalNamed(text); i > 0 && named && s >= 0 {
			u := l.plant.signals[s].unit
			in[i] = wanted{u, u.SI}
			if u.Dim != number.Dim {
				for d := range want.Dim {
					want.Dim[d] -= u.Dim[d]
				}
				want.Factor, want.spelled = 1, want.Dim.String()
			}
		}
	}
	for i, n := range items {
		if i == 0 {
			in[0] = want
		}
		c := l.course(field{at: startOf(n), node: n}, what, in[i], named)
		if len(all)*len(c) > maxTerms || len(all[0])+len(c[0]) > maxFactors {
			l.fail(f.at, "%s: more than %d terms or %d factors when multiplied out", what, maxTerms, maxFactors)
			return all
		}
		var next course
		for _, a := range all {
			for _, b := range c {
				next = append(next, append(append([]factor(nil), a...), b...))
			}
		}
		all = next
	}
	if len(all[0]) == 0 {
		l.fail(f.at, "%s: empty; values to multiply are wanted", what)
		return single(constant(0))
	}
	return all
}

// source is a course without signals.
func (c course) source() Source {
	if len(c) == 1 && len(c[0]) == 1 {
		return c[0][0].leaf
	}
	var s Source
	for _, term := range c {
		var leaves []Source
		for _, f := range term {
			leaves = append(leaves, f.leaf)
		}
		s.Sum = append(s.Sum, leaves)
	}
	return s
}

// signal reads what drives an element: the name of an input or signal, a source of
// its own, or sums and products of these. It returns an index into Plant.signals.
func (l *loader) signal(f field, what, name string, want wanted) int {
	c := l.course(f, what, want, true)
	if len(c) == 1 && len(c[0]) == 1 && c[0][0].signal >= 0 {
		return c[0][0].signal
	}
	s := signal{name: name, at: f.at, unit: want.Unit, read: true, course: c}
	add := func(s signal) int {
		l.plant.signals = append(l.plant.signals, s)
		return len(l.plant.signals) - 1
	}
	reads := false
	for _, term := range c {
		for _, f := range term {
			reads = reads || f.signal >= 0
		}
	}
	if !reads {
		s.source = c.source()
		return add(s)
	}
	s.law, s.linear = l.mixed(c, s), c.linear()
	return add(s)
}

// linear is a sum of signals with constant factors, and constants, as a form; nil for
// others.
func (c course) linear() (f form) {
	for _, term := range c {
		m := measure{kind: ofOne, coef: 1}
		for _, x := range term {
			switch {
			case x.signal >= 0 && m.kind == ofOne:
				m.kind, m.index = ofSignal, x.signal
			case x.signal >= 0 || len(x.leaf.V) != 1 || x.leaf.Amplitude != 0:
				return nil
			default:
				m.coef *= x.leaf.V[0]
			}
		}
		f = append(f, m)
	}
	return f
}

// mixed is the law of a course that reads signals; its sources become signals of
// their own.
func (l *loader) mixed(c course, s signal) *law {
	var m law
	for i, term := range c {
		var pure []factor
		n := 0
		for k, f := range term {
			if f.signal < 0 {
				pure = append(pure, f)
				continue
			}
			m.arg(signalOf(f.signal), l.others(term, k))
			if n++; n > 1 {
				m.do(Mul)
			}
		}
		depend(l.plant, &m, term, n)
		if len(pure) > 0 {
			part := signal{name: fmt.Sprintf("%s.%d", s.name, i+1), at: s.at, read: true, source: course{pure}.source()}
			l.plant.signals = append(l.plant.signals, part)
			m.arg(signalOf(len(l.plant.signals)-1), 0)
			if n > 0 {
				m.do(Mul)
			}
		}
		if i > 0 {
			m.do(Add)
		}
	}
	return &m
}

// others bounds the product of all factors of a term but the k-th.
func (l *loader) others(term []factor, k int) float64 {
	p := 1.0
	for i, f := range term {
		if i == k {
			continue
		}
		if f.signal >= 0 {
			p *= l.plant.largest(f.signal)
			continue
		}
		low, high := sourceRange(f.leaf)
		p *= max(math.Abs(low), math.Abs(high))
	}
	return p
}

// tableSource reads table: [[t, v], ...] with held, period and startTime beside it.
func (l *loader) tableSource(f field, beside []field, what string, want wanted) Source {
	var s Source
	second, _ := Units("s")
	for _, n := range l.items(f.node, f.at, what) {
		at := startOf(n)
		pair := l.items(n, at, what+": row")
		if len(pair) != 2 {
			l.fail(at, "%s: row of %d values; [time, value] is wanted", what, len(pair))
			return constant(0)
		}
		t := l.quantity(field{at: startOf(pair[0]), node: pair[0]}, what+": time", wanted{second, "s"})
		v := l.quantity(field{at: startOf(pair[1]), node: pair[1]}, what+": value", want)
		if k := len(s.T); k > 0 && !(t >= s.T[k-1]) {
			l.fail(at, "%s: time %g s comes after %g s; times must not decrease", what, t, s.T[k-1])
		}
		s.T, s.V = append(s.T, t), append(s.V, v)
		if l.err != nil {
			return constant(0)
		}
	}
	if len(s.T) == 0 {
		l.fail(f.at, "%s: empty; at least one row [time, value] is wanted", what)
		return constant(0)
	}
	for _, g := range beside {
		switch g.key {
		case "held":
			text := l.text(g, what+": held")
			if s.Held = text == "true"; text != "true" && text != "false" {
				l.fail(g.at, "%s: held: %q is neither true nor false", what, text)
			}
		case "period":
			s.Period = l.quantity(g, what+": period", wanted{second, "s"})
			if last := s.T[len(s.T)-1]; !(s.Period > 0 && s.Period >= last && s.T[0] >= 0) {
				l.fail(g.at, "%s: period %g s does not hold the table, %g s to %g s", what, s.Period, s.T[0], last)
			}
		case "startTime":
			s.Start = l.quantity(g, what+": startTime", wanted{second, "s"})
		}
	}
	if s.Start != 0 && s.Period == 0 {
		for i := range s.T {
			s.T[i] += s.Start
		}
		s.Start = 0
	}
	return s
}
