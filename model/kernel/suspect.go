package kernel

import "math"

// suspect reports whether the piece from x to x1 can hold an event.
//
//go:nosplit
func (k *Kernel) suspect() bool {
	k.slips.mul(k.slip1, k.x1)
	k.rates(k.w0)
	k.instant(1)
	for i, mode := range k.mode {
		switch mode {
		case Free:
		case Stuck:
			if k.yields(i) != 0 {
				return true
			}
		default:
			if k.dips(i) {
				return true
			}
		}
	}
	for _, i := range k.t.Gapped {
		if k.mode[i] == Free && k.closes(i) {
			return true
		}
	}
	for s := range k.region {
		if k.leaves(s, 1) || k.leaves(s, -1) {
			return true
		}
	}
	k.torqued(k.x1, 1)
	for g := range k.side {
		if k.passed(g, k.x1) {
			return true
		}
	}
	return false
}

// guardZero is the part of the largest value of a guard so far, and of one, that
// counts as zero: a torque of rounding has no side.
const guardZero = 1e-12

// passed reports whether guard g stands on the other side in state x, with w and
// tau as they are.
//
//go:nosplit
func (k *Kernel) passed(g int, x []float64) bool {
	v := k.run(k.guard(g), x, k.w[:k.t.M])
	k.reach[g] = max(k.reach[g], math.Abs(v))
	return k.side[g]*v < -guardZero*(1+k.reach[g])
}

// yields is the side, +1 or -1, on which the lock torque of stuck element i can
// exceed its static capacity: at the end of the piece, or in between by the
// parabola through both ends and the slope. 0: on none.
//
//go:nosplit
func (k *Kernel) yields(i int) float64 {
	f := &k.t.Friction[i]
	if k.idle(i) {
		return 0
	}
	tau0 := k.tau0[i]
	tau1, slope := k.lockTorque(i)
	static := f.Peak * k.capNow[i]
	if f.OneWay {
		if tau1 > max(static, f.Floor)*(1+overload)+4*k.noise || f.Gap != nil && sags(-tau0, -tau1, -slope) {
			return 1
		}
		return 0
	}
	if math.Abs(tau1) > static*(1+overload)+4*k.noise {
		return math.Copysign(1, tau1)
	}
	for _, side := range [2]float64{1, -1} {
		if sags(f.Peak*k.capC[3*i]-side*tau0, static-side*tau1, f.Peak*k.capC[3*i+1]-side*slope) {
			return side
		}
	}
	return 0
}

// lockTorque is the torque of stuck element i at the end of the piece, and its slope
// at the start.
//
//go:nosplit
func (k *Kernel) lockTorque(i int) (tau1, slope float64) {
	if k.t.Net != nil {
		return k.heldAt(i, 1), k.held[k.t.Mc+i]
	}
	m := k.use()
	return dotRow(m.T, i, k.x1) + dotRow(m.U, i, k.w), k.length*dotRow(m.T, i, k.xd) + dotRow(m.U, i, k.w1)
}

// sags reports whether a curve over the piece that starts at a with slope r and
// ends at b, both positive, can reach zero in between: the parabola through them
// does, within what a sine of at most one radian departs from it.
//
//go:nosplit
func sags(a, b, r float64) bool {
	c := b - a - r
	return r < 0 && c > 0 && a-r*r/(4*c) <= 0.05*(c-r)
}

// dips reports whether the slip of slipping element i can reach zero: at the end
// of the piece, or in between by the parabola through both ends and the slope. A
// slip that just left zero can come back on any curve.
//
//go:nosplit
func (k *Kernel) dips(i int) bool {
	d := k.direction(i)
	s0, s1 := d*k.slip[i], d*k.slip1[i]
	return k.fresh[i] || s1 <= 0 || sags(s0, s1, d*k.slips.dot(i, k.xd)*k.length)
}

// first finds the first event of the expanded piece: place and cause.
//
//go:nosplit
func (k *Kernel) first() (theta float64, cause int) {
	theta, cause = 1, none
	for i, mode := range k.mode {
		switch mode {
		case Free:
			if k.t.Friction[i].Gap == nil || !k.closes(i) {
				continue
			}
			k.openingPoly(i)
		case Stuck:
			side := k.yields(i)
			if side == 0 {
				continue
			}
			k.torquePoly(i, side)
		default:
			if !k.dips(i) {
				continue
			}
			k.slipPoly(i)
		}
		if at, ok := k.calls.root(k, thePoly); ok && (cause == none || at < theta) {
			theta, cause = at, i
		}
	}
	for s := range k.region {
		for _, side := range [2]float64{1, -1} {
			if !k.leaves(s, side) {
				continue
			}
			k.levelPoly(s, side)
			if at, ok := k.calls.root(k, thePoly); ok && (cause == none || at < theta) {
				theta, cause = at, k.t.Mc+s
			}
		}
	}
	for g := range k.side {
		if k.t.Net != nil && !k.reaches(g) {
			continue
		}
		if at, ok := k.calls.root(k, g); ok && (cause == none || at < theta) {
			theta, cause = at, -2-g
		}
	}
	return theta, cause
}

// slipPoly sets poly to the slip of element i over the piece, positive on its
// own side.
//
//go:nosplit
func (k *Kernel) slipPoly(i int) {
	n, d := k.t.N, float64(k.mode[i])
	clear(k.poly)
	for j := range k.degree + 1 {
		k.poly[j] = d * k.slips.dot(i, k.c[j*n:(j+1)*n])
	}
	if k.fresh[i] {
		k.poly[0] += slipZero
	}
}

// torquePoly sets poly to the reserve of stuck element i over the piece: static
// capacity minus lock torque, on one side.
//
//go:nosplit
func (k *Kernel) torquePoly(i int, side float64) {
	f := &k.t.Friction[i]
	clear(k.poly)
	if f.Peak*k.capNow[i] < f.Floor {
		k.poly[0] = f.Floor * (1 + overload/2)
	} else {
		for j := range 3 {
			k.poly[j] = f.Peak * (1 + overload/2) * k.capC[3*i+j]
		}
	}
	k.poly[0] += 2 * k.noise
	if k.t.Net != nil {
		for j := range k.degree + 1 {
			k.poly[j] -= side * k.held[j*k.t.Mc+i]
		}
		return
	}
	m, n := k.use(), k.t.N
	for j := range k.degree + 1 {
		k.poly[j] -= side * dotRow(m.T, i, k.c[j*n:(j+1)*n])
	}
	for j, w := range [3][]float64{k.w0, k.w1, k.w2} {
		k.poly[j] -= side * dotRow(m.U, i, w)
	}
}
