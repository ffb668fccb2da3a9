package kernel

import (
	"math"

	"lockstep/model"
)

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
	switch {
	case w != nil:
		k.inflow.mulAdd(dst, k.driven(x, w))
	case x != nil && len(k.region) > 0:
		k.yield(x)
		k.bending.mulAdd(dst, k.forced)
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

// What a Taylor polynomial leaves out, as part of the state.
const (
	remainder      = 1e-17 // counts as none: below rounding, and far enough for matrices that are not normal
	remainderAmend = 1e-14 // of what a round changes: well below what the rounds leave
	remainderRough = 1e-9  // where an event is about, to cut the piece there
)

// terms is the degree of the Taylor polynomial of what is rel times as large as the
// state over a piece, least of which is none.
//
//go:nosplit
func (k *Kernel) terms(rel, least float64) int {
	r, j := k.t.Radius*k.length, 1
	if k.rough {
		least = remainderRough
	}
	for term := r * rel; j < k.t.Degree && term > least; j++ {
		term *= r / float64(j+1)
	}
	return max(min(j, k.t.Degree), 4)
}

// expandSparse is expand without matrices of the lock set.
//
//go:nosplit
func (k *Kernel) expandSparse(x []float64) {
	n := k.t.N
	copy(k.c[:n], x)
	for _, i := range k.t.Net.Seen {
		k.at[i], k.at[n+i] = x[i], x[i]
	}
	k.degree = 0
	k.extend()
}

// extend takes the expansion of the piece on to as many terms as it takes.
//
//go:nosplit
func (k *Kernel) extend() {
	n, mc, half, top := k.t.N, k.t.Mc, 1.0, k.terms(1, remainder)
	for j := range top {
		if half /= 2; j < k.degree {
			continue
		}
		switch j {
		case 0:
			k.grow(j, k.w0)
		case 1:
			k.grow(j, k.w1)
		case 2:
			k.grow(j, k.w2)
		default:
			k.grow(j, nil)
		}
		next := k.c[(j+1)*n : (j+2)*n]
		for _, i := range k.t.Net.Seen {
			k.at[i] += half * next[i]
			k.at[n+i] += next[i]
		}
	}
	k.degree = top
	clear(k.held[top*mc : (top+1)*mc])
}

// refined makes a rough expansion a full one.
//
//go:nosplit
func (k *Kernel) refined() {
	if !k.rough {
		return
	}
	if k.rough = false; k.rounds == 0 {
		k.extend()
		return
	}
	k.calls.expand(k, k.x) // the rounds left out terms of each
}

// grow sets coefficient j+1 of the state and j of the torques from coefficient j of the
// state and w, that of w; nil for zero.
//
//go:nosplit
func (k *Kernel) grow(j int, w []float64) {
	n, mc := k.t.N, k.t.Mc
	next := k.c[(j+1)*n : (j+2)*n]
	k.calls.derive(k, next, k.c[j*n:(j+1)*n], w, k.held[j*mc:(j+1)*mc])
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
	half, top := 0.125, min(k.terms(change, remainderAmend), k.degree)
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
	k.calls.derive(k, k.next, x, w, k.dtau)
	part, c := k.length/float64(j+1), k.c[(j+1)*n:(j+2)*n]
	for i, v := range k.next {
		v *= part
		k.term[i] = v
		c[i] += v
	}
	axpy(k.held[j*mc:(j+1)*mc], 1, k.dtau)
	for _, i := range k.t.Net.Seen {
		k.at[i] += half * k.term[i]
		k.at[n+i] += k.term[i]
	}
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
		k.torqueAt(i, theta)
	}
}

// torqueAt sets that of element i.
//
//go:nosplit
func (k *Kernel) torqueAt(i int, theta float64) {
	if k.tau[i] = k.given(i); k.carries(i) {
		k.tau[i] = k.heldAt(i, theta)
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
	looks := len(p.Ops) == 2 && p.Ops[0].Code == model.Arg && p.Ops[1].Code == model.Look
	if !looks && len(p.Ops) != 1 || k.readsTau.begin(p.row) != k.readsTau.End[p.row] {
		return true
	}
	reach := 0.0
	for _, c := range k.argPoly[1:wide] {
		reach += math.Abs(c)
	}
	if looks {
		return !(k.lowestLook(&p.Tables[p.Ops[1].Index], k.side[g], reach) > 0)
	}
	return !(k.side[g]*k.argPoly[0] > reach)
}

// lowestLook is the lowest value of table t, times side, within reach of the first
// argument at the start of the piece.
//
//go:nosplit
func (k *Kernel) lowestLook(t *model.Table, side, reach float64) float64 {
	from, to := k.argPoly[0]-reach, k.argPoly[0]+reach
	least := min(side*look(t, from), side*look(t, to))
	for i, x := range t.X {
		if x > from && x < to {
			least = min(least, side*t.Z[i])
		}
	}
	return least
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
