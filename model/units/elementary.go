package units

import (
	"math"
	"math/big"
)

// sin, cos and exp of package math have other last bits on other processors, and a replay evaluates
// the live commands of a run again. These sum the series in package big, which calculates with whole
// numbers: the results have the same bits on every processor, and are rounded once.

func sin(x float64) float64 {
	_, s := unitCircle(x)
	v, _ := s.Float64()
	return v
}

func cos(x float64) float64 {
	c, _ := unitCircle(x)
	v, _ := c.Float64()
	return v
}

func exp(x float64) float64 {
	x = min(max(x, -800), 800) // beyond float64
	even, odd, doublings := series(x, 1)
	sum := even.Add(even, odd)
	for range doublings {
		sum.Mul(sum, sum)
	}
	v, _ := sum.Float64()
	return v
}

// unitCircle returns cosine and sine of a finite x, rad. A doubling of the angle doubles the absolute
// error.
func unitCircle(x float64) (c, s *big.Float) {
	c, s, doublings := series(x, -1)
	for range doublings {
		product := new(big.Float).Mul(c, s)
		c.Sub(c.Mul(c, c), s.Mul(s, s))
		s.Add(product, product)
	}
	return c, s
}

// series returns the sums of the even and of the odd terms of 1 + y + y²/2! + ..., y = x/2^doublings,
// |y| < 1. With square -1 every factor y² is negative: the sums are then cos y and sin y. The sums
// have 192 bits, and one more for each doubling.
func series(x, square float64) (even, odd *big.Float, doublings int) {
	_, doublings = math.Frexp(x)
	doublings = max(doublings, 0)
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(uint(192 + doublings)).SetFloat64(v) }
	y, term := number(math.Ldexp(x, -doublings)), number(1)
	even, odd = number(1), number(0)
	for i := 1; i < 50+doublings/4; i++ { // the factorial exceeds the precision
		term.Quo(term.Mul(term, y), number(float64(i)))
		if i%2 == 1 {
			odd.Add(odd, term)
		} else {
			term.Mul(term, number(square))
			even.Add(even, term)
		}
	}
	return even, odd, doublings
}
