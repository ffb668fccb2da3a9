package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"
)

// wanted is the unit that a value is asked in; a bare number counts in it.
type wanted struct {
	Unit
	spelled string
}

// show prints an SI value in the wanted unit.
func (w wanted) show(si float64) string {
	return withUnit(si/w.Factor, w.spelled)
}

// withUnit prints "3 bar", and a bare number alone.
func withUnit(x float64, unit string) string {
	if spell(unit) == "1" {
		return fmt.Sprintf("%.9g", x)
	}
	return fmt.Sprintf("%.9g %s", x, unit)
}

func nameIn(err error) (string, bool) {
	var u *unknownName
	if errors.As(err, &u) {
		return u.name, true
	}
	return "", false
}

// quantity evaluates a scalar to SI.
func (l *loader) quantity(f field, what string, want wanted) float64 {
	text := l.text(f, what)
	if _, ok := scalarText(f.node); !ok {
		return math.NaN()
	}
	switch f.node.(type) {
	case *ast.NanNode, *ast.InfinityNode:
		l.fail(f.at, "%s: %s is not a finite number", what, text)
		return math.NaN()
	}
	v, err := evaluate(text, l.params)
	if err != nil {
		l.fail(f.at, "%s: %s", what, l.explain(err))
		return math.NaN()
	}
	x, err := v.in(want.Unit, want.spelled)
	if err != nil {
		l.fail(f.at, "%s: %q: %v", what, text, err)
	}
	return x
}

func constant(v float64) Source { return Source{T: []float64{0}, V: []float64{v}} }

// source reads a value over time: a constant, or {table: [[t, v], ...]}.
func (l *loader) source(f field, what string, want wanted) Source {
	if _, ok := f.node.(ast.MapNode); !ok {
		return constant(l.quantity(f, what, want))
	}
	fields := l.fields(f.node, f.at, what)
	l.known(fields, what, "table")
	if len(fields) != 1 {
		l.fail(f.at, "%s: empty; a value or {table: [[t, v], ...]} is wanted", what)
		return constant(0)
	}
	f = fields[0]
	what += ": table"
	second, _ := Units("s")
	var s Source
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
	return s
}

// signal reads what drives an element: the name of an input, or a source of its
// own. It returns an index into Plant.signals.
func (l *loader) signal(f field, what, name string, want wanted) int {
	if text, ok := scalarText(f.node); ok {
		if i, ok := l.inputs[text]; ok {
			s := &l.plant.signals[i]
			s.read = true
			if s.unit.Dim != want.Dim {
				l.fail(f.at, "%s: input %q is in %s; %s is wanted", what, text, s.unit.SI, want.spelled)
			}
			return i
		}
	}
	l.plant.signals = append(l.plant.signals, signal{
		name: name, at: f.at, unit: want.Unit, source: l.source(f, what, want), read: true,
	})
	return len(l.plant.signals) - 1
}
