package kernel

import "math"

// rootSamples are the places at which a curve is looked at for its first change
// of sign. A piece is at most one radian of the fastest mode, so nothing turns
// twice between two of them.
const rootSamples = 16

// thePoly stands for the polynomial in poly; a curve from 0 on is a guard.
const thePoly = -1

// curve is the value of a curve at theta of the expanded piece, positive while
// there is no event.
//
//go:nosplit
func (k *Kernel) curve(c int, theta float64) float64 {
	if c != thePoly {
		if k.t.Net != nil {
			return k.side[c]*k.guardAt(c, theta) + guardZero*(1+k.reach[c])
		}
		k.glance(c, theta)
		return k.side[c]*k.run(k.guard(c), k.xd, k.w[:k.t.M]) + guardZero*(1+k.reach[c])
	}
	return k.polyAt(theta)
}

// polyAt is the value of the polynomial in poly.
//
//go:nosplit
func (k *Kernel) polyAt(theta float64) float64 {
	s := 0.0
	for j := len(k.poly) - 1; j >= 0; j-- {
		s = s*theta + k.poly[j]
	}
	return s
}

// firstRoot is the first place in [0, 1] at which a curve, positive at the start,
// becomes negative. A polynomial that starts negative has it at 0; a guard that
// was just passed may. Between two samples a curve may turn: where the samples
// have a low point, its own is looked at; of a guard only where the samples beside
// it say that it can be negative.
//
//go:nosplit
func (k *Kernel) firstRoot(c int) (float64, bool) {
	if c == thePoly && k.staysAbove() {
		return 1, false
	}
	const step = 1. / rootSamples
	a, fa := 0.0, k.curve(c, 0)
	if fa < 0 && c == thePoly {
		return 0, true
	}
	fa = max(fa, 0)
	left, before := a, fa // the sample before a; at the start, where the curve falls
	if c != thePoly || k.poly[1] >= 0 {
		before = math.Inf(-1)
	}
	for j := 1; j <= rootSamples; j++ {
		b := float64(j) * step
		fb := k.curve(c, b)
		if before >= fa && fa <= fb && (c == thePoly || fa < max(before, fb)-fa) { // as steep as a guard falls or rises
			low := k.lowest(c, left, b)
			if fl := k.curve(c, low); fl < 0 {
				return k.refine(c, left, low, before, fl), true
			}
		}
		if fb < 0 || c == thePoly && j == rootSamples && fb == 0 {
			return k.refine(c, a, b, fa, fb), true
		}
		left, before, a, fa = a, fa, b, fb
	}
	return 1, false
}

// staysAbove reports whether the terms of poly cannot take it to zero: all together, or
// those that bend it where it rises.
//
//go:nosplit
func (k *Kernel) staysAbove() bool {
	bends := 0.0
	for _, c := range k.poly[2:] {
		bends += math.Abs(c)
	}
	c0, c1 := k.poly[0], k.poly[1]
	rounding := 1e-12 * (c0 + math.Abs(c1) + bends)
	return c0 > rounding && (c1 > bends || c0-rounding > math.Abs(c1)+bends)
}

// lowest is where a curve is lowest in [a, b], where it turns once, or a place
// where it is negative.
//
//go:nosplit
func (k *Kernel) lowest(c int, a, b float64) float64 {
	for range 32 { // (2/3)^32 is 2e-6 of a step: the value is then good to 1e-12
		l, r := a+(b-a)/3, b-(b-a)/3
		fl, fr := k.curve(c, l), k.curve(c, r)
		switch {
		case fl < 0:
			return l
		case fl < fr:
			b = r
		default:
			a = l
		}
	}
	return a
}

// refine narrows [a, b] with curve(a) >= 0 >= curve(b) to rounding, by the
// Illinois secant with a bisection every third time, and returns the end where
// the curve is not positive.
//
//go:nosplit
func (k *Kernel) refine(c int, a, b, fa, fb float64) float64 {
	kept := 0 // which end stayed in the last step: -1 a, 1 b
	for i := range 90 {
		m := a + (b-a)/2
		if i%3 != 2 && fa > fb {
			if s := b - fb*(b-a)/(fb-fa); s > a && s < b {
				m = s
			}
		}
		if m <= a || m >= b {
			break
		}
		if fm := k.curve(c, m); fm >= 0 {
			a, fa = m, fm
			if kept == 1 {
				fb /= 2
			}
			kept = 1
		} else {
			b, fb = m, fm
			if kept == -1 {
				fa /= 2
			}
			kept = -1
		}
	}
	return b
}
