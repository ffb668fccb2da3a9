package element

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/model/units"
)

// Within returns p with sizes in place of those of its unit. 0 leaves the end that the unit has. With
// the bound NotNegative, least is the least number above 0.
func (p Parameter) Within(least, most float64) Parameter {
	p.Least, p.Most = least, most
	return p
}

// sizes returns the sizes of a number of p, which has the unit of its last column.
func (p Parameter) sizes() units.Sizes {
	list := p.Units()
	s := units.SizesOf(units.Want(list[len(list)-1]).Unit)
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
	case p.Form == OverTime && p.Bound == NotNegative:
		return "0 to " + most
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
