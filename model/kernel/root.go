package kernel

import "math"

// rootSamples are the places at which a polynomial is looked at for its first
// change of sign. A piece is at most one radian of the fastest mode, so nothing
// turns twice between two of them.
const rootSamples = 16

// firstRoot is the first place in (0, 1] at which the polynomial p, positive at
// the start, becomes negative. A polynomial that starts negative has it at 0.
// Between two samples it may turn: where the samples have a low point, the
// polynomial's own is looked at.
func firstRoot(p []float64) (float64, bool) {
	const step = 1. / rootSamples
	a, fa, before := 0.0, p[0], math.Inf(1) // before: the value a step before a
	if fa < 0 {
		return 0, true
	}
	for j := 1; j <= rootSamples; j++ {
		b := float64(j) * step
		fb := eval(p, b)
		if before >= fa && fa <= fb && j > 1 {
			if low := lowest(p, a-step, b); eval(p, low) < 0 {
				return refine(p, a-step, low, before, eval(p, low)), true
			}
		}
		if fb < 0 || j == rootSamples && fb == 0 {
			return refine(p, a, b, fa, fb), true
		}
		a, fa, before = b, fb, fa
	}
	return 1, false
}

// lowest is where p is lowest in [a, b], where it turns once, or a place where it
// is negative.
func lowest(p []float64, a, b float64) float64 {
	for range 32 { // (2/3)^32 is 2e-6 of a step: the value is then good to 1e-12
		l, r := a+(b-a)/3, b-(b-a)/3
		fl, fr := eval(p, l), eval(p, r)
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

// refine narrows [a, b] with p(a) >= 0 >= p(b) to rounding, by the Illinois
// secant with a bisection every third time, and returns the end where p is not
// positive.
func refine(p []float64, a, b, fa, fb float64) float64 {
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
		if fm := eval(p, m); fm >= 0 {
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

func eval(p []float64, theta float64) float64 {
	s := 0.0
	for j := len(p) - 1; j >= 0; j-- {
		s = s*theta + p[j]
	}
	return s
}
