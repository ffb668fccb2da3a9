package kernel

import "math"

// rootSamples is the number of places at which a curve is sampled for its first change of sign. A
// substep is at most one radian of the fastest mode, so no curve turns twice between two samples.
const rootSamples = 16

// polynomial selects the curve in poly; a number from 0 on selects that event indicator.
const polynomial = -1

// curveAt returns the value of a curve at theta of the expanded substep; positive where there is no
// event.
//
//go:nosplit
func (k *Kernel) curveAt(c int, theta float64) float64 {
	if c != polynomial {
		return k.indicatorMargin(c, k.valueAt(c, theta)) + k.indicatorNoise(c)
	}

	return k.polyAt(theta)
}

// valueAt returns the value of event indicator g at theta of the expanded substep; in a
// sparse plant prepareIndicator has prepared it.
//
//go:nosplit
func (k *Kernel) valueAt(g int, theta float64) float64 {
	if k.t.Sparse != nil {
		return k.indicatorAt(g, theta)
	}
	k.setIndicatorInputs(g, theta)
	return k.evaluateProgram(k.indicatorProgram(g), k.xd, k.w[:k.t.M])
}

// polyAt returns the value of the polynomial in poly at theta.
//
//go:nosplit
func (k *Kernel) polyAt(theta float64) float64 {
	s := 0.0
	for j := len(k.poly) - 1; j >= 0; j-- {
		s = float64(s*theta) + k.poly[j]
	}
	return s
}

// firstRoot returns the first place in [0, 1] at which a curve, positive at the start, becomes
// negative. A polynomial that starts negative has its root at 0; an event indicator that was just
// passed may start negative. A curve may turn between two samples: where the samples have a low
// point, the minimum there is located. For an event indicator this is done only where the
// neighbouring samples show that it can be negative.
//
//go:nosplit
func (k *Kernel) firstRoot(c int) (float64, bool) {
	if c == polynomial && k.staysPositive() {
		return 1, false
	}
	const step = 1. / rootSamples
	a, fa := 0.0, k.curveAt(c, 0)
	if fa < 0 && c == polynomial {
		return 0, true
	}
	fa = max(fa, 0)
	left, before := a, fa // the sample before a; at the start only where the curve falls
	if c != polynomial || k.poly[1] >= 0 {
		before = math.Inf(-1)
	}
	for j := 1; j <= rootSamples; j++ {
		b := float64(float64(j) * step)
		fb := k.curveAt(c, b)
		if before >= fa && fa <= fb && (c == polynomial || fa < max(before, fb)-fa) { // by the indicator's slope
			low := k.locateMinimum(c, left, b)
			if fl := k.curveAt(c, low); fl < 0 {
				return k.refineRoot(c, left, low, before, fl), true
			}
		}

		if fb < 0 || c == polynomial && j == rootSamples && fb == 0 {
			return k.refineRoot(c, a, b, fa, fb), true
		}
		left, before, a, fa = a, fa, b, fb
	}

	return 1, false
}

// staysPositive reports whether poly cannot reach zero in [0, 1]: because of all its terms, or
// because of those that bend it where it rises.
//
//go:nosplit
func (k *Kernel) staysPositive() bool {
	bends := 0.0
	for _, c := range k.poly[2:] {
		bends += math.Abs(c)
	}
	c0, c1 := k.poly[0], k.poly[1]
	rounding := float64(1e-12 * (c0 + math.Abs(c1) + bends))
	return c0 > rounding && (c1 > bends || c0-rounding > math.Abs(c1)+bends)
}

// locateMinimum returns the place of the minimum of a curve in [a, b], in which it turns once, or a
// place where it is negative.
//
//go:nosplit
func (k *Kernel) locateMinimum(c int, a, b float64) float64 {
	for range 32 { // (2/3)^32 is 2e-6 of a step: the value is exact to 1e-12
		l, r := a+(b-a)/3, b-(b-a)/3
		fl, fr := k.curveAt(c, l), k.curveAt(c, r)
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

// rootTol is the distance of two places in a substep below which they are one, as part of their
// distance from its start. It is relative because accumulations of impacts amplify it.
const rootTol = 1. / (1 << 51)

// refineRoot narrows [a, b] with curve(a) >= 0 >= curve(b) to rootTol, by the Illinois secant. Where
// three evaluations have not halved the interval, the third is a bisection. The secant approaches the
// root from one side; a place at the least distance beyond it moves the other end. It returns the end
// at which the curve is not positive.
//
//go:nosplit
func (k *Kernel) refineRoot(c int, a, b, fa, fb float64) float64 {
	kept, width := 0, b-a // kept: the end that stayed in the last step, -1 a, 1 b
	for i := range 90 {
		tol := float64(rootTol * b)
		if b-a <= tol {
			break
		}
		m, secant := a+float64((b-a)/2), fa > fb
		if i%3 == 2 {
			secant = secant && b-a <= width/2
			width = b - a
		}
		if secant {
			if s := b - fb*(b-a)/(fb-fa); s >= a && s <= b {
				m = min(max(s, a+float64(tol/2)), b-float64(tol/2))
			}
		}

		if fm := k.curveAt(c, m); fm >= 0 {
			a, fa = m, fm
			if kept == 1 {
				fb = float64(fb / 2)
			}
			kept = 1
		} else {
			b, fb = m, fm
			if kept == -1 {
				fa = float64(fa / 2)
			}
			kept = -1
		}
	}

	return b
}
