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
	l.asked[f.node] = want
	text := l.text(f, what)
	if _, ok := ScalarText(f.node); !ok {
		return math.NaN()
	}
	switch f.node.(type) {
	case *ast.NanNode, *ast.InfinityNode:
		l.fail(f.at, "%s: %s is not a finite number", what, text)
		return math.NaN()
	}
	v, err := evaluate(text, l.scope.params)
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
