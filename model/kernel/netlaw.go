package kernel

import "math"

// lawPoints are the places of a piece, beside its start, at which laws are followed.
var lawPoints = [2]float64{0.5, 1}

// settledSparse is settledLaw of a plant that is stepped sparse: what a round leaves is
// a hundredth of it.
const settledSparse = 1e-12

// coupleSparse is couple in fewer rounds. A piece begins with the laws as they went on
// at the end of the last one; what a round changes is added to the polynomial; and a
// round is one of Newton's method for the part that a law has in its own motion: a law
// that changes by a and b at the two points moves what it drives by
//
//	(a/3 - b/24)·length and (2·a/3 + b/6)·length
//
// times a factor, and by another factor what locks carry at once. Both are learned from
// the rounds before. The motion that it comes to is that of couple.
//
//go:nosplit
func (k *Kernel) coupleSparse() {
	k.presume()
	k.joint.expand(k, k.x)
	k.change = 0
	for range coupling {
		before := k.change
		k.change = 0
		for p, theta := range lawPoints {
			k.instant(theta)
			k.torqued(nil, theta)
			k.laws(k.w[:k.t.M], k.at[p*k.t.N:(p+1)*k.t.N])
			k.note(p)
		}
		if k.change <= settledSparse {
			return
		}
		copy(k.dw1, k.w1)
		copy(k.dw2, k.w2)
		for q := range k.t.M - k.t.FirstLaw {
			k.correct(q, before)
		}
		k.slideAll()
		for j, v := range k.w1 {
			k.dw1[j], k.dw2[j] = v-k.dw1[j], k.w2[j]-k.dw2[j]
		}
		k.joint.amend(k, k.change)
		if before > 0 && k.change*(k.change/before) <= settledSparse {
			return // as the last round gained, this one has
		}
	}
}

// presume lets the laws go on over the piece as they did before it.
//
//go:nosplit
func (k *Kernel) presume() {
	l := k.length
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		k.w1[j], k.w2[j] = k.trend[4*q]*l, k.trend[4*q+1]*l*l
		k.lawAt[2*q], k.lawAt[2*q+1] = k.w0[j]+k.w1[j]/2+k.w2[j]/4, k.w0[j]+k.w1[j]+k.w2[j]
	}
	k.slideAll()
}

// note keeps what the laws answer at point p, and the largest change.
//
//go:nosplit
func (k *Kernel) note(p int) {
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		k.size[q] = max(k.size[q], math.Abs(k.w[j]))
		if step := math.Abs(k.w[j] - k.lawAt[2*q+p]); !(step <= 0) {
			k.change = max(k.change, step/k.size[q])
		}
		k.answer[2*q+p] = k.w[j]
	}
}

// learnFrom is the change of a law, as part of its largest value, from which on its
// factors are learned: rounding teaches nothing; and learnShare the part of the largest
// change of the round: nor does what the others do.
const (
	learnFrom  = 1e-8
	learnShare = 1e-2
)

// correct takes law q a round further, after it has learned from a round before in
// which laws changed by at most before.
//
//go:nosplit
func (k *Kernel) correct(q int, before float64) {
	a, b := k.lawAt[2*q], k.lawAt[2*q+1]
	fa, fb := k.answer[2*q], k.answer[2*q+1]
	f := k.trend[4*q : 4*q+4]
	da, db := a-k.asked[4*q], b-k.asked[4*q+1]
	if before > 0 && max(math.Abs(da), math.Abs(db)) > max(learnFrom, learnShare*before)*k.size[q] {
		oa, ob := fa-k.asked[4*q+2], fb-k.asked[4*q+3]
		ma, mb := da/3-db/24, 2*da/3+db/6
		det := ma*db - mb*da // never 0: the matrix of m has no real direction of its own
		f[2] = min(max((oa*db-ob*da)/det, -2), 2) / k.length
		f[3] = min(max((ma*ob-mb*oa)/det, -0.5), 0.5)
	}
	k.asked[4*q], k.asked[4*q+1], k.asked[4*q+2], k.asked[4*q+3] = a, b, fa, fb
	g, own := f[2]*k.length, 1-f[3]
	m11, m12, m21, m22 := own-g/3, g/24, -2*g/3, own-g/6
	det := m11*m22 - m12*m21
	ra, rb := fa-a, fb-b
	k.lawAt[2*q], k.lawAt[2*q+1] = a+(m22*ra-m12*rb)/det, b+(m11*rb-m21*ra)/det
	j := k.t.FirstLaw + q
	k.w1[j], k.w2[j] = parabola(k.w0[j], k.lawAt[2*q], k.lawAt[2*q+1])
}

// keep notes what the laws are at theta of the piece and how they go on, for the next
// one.
//
//go:nosplit
func (k *Kernel) keep(theta float64) {
	if k.t.Net == nil {
		return
	}
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q, l := j-k.t.FirstLaw, k.length
		k.trend[4*q], k.trend[4*q+1] = (k.w1[j]+2*theta*k.w2[j])/l, k.w2[j]/(l*l)
		k.begunAt[q] = k.w0[j] + theta*(k.w1[j]+theta*k.w2[j])
	}
}

// settling takes the laws at the start of a piece a round further and reports whether
// they moved.
//
//go:nosplit
func (k *Kernel) settling() bool {
	moved := false
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		step := k.w0[j] - k.begunAt[q]
		moved = moved || !(math.Abs(step) <= settledSparse*k.size[q])
		if k.t.ReadsTau {
			k.w0[j] = k.begunAt[q] + step/(1-k.trend[4*q+3])
		}
		k.begunAt[q] = k.w0[j]
	}
	return moved
}
