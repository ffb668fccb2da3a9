package units

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
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
		v.SI, err = v.In(Wanted{want, siUnit})
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
func (v Value) In(want Wanted) (float64, error) {
	if v.Bare {
		v.SI *= want.Factor
	} else if v.Dim != want.Dim {
		return 0, fmt.Errorf("unit %s does not fit, %s is wanted", v.Spelled(), cmp.Or(want.Spelled, "1"))
	}

	if math.IsNaN(v.SI) || math.IsInf(v.SI, 0) {
		return 0, fmt.Errorf("%g %s is not a finite number", v.SI, cmp.Or(want.Spelled, "1"))
	}
	return v.SI, nil
}

// Spelled is the unit of v as written, or that of its dimension.
func (v Value) Spelled() string { return cmp.Or(v.unit, v.Dim.String()) }

// Like is v in the unit of base, where v was written without one; ok is false of two units
// that do not fit.
func (v Value) Like(base Value) (Value, bool) {
	if v.Bare && !base.Bare {
		if u, err := Parse(base.unit); err == nil { // no error of an empty unit, whose factor is 1
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

func (e *expr) sum(depth int) (Value, error) { return e.chain("+-", e.product, Value.add, depth) }

func (e *expr) product(depth int) (Value, error) { return e.chain("*/", e.sign, Value.times, depth) }

// chain reads operands with operators between them, from the left to the right.
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

// add is v+w, or v-w.
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

// times is v·w, or v/w.
func (v Value) times(w Value, divide bool) (Value, error) {
	power := 1
	if divide {
		if w.SI == 0 {
			return v, errors.New("division by zero")
		}
		power = -1
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
		return Value{}, &UnknownName{name}
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

// measured is a number with the unit that follows it.
func (e *expr) measured(x float64) (Value, error) {
	n := atomLen(e.rest)
	switch name := e.rest[:n]; {
	case name == "degC" || name == "°C":
		e.skip(n)
		return Value{SI: x + zeroCelsius, Dim: Dim{4: 1}, unit: name, degC: true}, nil
	case n == 0 && !strings.HasPrefix(e.rest, "1/min"):
		return Value{SI: x, Bare: true}, nil
	}

	u, rest, _ := unitProduct(e.rest, false, 0)
	for _, rpm := range perMinute {
		if after, ok := strings.CutPrefix(e.rest, rpm); ok {
			rest = after
			u, _ = Parse(rpm)
		}
	}

	text := e.rest[:len(e.rest)-len(rest)]
	if refused := refusedPower(rest); rest == e.rest || refused > 0 {
		text += rest[:max(refused, n+len(powerForm.FindString(e.rest[n:]))-len(text))]
		return Value{}, fmt.Errorf("%q is not a known unit (products are written with *)", text)
	}

	e.skip(len(text))
	return Value{SI: x * u.Factor, Dim: u.Dim, unit: text}, nil
}

// refusedPower is the length of a joint at the start of rest and of the unit behind it, if that
// has a power that Parse refuses: "/s^99" and "/s99" are no division by a parameter. 0 otherwise.
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

// UnknownName is a name in an expression that is no parameter.
type UnknownName struct{ Name string }

func (u *UnknownName) Error() string { return fmt.Sprintf("%q is not a known parameter", u.Name) }

// A name is letters, digits and "_", and "." between them.
var (
	nameForm   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*`)
	numberForm = regexp.MustCompile(`^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?`)
)
