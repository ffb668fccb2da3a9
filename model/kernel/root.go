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
	switch {
	case k.t.Sparse != nil && k.onLaws:
		return k.calls.valueOnLaws(k, g, theta)
	case k.t.Sparse != nil:
		return k.indicatorAt(g, theta)
	}
	k.setIndicatorInputs(g, theta)
	return k.evaluateProgram(k.indicatorProgram(g), k.xd, k.w[:k.t.M])
}

// polyAt returns the value of the polynomial in poly at theta. Its even and its odd powers are summed
// side by side: each sum waits for its own last product only.
//
//go:nosplit
func (k *Kernel) polyAt(theta float64) float64 {
	even, odd, square, top := 0.0, 0.0, float64(theta*theta), len(k.poly)-2
	if k.t.Sparse != nil { // the terms above the degree of the substep and of its waves are 0
		top = max(k.degree, k.waveDegree) &^ 1
	}
	for j := top; j >= 0; j -= 2 {
		even = float64(even*square) + k.poly[j]
		odd = float64(odd*square) + k.poly[j+1]
	}
	return even + float64(odd*theta)
}

// slopeAt returns the derivative of the polynomial in poly at theta.
//
//go:nosplit
func (k *Kernel) slopeAt(theta float64) float64 {
	even, odd, square := 0.0, 0.0, float64(theta*theta)
	for j := len(k.poly) - 2; j >= 2; j -= 2 {
		even = float64(even*square) + float64(float64(j+1)*k.poly[j+1])
		odd = float64(odd*square) + float64(float64(j)*k.poly[j])
	}
	return float64(even*square) + k.poly[1] + float64(odd*theta)
}

// firstRoot returns the first place in [0, 1] at which a curve, positive at the start, becomes
// negative. A polynomial that starts negative has its root at 0; an event indicator that was just
// passed may start negative. A curve may turn between two samples: where the samples have a low
// point, the minimum there is located. For an event indicator this is done only where the
// neighbouring samples show that it can be negative.
//
//go:nosplit
func (k *Kernel) firstRoot(c int) (float64, bool) {
	const step = 1. / rootSamples
	a, fa := 0.0, 0.0
	if c == polynomial {
		if fa = k.poly[0]; fa < 0 {
			return 0, true
		}
		if k.staysPositive() {
			return 1, false
		}
		if k.falls() {
			return k.fallingRoot()
		}
	} else {
		if k.staysFar(c) {
			return 1, false
		}
		fa = k.curveAt(c, 0)
	}
	fa = max(fa, 0)
	left, before := a, fa // the sample before a; at the start only where the curve falls
	if c != polynomial || k.poly[1] >= 0 {
		before = -1 // below fa, which is at least 0
	}
	for j := 1; j <= rootSamples; j++ {
		b := float64(float64(j) * step)
		fb := k.curveAt(c, b)
		if before >= fa && fa <= fb && (c == polynomial || fa < max(before, fb)-fa) { // by the indicator's slope
			low := k.locateMinimum(c, left, b)
			if fl := k.curveAt(c, low); fl < 0 {
				return k.calls.refineRoot(k, c, left, low, before, fl), true
			}
		}

		if fb < 0 || c == polynomial && j == rootSamples && fb == 0 {
			return k.calls.refineRoot(k, c, a, b, fa, fb), true
		}
		left, before, a, fa = a, fa, b, fb
	}

	return 1, false
}

// staysFar reports whether event indicator g is far from zero, on its side, in the middle and at the end of the
// expanded substep. The event check, indicatorsMayPass, takes this for no event.
//
//go:nosplit
func (k *Kernel) staysFar(g int) bool {
	far := float64(nearZero * k.indicatorSize(g))
	for _, theta := range [2]float64{1, 0.5} {
		if !(k.indicatorMargin(g, k.valueAt(g, theta)) >= far) {
			return false
		}
	}
	return true
}

// staysPositive reports whether poly cannot reach zero in [0, 1]: because of all its terms, because
// of those that bend it where it rises, or because it rises and bends upwards, as a slip does that
// has just left zero.
//
//go:nosplit
func (k *Kernel) staysPositive() bool {
	higher := 0.0
	for _, c := range k.poly[3:] {
		higher += math.Abs(c)
	}
	c0, c1, c2 := k.poly[0], k.poly[1], k.poly[2]
	bends := math.Abs(c2) + higher
	rounding := float64(1e-12 * (c0 + math.Abs(c1) + bends))
	return c0 > rounding && (c1 > bends || c0-rounding > math.Abs(c1)+bends || c1 >= 0 && c2 > higher)
}

// falls reports whether poly falls over the whole of [0, 1]: its linear term outweighs the slopes of
// all others.
//
//go:nosplit
func (k *Kernel) falls() bool {
	others := 0.0
	for j := 2; j < len(k.poly); j++ {
		others += float64(float64(j) * math.Abs(k.poly[j]))
	}
	return -k.poly[1] > float64(others*(1+1e-12))
}

// fallingRoot returns the root in [0, 1] of poly, which falls from a value that is not negative, by
// Newton's method from the root of its parabola. [a, b] encloses the root: a step beyond it becomes a
// bisection, and a step below the least distance moves the other end. Where a nearly level polynomial
// rounds to zero at many places, the least distance from a doubles. The result is as of refineRoot.
//
//go:nosplit
func (k *Kernel) fallingRoot() (float64, bool) {
	c0, c1, c2 := k.poly[0], k.poly[1], k.poly[2]
	switch {
	case c0 == 0: // just beyond, where a torque that starts at zero has its sign
		return rootTol, true
	case !(k.polyAt(1) <= 0): // or not a number
		return 1, false
	}
	a, b, least := 0.0, 1.0, 0.5 // least: distance from a, as part of tol
	next := 2 * c0 / (math.Sqrt(max(0, float64(c1*c1)-float64(4*c0*c2))) - c1)
	for range 90 {
		tol := float64(rootTol * b)
		if b-a <= tol {
			break
		}
		if !(next >= a && next <= b) {
			next = a + float64((b-a)/2)
		}
		at := min(max(next, a+float64(tol*least)), b-float64(tol/2))
		value := k.polyAt(at)
		if value >= 0 {
			a = at
		} else {
			b = at
		}
		if value == 0 {
			least = float64(2 * least)
		} else {
			least = 0.5
		}
		next = at - value/k.slopeAt(at)
	}
	return b, true
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
