// Package units owns the notation of quantities: units of measure, numbers and expressions with
// units, names, and the ports that carry a quantity in a unit. It does not know the purpose of a
// quantity.
//
// Reading order: units.go (Unit, Wanted, Port), expr.go (Quantity: expressions),
// typed.go (the rule for typed numbers), respell.go (proposals for unknown spellings), names.go (the
// nearest name).
package units

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Unit is a unit of measure: value_SI = value·Factor.
//
// Angles are numbers (rad = 1), as in the SI, so that N·m·s/rad and N·m·s are the same unit. Cycles
// are a dimension: rpm is a unit of angular speed, Hz is not.
type Unit struct {
	Factor float64 // > 0
	Dim    Dim
	SI     string // the same unit spelled in SI: "Pa" for "bar", "rad/s" for "rpm"
}

// Dim holds the exponents of m, kg, s, A, K and cycle.
type Dim [6]int8

// fits reports whether a value in u can be converted to w. A share in % is no angle, though both are
// numbers in the SI.
func (u Unit) fits(w Unit) bool {
	percent := atoms["%"]
	return u.Dim == w.Dim && !(u == percent && w.SI == "rad" || u.SI == "rad" && w == percent)
}

// String spells the dimension in base units: "kg.m2/s2"; "1" for a number.
func (d Dim) String() string {
	var over []string
	under := ""
	for _, i := range [...]int{1, 0, 2, 3, 4, 5} {
		name := [...]string{"m", "kg", "s", "A", "K", "cycle"}[i]
		if e := max(d[i], -d[i]); e > 1 {
			name += strconv.Itoa(int(e))
		}
		switch {
		case d[i] > 0:
			over = append(over, name)
		case d[i] < 0:
			under += "/" + name
		}
	}

	return cmp.Or(strings.Join(over, "."), "1") + under
}

// SIUnit returns the SI unit of a dimension, with the spelling of AllSizes where that has the dimension.
func SIUnit(d Dim) Unit {
	if s, ok := sizesOf[d]; ok {
		return Want(s.Unit).Unit
	}
	return Unit{Factor: 1, Dim: d, SI: d.String()}
}

// Product returns the SI unit of a quantity in u times one in f, or over it.
func (u Unit) Product(f Unit, over bool) (Unit, error) {
	power := 1
	if over {
		power = -1
	}
	if f.Dim == (Dim{}) {
		return Unit{Factor: 1, Dim: u.Dim, SI: u.SI}, nil
	}
	if u.Dim == (Dim{}) && !over {
		return Unit{Factor: 1, Dim: f.Dim, SI: f.SI}, nil
	}
	d, err := u.Dim.plus(f.Dim, power)
	return SIUnit(d), err
}

// maxExponent bounds the exponents of a unit, so that products fit int8.
const maxExponent = 12

// plus returns the dimension of a product with e to the power n.
func (d Dim) plus(e Dim, n int) (Dim, error) {
	for i := range d {
		x := int(d[i]) + n*int(e[i])
		if x > maxExponent || x < -maxExponent {
			return d, errors.New("a power of a unit is too large")
		}
		d[i] = int8(x)
	}

	return d, nil
}

// perMinute holds spellings of rpm, which are not read as quotients.
var perMinute = []string{"1/min", "U/min", "rev/min", "min^-1", "min⁻¹"}

// Parse reads a unit such as "N.m.s/rad", "kg·m²", "bar", "rpm" or "N/bar".
//
// Factors are joined by "." or "·"; "/" divides by the one factor after it, or by
// a group in parentheses; powers are written m2, m^2, m², s^-1. "" and "1" are a
// bare number; "1/min", "min^-1" and "U/min" are revolutions per minute.
//
// An error proposes the right spelling, if it is clear.
func Parse(s string) (Unit, error) {
	if len(s) > 100 {
		return Unit{}, fmt.Errorf("model: unit of %d characters is too long", len(s))
	}
	u, err := parse(s)
	if err == nil {
		return u, nil
	}
	if hint := writeUnit(s); hint != "" {
		err = fmt.Errorf("%q is not a known unit; %s", s, hint)
	}
	return Unit{}, fmt.Errorf("model: unit %q: %w", s, err)
}

func parse(s string) (Unit, error) {
	switch {
	case s == "" || s == "-":
		return Unit{Factor: 1, SI: "1"}, nil
	case slices.Contains(perMinute, s):
		return parse("rpm")
	}
	u, rest, err := unitProduct(s, true, 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("unexpected %q", rest)
	}
	if rest != "" {
		return Unit{}, err
	}
	return u, nil
}

// Reason returns the text of an error of this package without its prefix.
func Reason(err error) string { return strings.TrimPrefix(err.Error(), "model: ") }

// unitProduct reads the units at the start of s; rest follows them, and err tells why rest does not
// begin with a further unit. With one, the number 1 is also a factor.
func unitProduct(s string, one bool, depth int) (u Unit, rest string, err error) {
	u, rest, err = unitFactor(s, one, depth)
	for err == nil {
		join := joinForm.FindString(rest)
		if join == "" {
			break
		}
		f, after, wrong := unitFactor(rest[len(join):], one, depth)
		if wrong == nil {
			f, wrong = u.times(f, join == "/")
		}
		if wrong != nil || strings.HasPrefix(after, "_") { // m/s_x divides by s_x
			return u, rest, wrong
		}
		u, rest = f, after
	}

	return u, rest, err
}

// unitFactor reads a unit with its power, or a group in parentheses.
func unitFactor(s string, one bool, depth int) (u Unit, rest string, err error) {
	if group, ok := strings.CutPrefix(s, "("); ok {
		if depth > 3 {
			return u, s, errors.New("parentheses are nested too deeply")
		}
		u, rest, err = unitProduct(group, true, depth+1)
		if after, ok := strings.CutPrefix(rest, ")"); ok && rest != group {
			return u, after, nil
		}
		return u, s, cmp.Or(err, errors.New("a closing parenthesis is missing"))
	}

	name := s[:atomLen(s)]
	if one && strings.HasPrefix(s, "1") {
		name = "1"
	}
	u, ok := unitAtom(name)
	if !ok {
		return u, s, fmt.Errorf("%q is not a known unit", name)
	}
	rest = s[len(name):]
	written := powerForm.FindString(rest)
	if written == "" {
		return u, rest, nil
	}
	rest = rest[len(written):]
	p, _ := strconv.Atoi(superscripts.Replace(strings.TrimPrefix(written, "^")))
	switch {
	case p == 0 || p > maxExponent || p < -maxExponent:
		return u, s, fmt.Errorf("power of %q is not 1 to %d", name, maxExponent)
	case p == 1:
		return u, rest, nil
	case strings.ContainsAny(u.SI, "/."):
		return u, s, fmt.Errorf("a power of %q is not supported", name)
	}

	u.Factor = math.Pow(u.Factor, float64(p))
	if p < 0 {
		u.SI += "^"
	}
	u.SI += strconv.Itoa(p)
	if u.Dim, err = (Dim{}).plus(u.Dim, p); err != nil {
		return u, s, err
	}
	return u, rest, nil
}

// Forms of the sign between factors and of an exponent: "2", "^-1", "²", "⁻¹".
var (
	joinForm     = regexp.MustCompile(`^[./·]`)
	powerForm    = regexp.MustCompile(`^(\^-?[0-9]+|[0-9]+|⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)`)
	superscripts = strings.NewReplacer("⁻", "-", "⁰", "0", "¹", "1", "²", "2", "³", "3", "⁴", "4",
		"⁵", "5", "⁶", "6", "⁷", "7", "⁸", "8", "⁹", "9")
)

// times returns u·f, or u/f.
func (u Unit) times(f Unit, divide bool) (Unit, error) {
	power, join, si := 1, ".", f.SI
	u.Factor = float64(u.Factor * f.Factor)
	if divide {
		power, join = -1, "/"
		u.Factor /= float64(f.Factor * f.Factor)
		if strings.ContainsAny(si, "/.") {
			si = "(" + si + ")"
		}
	}

	u.SI += join + si
	err := u.checkFactor()
	if err == nil {
		u.Dim, err = u.Dim.plus(f.Dim, power)
	}
	return u, err
}

// mostFactor bounds the factor of a unit and its inverse, so that products of quantities are finite.
const mostFactor = 1e40

func (u Unit) checkFactor() error {
	if !(u.Factor >= 1/mostFactor && u.Factor <= mostFactor) {
		return fmt.Errorf("a unit of %.3g SI units is outside %g to %g", u.Factor, 1/mostFactor, mostFactor)
	}
	return nil
}

// atomLen returns the length of the unit name at the start of s, bytes.
func atomLen(s string) int {
	for i, r := range s {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("%°µμ", r)) {
			return i
		}
	}

	return len(s)
}

// atoms holds the units that take no prefix.
var atoms = map[string]Unit{
	"1": {1, Dim{}, "1"}, "%": {0.01, Dim{}, "1"},
	"rad": {1, Dim{}, "rad"}, "deg": {math.Pi / 180, Dim{}, "rad"}, "°": {math.Pi / 180, Dim{}, "rad"},
	"rpm": {math.Pi / 30, Dim{0, 0, -1}, "rad/s"}, "Hz": {1, Dim{0, 0, -1, 0, 0, 1}, "Hz"},

	"s": {1, Dim{0, 0, 1}, "s"}, "ms": {1e-3, Dim{0, 0, 1}, "s"}, "ns": {1e-9, Dim{0, 0, 1}, "s"},
	"us": {1e-6, Dim{0, 0, 1}, "s"}, "µs": {1e-6, Dim{0, 0, 1}, "s"}, "μs": {1e-6, Dim{0, 0, 1}, "s"},
	"min": {60, Dim{0, 0, 1}, "s"}, "h": {3600, Dim{0, 0, 1}, "s"},

	"m": {1, Dim{1}, "m"}, "mm": {1e-3, Dim{1}, "m"}, "cm": {1e-2, Dim{1}, "m"}, "km": {1e3, Dim{1}, "m"},
	"um": {1e-6, Dim{1}, "m"}, "µm": {1e-6, Dim{1}, "m"}, "μm": {1e-6, Dim{1}, "m"},
	"kmh": {1 / 3.6, Dim{1, 0, -1}, "m/s"}, "kph": {1 / 3.6, Dim{1, 0, -1}, "m/s"},
	"mph": {0.44704, Dim{1, 0, -1}, "m/s"},

	"kg": {1, Dim{0, 1}, "kg"}, "g": {1e-3, Dim{0, 1}, "kg"}, "mg": {1e-6, Dim{0, 1}, "kg"}, "t": {1e3, Dim{0, 1}, "kg"},

	"Nm":  {1, Dim{2, 1, -2}, "N.m"},
	"bar": {1e5, Dim{-1, 1, -2}, "Pa"}, "mbar": {1e2, Dim{-1, 1, -2}, "Pa"},
	// Pounds at 9.80665 m/s² on square inches.
	"psi": {0.45359237 * 9.80665 / (0.0254 * 0.0254), Dim{-1, 1, -2}, "Pa"},
}

// derived holds the units that take prefixes.
var (
	derived = map[string]Dim{
		"N": {1, 1, -2}, "Pa": {-1, 1, -2}, "J": {2, 1, -2}, "W": {2, 1, -3},
		"A": {0, 0, 0, 1}, "V": {2, 1, -3, -1}, "K": {0, 0, 0, 0, 1},
	}
	prefixes = map[string]float64{"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "h": 1e2}
)

// unitAtom returns a unit by its name with prefix: "kN", "bar", "mm".
func unitAtom(name string) (Unit, bool) {
	if u, ok := atoms[name]; ok {
		return u, true
	}
	for si, dim := range derived {
		if prefix, ok := strings.CutSuffix(name, si); ok && prefixes[prefix] > 0 {
			return Unit{prefixes[prefix], dim, si}, true
		}
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
	if !f.fits(t) {
		return 0, fmt.Errorf("model: unit %q (%v) does not fit %q (%v)", from, f.Dim, to, t.Dim)
	}
	if f.Factor == t.Factor {
		return 1, nil
	}
	return f.Factor / t.Factor, nil
}

// Wanted is the unit in which people read and type a quantity: value_SI = value·Factor + Zero.
type Wanted struct {
	Unit
	Spelled string  // the unit as people write it: "bar", "degC"
	Zero    float64 // SI value of the number 0; 273.15 for degC, else 0

	NeedsUnit  bool // the rule of Typed holds; else a number without a unit is in this one
	difference bool // a difference of two values, which cannot be in degC
	unknown    bool // a unit of a database that this package does not know; the factor is 1
}

// Want returns a known unit as Wanted.
func Want(spelled string) Wanted {
	w, _ := ParseWanted(spelled)
	return w
}

// ParseWanted reads a unit as Parse does, and also degC.
func ParseWanted(spelled string) (Wanted, error) {
	if isCelsius(spelled) {
		return Wanted{Unit: Unit{1, Dim{4: 1}, "K"}, Spelled: spelled, Zero: zeroCelsius}, nil
	}
	u, err := Parse(spelled)
	return Wanted{Unit: u, Spelled: spelled}, err
}

// WantSignal returns the unit of a signal in its database. Values in a unit that this package does not
// know are numbers without a unit, or with exactly that text.
func WantSignal(spelled string) Wanted {
	w, err := ParseWanted(spelled)
	if err != nil {
		return Wanted{Unit: Unit{Factor: 1}, Spelled: spelled, unknown: true}
	}
	return w
}

func isCelsius(unit string) bool { return unit == "degC" || unit == "°C" }

// Strict returns w with the rule for typed text.
func (w Wanted) Strict() Wanted {
	w.NeedsUnit = true
	return w
}

// Difference returns the unit of a difference of two values in w: K for degC.
func (w Wanted) Difference() Wanted {
	if w.difference = true; w.Zero != 0 {
		w.Spelled, w.Zero = w.SI, 0
	}
	return w
}

// ToSI converts a number in w to SI.
func (w Wanted) ToSI(x float64) float64 { return float64(x*w.Factor) + w.Zero }

// FromSI converts an SI value to a number in w.
func (w Wanted) FromSI(si float64) float64 { return (si - w.Zero) / w.Factor }

// Format formats an SI value in w.
func (w Wanted) Format(si float64) string { return Format(w.FromSI(si), w.Spelled) }

// FormatRange formats a range of SI values in w: "0 to 40 bar".
func (w Wanted) FormatRange(low, high float64) string {
	return WithUnit(fmt.Sprintf("%.9g to %.9g", w.FromSI(low), w.FromSI(high)), w.Spelled)
}

// Spell returns another unit of the same dimension.
func (w Wanted) Spell(unit string) (Wanted, error) {
	other, err := ParseWanted(unit)
	if err == nil && !other.fits(w.Unit) {
		err = fmt.Errorf("model: unit %q (%v) does not fit %q (%v)", unit, other.Dim, w.Spelled, w.Dim)
	}
	return other, err
}

// Format formats a number with up to nine digits and its unit: "3 bar".
func Format(x float64, unit string) string { return WithUnit(fmt.Sprintf("%.9g", x), unit) }

// WithUnit returns a number with its unit, without one if it has no dimension.
func WithUnit(number, unit string) string {
	if unit == "" || unit == "1" {
		return number
	}
	return number + " " + unit
}

// DropRounding rounds a difference to nine digits, for errors.
func DropRounding(v float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 9, 64), 64)
	return short
}

// Port is an input or an output of a plant.
type Port struct {
	Name     string
	Unit     string  // SI, spelled as Parse reads it; "1" for a bare number
	Declared string  // unit that the plant file declares: "bar", "degC"; "" for none, which is Unit
	Min, Max float64 // accepted range in Unit; ±Inf: no limit
	Beyond   Beyond
	Flag     bool // only 0 and 1
}

// DeclaredUnit returns the unit in which people read and type the values of p. The values of a plant
// are in Unit.
func (p *Port) DeclaredUnit() Wanted { return Want(cmp.Or(p.Declared, p.Unit)) }

// Beyond tells which value a signal carries for an output outside the range of the signal.
type Beyond uint8

const (
	Border Beyond = iota // the end of the range, which counts as saturation
	Rests                // the end of the range, as intended: a timer that has expired
	Wraps                // the value continues from the other end, as of a counter
)
