package kernel

// rootSamples are the places at which a polynomial is looked at for its first
// change of sign. A piece is at most one radian of the fastest mode, so nothing
// turns twice between two of them.
const rootSamples = 16

// firstRoot is the first place in (0, 1] at which the polynomial p, positive at
// the start, becomes negative. A polynomial that starts negative has it at 0.
func firstRoot(p []float64) (float64, bool) {
	a, fa := 0.0, p[0]
	if fa < 0 {
		return 0, true
	}
	for j := 1; j <= rootSamples; j++ {
		b := float64(j) / rootSamples
		fb := eval(p, b)
		if fb < 0 || j == rootSamples && fb == 0 {
			return refine(p, a, b, fa, fb), true
		}
		a, fa = b, fb
	}
	return 1, false
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
