package model

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Quantity evaluates text to a finite value in siUnit.
//
// The text is a number, a number with a unit ("120 rpm"), a parameter, pi, or
// arithmetic between these with + - * / and parentheses ("75/50", "2*J_wheel"), and
// sin, cos, exp, sqrt and abs of numbers without a unit. A temperature can be in degC,
// alone.
// A number without a unit is in siUnit. Parameters given here carry no unit.
func Quantity(text, siUnit string, params map[string]float64) (float64, error) {
	want, err := Units(siUnit)
	if err != nil {
		return 0, err
	}
	known := make(map[string]value, len(params))
	for name, v := range params {
		known[name] = value{v: v, bare: true}
	}
	v, err := evaluate(text, known)
	if err == nil {
		v.v, err = v.in(want, siUnit)
	}
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	return v.v, nil
}

// value is the result of an expression, in SI.
type value struct {
	v    float64
	dim  Dim
	bare bool   // no unit was written anywhere: fits every dimension
	unit string // as written, while the expression has exactly one unit
	degC bool   // a temperature in degC: nothing but its sign can be calculated with
}

const zeroCelsius = 273.15 // K

// in checks that v fits the wanted unit and returns it in SI; a bare number counts
// in the wanted unit itself.
func (v value) in(want Unit, spelled string) (float64, error) {
	if v.bare {
		v.v *= want.Factor
	} else if v.dim != want.Dim {
		return 0, fmt.Errorf("unit %s does not fit, %s is wanted", v.spelled(), spell(spelled))
	}
	if math.IsNaN(v.v) || math.IsInf(v.v, 0) {
		return 0, fmt.Errorf("%g %s is not a finite number", v.v, spell(spelled))
	}
	return v.v, nil
}

func (v value) spelled() string {
	if v.unit != "" {
		return v.unit
	}
	return v.dim.String()
}

// factor is the size of the unit in which v was written.
func (v value) factor() float64 {
	if u, err := Units(v.unit); err == nil && v.unit != "" {
		return u.Factor
	}
	return 1
}

// like is v in the unit of base, where v was written without one; ok is false of two units
// that do not fit.
func (v value) like(base value) (value, bool) {
	if v.bare && !base.bare {
		v.v, v.dim, v.bare, v.unit, v.degC = v.v*base.factor(), base.dim, false, base.unit, base.degC
		if v.degC {
			v.v += zeroCelsius
		}
	}
	return v, v.dim == base.dim || v.bare || base.bare
}

// spell is a unit as shown in messages: "" is "1".
func spell(unit string) string {
	if unit == "" {
		return "1"
	}
	return unit
}

const (
	maxExpr  = 1000 // characters in an expression
	maxDepth = 50   // nested parentheses and signs
)

// evaluate reads an expression; params are in SI.
func evaluate(text string, params map[string]value) (value, error) {
	if len(text) > maxExpr {
		return value{}, fmt.Errorf("expression of %d characters is longer than %d", len(text), maxExpr)
	}
	e := expr{rest: strings.TrimSpace(text), params: params}
	if e.rest == "" {
		return value{}, fmt.Errorf("a value is missing")
	}
	v, err := e.sum(0)
	if err == nil && e.rest != "" {
		err = fmt.Errorf("unexpected %q", e.rest)
	}
	if err != nil {
		return value{}, fmt.Errorf("%q: %w", text, err)
	}
	return v, nil
}

// expr is a recursive-descent parser; rest never starts with a blank.
type expr struct {
	rest   string
	params map[string]value
}

// take removes one of the operators from the front; 0 if there is none.
func (e *expr) take(operators string) byte {
	if e.rest == "" || !strings.Contains(operators, e.rest[:1]) {
		return 0
	}
	op := e.rest[0]
	e.skip(1)
	return op
}

func (e *expr) skip(n int) { e.rest = strings.TrimLeft(e.rest[n:], " \t") }

func (e *expr) sum(depth int) (value, error) {
	v, err := e.product(depth)
	for err == nil {
		op := e.take("+-")
		if op == 0 {
			break
		}
		var w value
		if w, err = e.product(depth); err != nil {
			break
		}
		if v.degC || w.degC {
			return v, errCelsius
		}
		if v.bare != w.bare || v.dim != w.dim {
			return v, fmt.Errorf("units %s and %s cannot be added", v.spelled(), w.spelled())
		}
		if op == '-' {
			w.v = -w.v
		}
		v.v += w.v
	}
	return v, err
}

func (e *expr) product(depth int) (value, error) {
	v, err := e.sign(depth)
	for err == nil {
		op := e.take("*/")
		if op == 0 {
			break
		}
		var w value
		if w, err = e.sign(depth); err != nil {
			break
		}
		v, err = v.times(w, op == '/')
	}
	return v, err
}

// times is v·w, or v/w.
func (v value) times(w value, divide bool) (value, error) {
	if v.degC || w.degC {
		return v, errCelsius
	}
	sign := 1
	if divide {
		if w.v == 0 {
			return v, fmt.Errorf("division by zero")
		}
		sign = -1
		v.v /= w.v
	} else {
		v.v *= w.v
	}
	switch {
	case w.bare:
	case v.bare && !divide:
		v.dim, v.unit = w.dim, w.unit
	default:
		v.unit = ""
		for i := range v.dim {
			x := int(v.dim[i]) + sign*int(w.dim[i])
			if x > maxExponent || x < -maxExponent {
				return v, fmt.Errorf("the power of a unit is too large")
			}
			v.dim[i] = int8(x)
		}
	}
	v.bare = v.bare && w.bare
	return v, nil
}

func (e *expr) sign(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch e.take("+-(") {
	case '+':
		return e.sign(depth + 1)
	case '-':
		v, err := e.sign(depth + 1)
		v.v = -v.v
		if v.degC {
			v.v += 2 * zeroCelsius
		}
		return v, err
	case '(':
		v, err := e.sum(depth + 1)
		if err == nil && e.take(")") == 0 {
			err = fmt.Errorf("a closing parenthesis is missing")
		}
		return v, err
	}
	return e.atom(depth)
}

// functions are those of numbers; angles are in rad.
var functions = map[string]func(float64) float64{
	"sin": math.Sin, "cos": math.Cos, "exp": math.Exp, "sqrt": math.Sqrt, "abs": math.Abs,
}

// call is a function of what follows in parentheses.
func (e *expr) call(name string, depth int) (value, error) {
	v, err := e.sign(depth)
	switch {
	case err != nil:
	case !v.bare:
		err = fmt.Errorf("%s of %s: a number without a unit is wanted", name, v.spelled())
	default:
		if v.v = functions[name](v.v); math.IsNaN(v.v) || math.IsInf(v.v, 0) {
			err = fmt.Errorf("%s has no finite value there", name)
		}
	}
	return v, err
}

// atom is a number with or without a unit, a parameter, pi, or a function.
func (e *expr) atom(depth int) (value, error) {
	if n := nameLen(e.rest); n > 0 {
		name := e.rest[:n]
		e.skip(n)
		if v, ok := e.params[name]; ok {
			return v, nil
		}
		if functions[name] != nil && strings.HasPrefix(e.rest, "(") {
			return e.call(name, depth)
		}
		if name == "pi" {
			return value{v: math.Pi, bare: true}, nil
		}
		return value{}, &unknownName{name}
	}
	n := numberLen(e.rest)
	if n == 0 {
		if e.rest == "" {
			return value{}, fmt.Errorf("a value is missing at the end")
		}
		return value{}, fmt.Errorf("a number or a name is wanted at %q", e.rest)
	}
	x, err := strconv.ParseFloat(e.rest[:n], 64)
	if err != nil {
		return value{}, fmt.Errorf("%s is not a finite number", e.rest[:n])
	}
	e.skip(n)
	n = unitLen(e.rest)
	if n == 0 {
		return value{v: x, bare: true}, nil
	}
	text := e.rest[:n]
	if text == "degC" || text == "°C" {
		e.skip(n)
		return value{v: x + zeroCelsius, dim: Dim{4: 1}, unit: text, degC: true}, nil
	}
	u, err := Units(text)
	if err != nil {
		return value{}, fmt.Errorf("%q is not a known unit (products are written with *)", text)
	}
	e.skip(n)
	return value{v: x * u.Factor, dim: u.Dim, unit: text}, nil
}

var errCelsius = errors.New("a temperature in degC cannot be calculated with; write it in K")

// unknownName is a name in an expression that is no parameter.
type unknownName struct{ name string }

func (u *unknownName) Error() string { return fmt.Sprintf("%q is not a known parameter", u.name) }

// nameLen is the length of the name at the start of s: letters, digits and "_",
// and "." between them; 0 if it does not start with a letter or "_".
func nameLen(s string) int {
	i := 0
	for i < len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		inside := i > 0 && (c >= '0' && c <= '9' || c == '.' && s[i-1] != '.' && i+1 < len(s))
		if !letter && !inside {
			break
		}
		i++
	}
	return i
}

// numberLen is the length of the decimal number at the start of s.
func numberLen(s string) int {
	digits := func(i int) int {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	i := digits(0)
	n := i
	if i < len(s) && s[i] == '.' {
		i = digits(i + 1)
		n = i - 1
	}
	if n == 0 {
		return 0
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if k := digits(j); k > j {
			return k
		}
	}
	return i
}

// unitLen is the length of the unit at the start of s. A "/" belongs to it only
// if a unit follows without a blank: "100 rpm/2" and "3 m/r1" are divisions.
func unitLen(s string) int {
	if strings.HasPrefix(s, "1/min") {
		return len("1/min")
	}
	n := atomLen(s)
	if n == 0 {
		return 0
	}
	n += powerLen(s[n:])
	for n < len(s) {
		join := 1
		if strings.HasPrefix(s[n:], "·") {
			join = len("·")
		} else if s[n] != '.' && s[n] != '/' {
			break
		}
		next := s[n+join:]
		if strings.HasPrefix(next, "(") {
			end := strings.IndexByte(next, ')')
			if _, err := Units(next[:end+1]); end < 0 || err != nil {
				break
			}
			n += join + end + 1
			continue
		}
		k := atomLen(next)
		end := k + powerLen(next[k:])
		if _, ok := unitAtom(next[:k]); !ok || strings.HasPrefix(next[end:], "_") {
			break
		}
		n += join + end
	}
	return n
}

// powerLen is the length of the exponent at the start of s.
func powerLen(s string) int {
	_, rest := unitPower(s)
	return len(s) - len(rest)
}
