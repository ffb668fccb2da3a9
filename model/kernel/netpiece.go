package kernel

import "math"

// derive sets dst to the derivative of the state x under w, and tau to the friction
// torques of it: those of w, and those of the locks. A nil x or w is zero.
//
//go:nosplit
func (k *Kernel) derive(dst, x, w, tau []float64) {
	if x == nil {
		clear(dst)
	} else {
		clear(dst)
		k.flow.mulAdd(dst, x)
	}
	if w != nil || len(k.region) > 0 {
		k.inflow.mulAdd(dst, k.driven(x, w))
	}
	clear(tau)
	if w != nil {
		copy(tau, w[k.t.M:])
		for i, v := range tau {
			if v != 0 {
				k.pushes.axpy(dst, v, i)
			}
		}
	}
	k.project(dst, tau)
}

// remainder of a Taylor polynomial that counts as none: below rounding, and far enough
// for matrices that are not normal.
const remainder = 1e-17

// terms is the degree of the Taylor polynomial of what is rel times as large as the
// state over a piece.
//
//go:nosplit
func (k *Kernel) terms(rel float64) int {
	r, j := k.t.Radius*k.length, 1
	for term := r * rel; j < k.t.Degree && term > remainder; j++ {
		term *= r / float64(j+1)
	}
	return max(min(j, k.t.Degree), 4)
}

// expandSparse is expand without matrices of the lock set.
//
//go:nosplit
func (k *Kernel) expandSparse(x []float64) {
	n, mc := k.t.N, k.t.Mc
	k.degree = k.terms(1)
	copy(k.c[:n], x)
	k.grow(0, k.w0)
	k.grow(1, k.w1)
	k.grow(2, k.w2)
	for j := 3; j < k.degree; j++ {
		k.grow(j, nil)
	}
	clear(k.held[k.degree*mc : (k.degree+1)*mc])
	for p, theta := range lawPoints {
		at := k.at[p*n : (p+1)*n]
		for _, i := range k.t.Net.Seen {
			at[i] = k.c[k.degree*n+i]
		}
		for j := k.degree - 1; j >= 0; j-- {
			for _, i := range k.t.Net.Seen {
				at[i] = at[i]*theta + k.c[j*n+i]
			}
		}
	}
}

// grow sets coefficient j+1 of the state and j of the torques from coefficient j of the
// state and w, that of w; nil for zero.
//
//go:nosplit
func (k *Kernel) grow(j int, w []float64) {
	n, mc := k.t.N, k.t.Mc
	next := k.c[(j+1)*n : (j+2)*n]
	k.joint.derive(k, next, k.c[j*n:(j+1)*n], w, k.held[j*mc:(j+1)*mc])
	scaleIn(next, k.length/float64(j+1))
}

// bend is coefficient j of signal i over the piece.
//
//go:nosplit
func (k *Kernel) bend(j, i int) float64 {
	switch j {
	case 0:
		return k.w0[i]
	case 1:
		return k.w1[i]
	}
	return k.w2[i]
}

// amend adds to the expanded piece what the changes dw1 and dw2 of w make, which are
// change times as large as w. The smaller they are, the fewer terms matter.
//
//go:nosplit
func (k *Kernel) amend(change float64) {
	half, top := 0.125, min(k.terms(change), k.degree)
	k.improve(1, 0.25, nil, k.dw1)
	k.improve(2, half, k.term, k.dw2)
	for j := 3; j < top; j++ {
		half /= 2
		k.improve(j, half, k.term, nil)
	}
}

// improve adds term j+1 of what a change makes, from the term before it, x, and the
// coefficient w of the change; nil for zero. It is half times as large in the middle of
// the piece.
//
//go:nosplit
func (k *Kernel) improve(j int, half float64, x, w []float64) {
	n, mc := k.t.N, k.t.Mc
	k.joint.derive(k, k.next, x, w, k.dtau)
	scaleIn(k.next, k.length/float64(j+1))
	axpy(k.c[(j+1)*n:(j+2)*n], 1, k.next)
	axpy(k.held[j*mc:(j+1)*mc], 1, k.dtau)
	for _, i := range k.t.Net.Seen {
		k.at[i] += half * k.next[i]
		k.at[n+i] += k.next[i]
	}
	copy(k.term, k.next)
}

// slideAll sets capacities and sliding torques over the piece.
//
//go:nosplit
func (k *Kernel) slideAll() {
	for i := range k.mode {
		k.capacity(i)
		k.slide(i)
	}
}

// heldAt is the torque of lock i at theta of the piece.
//
//go:nosplit
func (k *Kernel) heldAt(i int, theta float64) float64 {
	s := 0.0
	for j := k.degree; j >= 0; j-- {
		s = s*theta + k.held[j*k.t.Mc+i]
	}
	return s
}

// torquesAt sets tau at theta of the expanded piece; instant has been there.
//
//go:nosplit
func (k *Kernel) torquesAt(theta float64) {
	for i := range k.tau {
		if k.tau[i] = k.given(i); k.carries(i) {
			k.tau[i] = k.heldAt(i, theta)
		}
	}
}

// reaches prepares the arguments of guard g over the piece and reports whether it can be
// passed in it: one that is linear cannot if the terms of its polynomial do not reach.
//
//go:nosplit
func (k *Kernel) reaches(g int) bool {
	p, n, wide := &k.programs[k.guard(g)], k.t.N, k.t.Degree+1
	for a := range p.Args {
		f, poly := &p.Args[a], k.argPoly[a*wide:(a+1)*wide]
		clear(poly)
		for j := range k.degree + 1 {
			c := k.c[j*n : (j+1)*n]
			poly[j] = k.reads.dot(p.row+a, c)
			for i, signal := range f.Signal {
				if j <= 2 {
					poly[j] += f.Coef[i] * k.bend(j, signal)
				}
				if signal >= k.t.FirstAffine && signal < k.t.FirstLaw {
					s := k.t.Signals[signal].Affine
					z := k.levels.dot(s.Switch, c)
					if j == 0 {
						z = k.level(s.Switch, c)
					}
					poly[j] += f.Coef[i] * s.Slope[k.region[s.Switch]] * z
				}
			}
		}
		poly[0] += f.Const
	}
	if len(p.Ops) != 1 || k.readsTau.begin(p.row) != k.readsTau.End[p.row] {
		return true
	}
	reach := 0.0
	for _, c := range k.argPoly[1:wide] {
		reach += math.Abs(c)
	}
	return !(k.side[g]*k.argPoly[0] > reach)
}

// guardAt is the value of guard g at theta of the piece, of the arguments that
// reaches has prepared.
//
//go:nosplit
func (k *Kernel) guardAt(g int, theta float64) float64 {
	p, wide := &k.programs[k.guard(g)], k.t.Degree+1
	if last := p.row + len(p.Args) - 1; len(p.Args) > 0 && k.readsTau.begin(p.row) != k.readsTau.End[last] {
		k.instant(theta)
		k.torquesAt(theta)
	}
	for a := range p.Args {
		s := 0.0
		for j := k.degree; j >= 0; j-- {
			s = s*theta + k.argPoly[a*wide+j]
		}
		k.args[a] = k.readsTau.dotFrom(s, p.row+a, k.tau)
	}
	return k.operate(p)
}
