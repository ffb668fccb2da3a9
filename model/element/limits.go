package element

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/model/units"
)

// Sizes is the range of the absolute values of numbers in a unit, SI.
type Sizes struct {
	Unit  string
	Least float64 // of a number that may not be 0; also the least distance of two rows of a table
	Most  float64
}

// AllSizes lists the sizes by unit, from micromechanics to ships. Products of a few values within
// them are finite. A parameter may narrow or widen them: Parameter.Within.
var AllSizes = []Sizes{
	{"1", 1e-12, 1e12}, // also rad
	{"s", 1e-9, 1e9},
	{"rad/s", 1e-9, 1e7},
	{"rad/s2", 1e-9, 1e12},
	{"Hz", 1e-9, 1e7},
	{"m", 1e-9, 1e9},
	{"1/m", 1e-9, 1e9},
	{"m/s", 1e-9, 1e6},
	{"m/s2", 1e-9, 1e9},
	{"s/m", 1e-9, 1e9},
	{"m2", 1e-18, 1e6},
	{"m3", 1e-21, 1e6},
	{"m3/s", 1e-21, 1e6},
	{"kg", 1e-9, 1e9},
	{"kg.m2", 1e-12, 1e12}, // also N.m.s2
	{"kg/m3", 1e-6, 1e6},
	{"N.m", 1e-12, 1e15}, // also N.m/rad and J
	{"N", 1e-12, 1e15},
	{"N/m", 1e-12, 1e15},
	{"N/m3", 1e-6, 1e21},
	{"N.m.s", 1e-15, 1e12}, // also N.m.s/rad and N.m.s/rad2
	{"N.s/m", 1e-15, 1e12},
	{"N.s/m2", 1e-15, 1e12},
	{"Pa", 1e-6, 1e11},
	{"Pa/m3", 1e-3, 1e21},
	{"W", 1e-12, 1e15},
	{"K", 1e-3, 1e5},
	{"1/K", 1e-9, 1e3},
	{"J/K", 1e-9, 1e12},
	{"W/K", 1e-9, 1e12},
	{"A", 1e-9, 1e7},
	{"V", 1e-9, 1e9},
}

// SizesOf returns the sizes of numbers with the dimension of a unit; 1e-15 to 1e15 for a dimension
// that AllSizes lacks.
func SizesOf(u units.Unit) Sizes {
	if s, ok := sizesOf[u.Dim]; ok {
		return s
	}
	return Sizes{u.SI, 1e-15, 1e15}
}

// sizesOf holds AllSizes by dimension.
var sizesOf = func() map[units.Dim]Sizes {
	of := map[units.Dim]Sizes{}
	for _, s := range AllSizes {
		of[units.Want(s.Unit).Dim] = s
	}
	return of
}()

// Within returns p with sizes in place of those of its unit. 0 leaves the end that the unit has. With
// the bound NotNegative, least is the least number above 0.
func (p Parameter) Within(least, most float64) Parameter {
	p.Least, p.Most = least, most
	return p
}

// sizes returns the sizes of a number of p, which has the unit of its last column.
func (p Parameter) sizes() Sizes {
	list := p.Units()
	s := SizesOf(units.Want(list[len(list)-1]).Unit)
	if p.Least > 0 {
		s.Least = p.Least
	}
	if p.Most > 0 {
		s.Most = p.Most
	}
	return s
}

// Range describes the numbers that p accepts, in SI and without the unit: "1e-12 to 1e12".
func (p Parameter) Range() string {
	s := p.sizes()
	least, most := short(s.Least), short(s.Most)
	switch {
	case p.Bound == Positive && p.Form == OverTime: // it may be 0 at times
		return "up to " + most
	case p.Form == OverTime && p.Bound != Share:
		return "-" + most + " to " + most
	}
	switch p.Bound {
	case Positive:
		return least + " to " + most
	case NotNegative:
		if p.Least > 0 {
			return "0, " + least + " to " + most
		}
		return "0 to " + most
	case Nonzero:
		return "±" + least + " to ±" + most
	case AtLeastOne:
		return "1 to " + most
	case Share:
		return "0 to 1"
	case Fraction:
		return least + " to 1"
	}
	return "-" + most + " to " + most
}

// outside reports whether a number that the bound accepts has a size that p does not.
func (p Parameter) outside(x float64) bool {
	s, size := p.sizes(), math.Abs(x)
	small := size < s.Least
	switch p.Bound {
	case Any, Share, AtLeastOne:
		small = false
	case NotNegative:
		small = small && x != 0 && p.Least > 0
	}
	return small || !(size <= s.Most)
}

// short formats a number without the sign and the zeros of its exponent: "1e12".
func short(x float64) string {
	digits, exponent, large := strings.Cut(strconv.FormatFloat(x, 'g', -1, 64), "e")
	if !large {
		return digits
	}
	n, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%se%d", digits, n)
}
