package units

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Quantity evaluates text to a finite value in siUnit.
//
// The text is a number, a number with a unit ("120 rpm"), a parameter, pi, or arithmetic of these with
// + - * / and parentheses ("75/50", "2*J_wheel"), and sin, cos, exp, sqrt and abs of numbers without a
// unit. A temperature in degC cannot be part of arithmetic. A number without a unit is in siUnit;
// params carry no unit.
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
		v.SI, err = v.In(Wanted{Unit: want, Spelled: siUnit})
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
	Bare bool   // no part of the text has a unit: fits every dimension
	unit string // as written, if the expression has exactly one unit
	degC bool   // a temperature in degC, which only takes a sign
}

const zeroCelsius = 273.15 // K

// In returns v in SI and an error if v does not fit the wanted unit; a bare number is in that unit.
func (v Value) In(want Wanted) (float64, error) {
	switch {
	case v.Bare:
		v.SI = want.ToSI(v.SI)
	case want.unknown:
		return 0, fmt.Errorf("the unit %q of the signal is not known: its values are numbers without a unit", want.Spelled)
	case v.Dim != want.Dim || !v.written().fits(want.Unit):
		return 0, fmt.Errorf("unit %s does not fit, %s is wanted", v.Spelled(), cmp.Or(want.Spelled, "1"))
	case v.degC && want.difference:
		return 0, fmt.Errorf("a difference of temperatures cannot be in %s; write it in K", v.unit)
	}

	if math.IsNaN(v.SI) || math.IsInf(v.SI, 0) {
		return 0, fmt.Errorf("%g %s is not a finite number", v.SI, cmp.Or(want.Spelled, "1"))
	}
	return v.SI, nil
}

// written returns the unit of v, that of SI if the expression has not exactly one unit.
func (v Value) written() Unit {
	if u, err := Parse(v.unit); err == nil && v.unit != "" {
		return u
	}
	return Unit{Factor: 1, Dim: v.Dim}
}

// Spelled returns the unit of v as written, or the SI unit of its dimension.
func (v Value) Spelled() string { return cmp.Or(v.unit, v.Dim.String()) }

// Like returns v, in the unit of base if v has none; ok is false if the units do not fit.
func (v Value) Like(base Value) (Value, bool) {
	if v.Bare && !base.Bare {
		if u, err := Parse(base.unit); err == nil { // the factor of an empty unit is 1
			v.SI *= u.Factor
		}
		v.Dim, v.Bare, v.unit, v.degC = base.Dim, false, base.unit, base.degC
		if v.degC {
			v.SI += zeroCelsius
		}
	}

	return v, v.Dim == base.Dim || v.Bare || base.Bare
}

const (
	maxExpr  = 1000 // characters in an expression
	maxDepth = 50   // nested parentheses and signs
)

// Evaluate returns the value of an expression; params are in SI, nil where there can be none. "100/s" is 100 divided by a parameter s
// or, without one, the quantity 100 1/s. An error says how the quantity is written, if this is clear.
func Evaluate(text string, params map[string]Value) (Value, error) {
	v, err := evaluate(text, params)
	if m := overUnit().FindStringSubmatch(text); m != nil && errors.As(err, new(*UnknownName)) {
		if per, wrong := evaluate(m[1]+" 1/"+m[2], params); wrong == nil {
			return per, nil
		}
	}
	if err != nil && len(text) <= maxExpr && strings.TrimSpace(text) != "" {
		if respelled := respellQuantity(text); respelled != nil {
			err = respelled
		}
		err = fmt.Errorf("%q: %w", text, err)
	}
	return v, err
}

func evaluate(text string, params map[string]Value) (Value, error) {
	if len(text) > maxExpr {
		return Value{}, fmt.Errorf("expression of %d characters is longer than %d", len(text), maxExpr)
	}
	e := expr{rest: strings.TrimSpace(text), params: params}
	if e.rest == "" {
		return Value{}, fmt.Errorf("a value is missing")
	}
	v, err := e.sum(0)
	switch {
	case err == nil && strings.HasPrefix(e.rest, ","):
		err = fmt.Errorf("unexpected %q; decimals follow a point, as in 0.2", e.rest)
	case err == nil && e.rest != "":
		err = fmt.Errorf("unexpected %q", e.rest)
	}
	return v, err
}

// expr is a recursive-descent parser; rest does not begin with a blank.
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

func (e *expr) sum(depth int) (Value, error) { return e.chain("+-", e.product, Value.add, depth) }

func (e *expr) product(depth int) (Value, error) { return e.chain("*/", e.sign, Value.times, depth) }

// chain reads operands with operators between them, from left to right.
func (e *expr) chain(operators string, operand func(int) (Value, error),
	join func(v, w Value, inverse bool) (Value, error), depth int) (Value, error) {
	v, err := operand(depth)
	for err == nil {
		op := e.take(operators)
		if op == 0 {
			break
		}
		var w Value
		if w, err = operand(depth); err != nil {
			break
		}
		if v.degC || w.degC {
			return v, errors.New("a temperature in degC cannot be calculated with; write it in K")
		}
		v, err = join(v, w, op == operators[1])
	}

	return v, err
}

// add returns v+w, or v-w.
func (v Value) add(w Value, subtract bool) (Value, error) {
	if v.Bare != w.Bare || v.Dim != w.Dim {
		return v, fmt.Errorf("units %s and %s cannot be added", v.Spelled(), w.Spelled())
	}
	if subtract {
		w.SI = -w.SI
	}
	v.SI += w.SI
	return v, nil
}

// times returns v·w, or v/w.
func (v Value) times(w Value, divide bool) (Value, error) {
	power := 1
	if divide {
		if w.SI == 0 {
			return v, errors.New("division by zero")
		}
		power = -1
		v.SI /= w.SI
	} else {
		v.SI = float64(v.SI * w.SI)
	}

	switch {
	case w.Bare:
	case v.Bare && !divide:
		v.Dim, v.unit = w.Dim, w.unit
	default:
		v.unit = ""
		var err error
		if v.Dim, err = v.Dim.plus(w.Dim, power); err != nil {
			return v, err
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

// functions holds the functions of numbers; angles are in rad.
var functions = map[string]func(float64) float64{
	"sin": sin, "cos": cos, "exp": exp, "sqrt": math.Sqrt, "abs": math.Abs,
}

// call reads the argument of a function and returns its value.
func (e *expr) call(name string, depth int) (Value, error) {
	v, err := e.sign(depth)
	switch {
	case err != nil:
	case !v.Bare:
		err = fmt.Errorf("%s of %s: a number without a unit is wanted", name, v.Spelled())
	default:
		if math.Abs(v.SI) <= math.MaxFloat64 {
			v.SI = functions[name](v.SI)
		}
		if math.IsNaN(v.SI) || math.IsInf(v.SI, 0) {
			err = fmt.Errorf("%s has no finite value there", name)
		}
	}

	return v, err
}

// atom reads a number with or without a unit, a parameter, pi, or a function.
func (e *expr) atom(depth int) (Value, error) {
	if name := nameForm.FindString(e.rest); name != "" {
		e.skip(len(name))
		if v, ok := e.params[name]; ok {
			return v, nil
		}
		if functions[name] != nil && strings.HasPrefix(e.rest, "(") {
			return e.call(name, depth)
		}
		if name == "pi" {
			return Value{SI: math.Pi, Bare: true}, nil
		}
		return Value{}, &UnknownName{Name: name, bare: e.params == nil}
	}

	number := numberForm.FindString(e.rest)
	if number == "" {
		if e.rest == "" {
			return Value{}, errors.New("a value is missing at the end")
		}
		return Value{}, fmt.Errorf("a number or a name is wanted at %q", e.rest)
	}

	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Value{}, fmt.Errorf("%s is not a finite number", number)
	}
	e.skip(len(number))
	return e.measured(x)
}

// measured reads the unit, if any, that follows the number x.
func (e *expr) measured(x float64) (Value, error) {
	n := atomLen(e.rest)
	switch name := e.rest[:n]; {
	case isCelsius(name):
		e.skip(n)
		return Value{SI: x + zeroCelsius, Dim: Dim{4: 1}, unit: name, degC: true}, nil
	case n == 0 && !reciprocal.MatchString(e.rest):
		return Value{SI: x, Bare: true}, nil
	}

	u, rest, _ := unitProduct(e.rest, n == 0, 0)
	for _, rpm := range perMinute {
		if after, ok := strings.CutPrefix(e.rest, rpm); ok {
			rest = after
			u, _ = Parse(rpm)
		}
	}

	text := e.rest[:len(e.rest)-len(rest)]
	if refused := refusedPower(rest); rest == e.rest || refused > 0 {
		text += rest[:max(refused, n+len(powerForm.FindString(e.rest[n:]))-len(text))]
		return Value{}, fmt.Errorf("%q is not a known unit; %s", text, cmp.Or(writeUnit(text), listUnits))
	}

	e.skip(len(text))
	return Value{SI: float64(x * u.Factor), Dim: u.Dim, unit: text}, nil
}

// refusedPower returns the length of a sign at the start of rest and of the unit with a power behind
// it, 0 if there is no such unit: Parse refuses the power of "/s^99" and of "/s99", which do not
// divide by a parameter.
func refusedPower(rest string) int {
	join := len(joinForm.FindString(rest))
	n := join + atomLen(rest[join:])
	_, known := unitAtom(rest[join:n])
	power := len(powerForm.FindString(rest[n:]))
	if join == 0 || !known || power == 0 || strings.HasPrefix(rest[n+power:], "_") {
		return 0
	}
	return n + power
}

// UnknownName is the error for a name in an expression that is not a parameter.
type UnknownName struct {
	Name string
	bare bool // the expression takes no parameters
}

func (u *UnknownName) Error() string {
	hint := ""
	if _, isUnit := unitAtom(strings.TrimRight(u.Name, "0123456789")); isUnit {
		hint = "; " + joinFactors
	}
	what := "a known parameter"
	if u.bare {
		what = "a number"
	}
	return fmt.Sprintf("%q is not %s%s", u.Name, what, hint)
}

// Forms of a name, with "." between its parts, of a number, and of a unit such as 1/s.
var (
	overUnit = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)\s*/([A-Za-z%°µμ].*)$`)
	}) // 100/s
	reciprocal = regexp.MustCompile(`^1/[A-Za-z%°µμ]`)
	nameForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*`)
	numberForm = regexp.MustCompile(`^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`)
)
