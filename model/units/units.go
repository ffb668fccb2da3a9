// Package units owns how quantities are written: units of measure, numbers and expressions
// with them, names, and the ports that carry a quantity in a unit. It does not know what a
// quantity is for.
package units

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Unit is a unit of measure: value_SI = value·Factor.
//
// Angles are numbers (rad = 1), as in the SI, so that N·m·s/rad and N·m·s are
// one unit. Cycles are not: 5 Hz is no angular speed, while 5 rpm is one.
type Unit struct {
	Factor float64 // > 0
	Dim    Dim
	SI     string // the same unit spelled in SI: "Pa" for "bar", "rad/s" for "rpm"
}

// Dim holds the exponents of m, kg, s, A, K and cycle.
type Dim [6]int8

// String spells the dimension in base units: "kg.m2/s2"; "1" for a number.
func (d Dim) String() string {
	var over, under []string
	for _, i := range [...]int{1, 0, 2, 3, 4, 5} {
		name := [...]string{"m", "kg", "s", "A", "K", "cycle"}[i]
		switch e := int(d[i]); {
		case e == 1:
			over = append(over, name)
		case e > 1:
			over = append(over, fmt.Sprint(name, e))
		case e == -1:
			under = append(under, name)
		case e < -1:
			under = append(under, fmt.Sprint(name, -e))
		}
	}
	s := strings.Join(over, ".")
	if s == "" {
		s = "1"
	}
	if len(under) == 0 {
		return s
	}
	return s + "/" + strings.Join(under, "/")
}

// maxExponent bounds every exponent of a unit, so that products stay in int8.
const maxExponent = 12

// Parse reads a unit such as "N.m.s/rad", "kg·m²", "bar", "rpm" or "N/bar".
//
// Factors are joined by "." or "·"; "/" divides by the one factor after it, or by
// a group in parentheses; powers are written m2, m^2, m², s^-1. "" and "1" are a
// bare number; "1/min" and "U/min" are revolutions per minute.
func Parse(s string) (Unit, error) {
	switch s {
	case "", "-":
		return Unit{Factor: 1, SI: "1"}, nil
	case "1/min", "U/min", "rev/min":
		return Parse("rpm")
	}
	if len(s) > 100 {
		return Unit{}, fmt.Errorf("model: unit of %d characters is too long", len(s))
	}
	u, rest, err := unitProduct(s, 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("unexpected %q", rest)
	}
	if err != nil {
		return Unit{}, fmt.Errorf("model: unit %q: %w", s, err)
	}
	return u, nil
}

// unitProduct reads factors up to the end or an unmatched ")".
func unitProduct(s string, depth int) (Unit, string, error) {
	u, s, err := unitFactor(s, depth)
	for err == nil && s != "" && s[0] != ')' {
		var f Unit
		var divide bool
		switch {
		case s[0] == '/':
			divide, s = true, s[1:]
		case s[0] == '.':
			s = s[1:]
		case strings.HasPrefix(s, "·"):
			s = s[len("·"):]
		default:
			return u, s, fmt.Errorf("unexpected %q", s)
		}
		if f, s, err = unitFactor(s, depth); err == nil {
			u, err = u.times(f, divide)
		}
	}
	return u, s, err
}

// unitFactor reads an atom with its power, or a group in parentheses.
func unitFactor(s string, depth int) (Unit, string, error) {
	if strings.HasPrefix(s, "(") {
		if depth > 3 {
			return Unit{}, s, fmt.Errorf("parentheses are nested too deeply")
		}
		u, rest, err := unitProduct(s[1:], depth+1)
		if err != nil {
			return u, rest, err
		}
		if !strings.HasPrefix(rest, ")") {
			return u, rest, fmt.Errorf("a closing parenthesis is missing")
		}
		return u, rest[1:], nil
	}
	name := s[:atomLen(s)]
	if strings.HasPrefix(s, "1") {
		name = "1"
	}
	u, ok := unitAtom(name)
	if !ok {
		return u, s, fmt.Errorf("%q is not a known unit", name)
	}
	p, rest := unitPower(s[len(name):])
	if p == 0 || p > maxExponent || p < -maxExponent {
		return u, rest, fmt.Errorf("power of %q is not 1 to %d", name, maxExponent)
	}
	v, err := u, error(nil)
	if p != 1 {
		v = Unit{Factor: math.Pow(u.Factor, float64(p)), SI: fmt.Sprint(u.SI, p)}
		if p < 0 {
			v.SI = fmt.Sprint(u.SI, "^", p)
		}
		if strings.ContainsAny(u.SI, "/.") {
			return u, rest, fmt.Errorf("a power of %q is not supported", name)
		}
		for i := range u.Dim {
			e := int(u.Dim[i]) * p
			if e > maxExponent || e < -maxExponent {
				return u, rest, fmt.Errorf("power of %q is too large", name)
			}
			v.Dim[i] = int8(e)
		}
	}
	return v, rest, err
}

// times is u·f, or u/f.
func (u Unit) times(f Unit, divide bool) (Unit, error) {
	sign, join := 1, "."
	si := f.SI
	u.Factor *= f.Factor
	if divide {
		sign, join = -1, "/"
		u.Factor /= f.Factor * f.Factor
		if strings.ContainsAny(si, "/.") {
			si = "(" + si + ")"
		}
	}
	u.SI += join + si
	for i := range u.Dim {
		e := int(u.Dim[i]) + sign*int(f.Dim[i])
		if e > maxExponent || e < -maxExponent {
			return u, fmt.Errorf("a power is too large")
		}
		u.Dim[i] = int8(e)
	}
	return u, nil
}

// atomLen is the length in bytes of the unit name at the start of s.
func atomLen(s string) int {
	for i, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '%' || r == '°' || r == 'µ' || r == 'μ') {
			return i
		}
	}
	return len(s)
}

// unitPower reads an exponent: "2", "^-1", "²", "⁻¹"; 1 if there is none, 0 if it
// is not one.
func unitPower(s string) (p int, rest string) {
	caret := strings.HasPrefix(s, "^")
	if caret {
		s = s[1:]
	}
	sign, digits := 1, 0
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		d := strings.Index("0123456789", string(r))
		if i := strings.Index("⁰¹²³⁴⁵⁶⁷⁸⁹", string(r)); i >= 0 && d < 0 {
			d = utf8.RuneCountInString("⁰¹²³⁴⁵⁶⁷⁸⁹"[:i])
		}
		minus := digits == 0 && sign == 1 && (r == '⁻' || r == '-' && caret)
		if d < 0 && !minus {
			break
		}
		s = s[n:]
		if minus {
			sign = -1
			continue
		}
		p, digits = min(10*p+d, 1000), digits+1
	}
	if digits == 0 && !caret && sign == 1 {
		return 1, s
	}
	return sign * p, s
}

// unitAtom is a named unit with its prefix: "kN", "bar", "mm".
func unitAtom(name string) (Unit, bool) {
	u := func(factor float64, si string, dim ...int8) (Unit, bool) {
		v := Unit{Factor: factor, SI: si}
		copy(v.Dim[:], dim)
		return v, true
	}
	switch name {
	case "1":
		return u(1, "1")
	case "%":
		return u(0.01, "1")
	case "rad":
		return u(1, "rad")
	case "deg", "°":
		return u(math.Pi/180, "rad")
	case "rpm":
		return u(math.Pi/30, "rad/s", 0, 0, -1)
	case "Hz":
		return u(1, "Hz", 0, 0, -1, 0, 0, 1)
	case "s":
		return u(1, "s", 0, 0, 1)
	case "ms":
		return u(1e-3, "s", 0, 0, 1)
	case "us", "µs", "μs":
		return u(1e-6, "s", 0, 0, 1)
	case "ns":
		return u(1e-9, "s", 0, 0, 1)
	case "min":
		return u(60, "s", 0, 0, 1)
	case "h":
		return u(3600, "s", 0, 0, 1)
	case "m":
		return u(1, "m", 1)
	case "mm":
		return u(1e-3, "m", 1)
	case "cm":
		return u(1e-2, "m", 1)
	case "um", "µm", "μm":
		return u(1e-6, "m", 1)
	case "km":
		return u(1e3, "m", 1)
	case "kmh", "kph":
		return u(1/3.6, "m/s", 1, 0, -1)
	case "mph":
		return u(0.44704, "m/s", 1, 0, -1)
	case "kg":
		return u(1, "kg", 0, 1)
	case "g":
		return u(1e-3, "kg", 0, 1)
	case "t":
		return u(1e3, "kg", 0, 1)
	}
	return unitDerived(name)
}

// unitDerived holds force, pressure, energy, power, current, voltage and temperature.
func unitDerived(name string) (Unit, bool) {
	for _, d := range [...]struct {
		si  string
		dim Dim
	}{
		{"N", Dim{1, 1, -2}},
		{"Pa", Dim{-1, 1, -2}},
		{"J", Dim{2, 1, -2}},
		{"W", Dim{2, 1, -3}},
		{"A", Dim{0, 0, 0, 1}},
		{"V", Dim{2, 1, -3, -1}},
		{"K", Dim{0, 0, 0, 0, 1}},
	} {
		prefix, ok := strings.CutSuffix(name, d.si)
		if !ok {
			continue
		}
		for _, p := range [...]struct {
			name   string
			factor float64
		}{{"", 1}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"h", 1e2}} {
			if p.name == prefix {
				return Unit{Factor: p.factor, Dim: d.dim, SI: d.si}, true
			}
		}
	}
	switch name {
	case "bar":
		return Unit{Factor: 1e5, Dim: Dim{-1, 1, -2}, SI: "Pa"}, true
	case "mbar":
		return Unit{Factor: 1e2, Dim: Dim{-1, 1, -2}, SI: "Pa"}, true
	case "psi": // 0.45359237 kg at 9.80665 m/s² on (25.4 mm)²
		return Unit{Factor: 0.45359237 * 9.80665 / (0.0254 * 0.0254), Dim: Dim{-1, 1, -2}, SI: "Pa"}, true
	case "Nm":
		return Unit{Factor: 1, Dim: Dim{2, 1, -2}, SI: "N.m"}, true
	}
	return Unit{}, false
}

// Convert returns the factor from one unit to another of the same dimension:
// value_to = value_from·factor.
func Convert(from, to string) (factor float64, err error) {
	f, err := Parse(from)
	if err != nil {
		return 0, err
	}
	t, err := Parse(to)
	if err != nil {
		return 0, err
	}
	if f.Dim != t.Dim {
		return 0, fmt.Errorf("model: unit %q (%v) does not fit %q (%v)", from, f.Dim, to, t.Dim)
	}
	if f.Factor == t.Factor {
		return 1, nil
	}
	return f.Factor / t.Factor, nil
}
