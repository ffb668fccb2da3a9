package units

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
	want, err := Parse(siUnit)
	if err != nil {
		return 0, err
	}
	known := make(map[string]Value, len(params))
	for name, v := range params {
		known[name] = Value{SI: v, Bare: true}
	}
	v, err := Evaluate(text, known)
	if err == nil {
		v.SI, err = v.In(want, siUnit)
	}
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	return v.SI, nil
}

// Value is the result of an expression, in SI.
type Value struct {
	SI   float64
	Dim  Dim
	Bare bool   // no unit was written anywhere: fits every dimension
	unit string // as written, while the expression has exactly one unit
	degC bool   // a temperature in degC: nothing but its sign can be calculated with
}

const zeroCelsius = 273.15 // K

// In checks that v fits the wanted unit and returns it in SI; a bare number counts
// in the wanted unit itself.
func (v Value) In(want Unit, spelled string) (float64, error) {
	if v.Bare {
		v.SI *= want.Factor
	} else if v.Dim != want.Dim {
		return 0, fmt.Errorf("unit %s does not fit, %s is wanted", v.Spelled(), spell(spelled))
	}
	if math.IsNaN(v.SI) || math.IsInf(v.SI, 0) {
		return 0, fmt.Errorf("%g %s is not a finite number", v.SI, spell(spelled))
	}
	return v.SI, nil
}

// Spelled is the unit of v as written, or that of its dimension.
func (v Value) Spelled() string {
	if v.unit != "" {
		return v.unit
	}
	return v.Dim.String()
}

// factor is the size of the unit in which v was written.
func (v Value) factor() float64 {
	if u, err := Parse(v.unit); err == nil && v.unit != "" {
		return u.Factor
	}
	return 1
}

// Like is v in the unit of base, where v was written without one; ok is false of two units
// that do not fit.
func (v Value) Like(base Value) (Value, bool) {
	if v.Bare && !base.Bare {
		v.SI, v.Dim, v.Bare, v.unit, v.degC = v.SI*base.factor(), base.Dim, false, base.unit, base.degC
		if v.degC {
			v.SI += zeroCelsius
		}
	}
	return v, v.Dim == base.Dim || v.Bare || base.Bare
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

// Evaluate reads an expression; params are in SI.
func Evaluate(text string, params map[string]Value) (Value, error) {
	if len(text) > maxExpr {
		return Value{}, fmt.Errorf("expression of %d characters is longer than %d", len(text), maxExpr)
	}
	e := expr{rest: strings.TrimSpace(text), params: params}
	if e.rest == "" {
		return Value{}, fmt.Errorf("a value is missing")
	}
	v, err := e.sum(0)
	if err == nil && e.rest != "" {
		err = fmt.Errorf("unexpected %q", e.rest)
	}
	if err != nil {
		return Value{}, fmt.Errorf("%q: %w", text, err)
	}
	return v, nil
}

// expr is a recursive-descent parser; rest never starts with a blank.
type expr struct {
	rest   string
	params map[string]Value
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

func (e *expr) sum(depth int) (Value, error) {
	v, err := e.product(depth)
	for err == nil {
		op := e.take("+-")
		if op == 0 {
			break
		}
		var w Value
		if w, err = e.product(depth); err != nil {
			break
		}
		if v.degC || w.degC {
			return v, errCelsius
		}
		if v.Bare != w.Bare || v.Dim != w.Dim {
			return v, fmt.Errorf("units %s and %s cannot be added", v.Spelled(), w.Spelled())
		}
		if op == '-' {
			w.SI = -w.SI
		}
		v.SI += w.SI
	}
	return v, err
}

func (e *expr) product(depth int) (Value, error) {
	v, err := e.sign(depth)
	for err == nil {
		op := e.take("*/")
		if op == 0 {
			break
		}
		var w Value
		if w, err = e.sign(depth); err != nil {
			break
		}
		v, err = v.times(w, op == '/')
	}
	return v, err
}

// times is v·w, or v/w.
func (v Value) times(w Value, divide bool) (Value, error) {
	if v.degC || w.degC {
		return v, errCelsius
	}
	sign := 1
	if divide {
		if w.SI == 0 {
			return v, fmt.Errorf("division by zero")
		}
		sign = -1
		v.SI /= w.SI
	} else {
		v.SI *= w.SI
	}
	switch {
	case w.Bare:
	case v.Bare && !divide:
		v.Dim, v.unit = w.Dim, w.unit
	default:
		v.unit = ""
		for i := range v.Dim {
			x := int(v.Dim[i]) + sign*int(w.Dim[i])
			if x > maxExponent || x < -maxExponent {
				return v, fmt.Errorf("the power of a unit is too large")
			}
			v.Dim[i] = int8(x)
		}
	}
	v.Bare = v.Bare && w.Bare
	return v, nil
}

func (e *expr) sign(depth int) (Value, error) {
	if depth > maxDepth {
		return Value{}, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch e.take("+-(") {
	case '+':
		return e.sign(depth + 1)
	case '-':
		v, err := e.sign(depth + 1)
		v.SI = -v.SI
		if v.degC {
			v.SI += 2 * zeroCelsius
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
func (e *expr) call(name string, depth int) (Value, error) {
	v, err := e.sign(depth)
	switch {
	case err != nil:
	case !v.Bare:
		err = fmt.Errorf("%s of %s: a number without a unit is wanted", name, v.Spelled())
	default:
		if v.SI = functions[name](v.SI); math.IsNaN(v.SI) || math.IsInf(v.SI, 0) {
			err = fmt.Errorf("%s has no finite value there", name)
		}
	}
	return v, err
}

// atom is a number with or without a unit, a parameter, pi, or a function.
func (e *expr) atom(depth int) (Value, error) {
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
			return Value{SI: math.Pi, Bare: true}, nil
		}
		return Value{}, &UnknownName{name}
	}
	n := numberLen(e.rest)
	if n == 0 {
		if e.rest == "" {
			return Value{}, fmt.Errorf("a value is missing at the end")
		}
		return Value{}, fmt.Errorf("a number or a name is wanted at %q", e.rest)
	}
	x, err := strconv.ParseFloat(e.rest[:n], 64)
	if err != nil {
		return Value{}, fmt.Errorf("%s is not a finite number", e.rest[:n])
	}
	e.skip(n)
	n = unitLen(e.rest)
	if n == 0 {
		return Value{SI: x, Bare: true}, nil
	}
	text := e.rest[:n]
	if text == "degC" || text == "°C" {
		e.skip(n)
		return Value{SI: x + zeroCelsius, Dim: Dim{4: 1}, unit: text, degC: true}, nil
	}
	u, err := Parse(text)
	if err != nil {
		return Value{}, fmt.Errorf("%q is not a known unit (products are written with *)", text)
	}
	e.skip(n)
	return Value{SI: x * u.Factor, Dim: u.Dim, unit: text}, nil
}

var errCelsius = errors.New("a temperature in degC cannot be calculated with; write it in K")

// UnknownName is a name in an expression that is no parameter.
type UnknownName struct{ Name string }

func (u *UnknownName) Error() string { return fmt.Sprintf("%q is not a known parameter", u.Name) }

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
			if _, err := Parse(next[:end+1]); end < 0 || err != nil {
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
