package kernel

import "math"

// lawPoints are the places of a piece, beside its start, at which laws are followed.
var lawPoints = [2]float64{0.5, 1}

// settledSparse is settledLaw of a plant that is stepped sparse: what a round leaves is
// a hundredth of it.
const settledSparse = 1e-9

// settledRough is settledSparse of a piece that is cut at what is found in it.
const settledRough = 1e-5

// coupleSparse is couple in fewer rounds. A piece begins with the laws as they went on
// at the end of the last one; what a round changes is added to the polynomial; and a
// round is one of Newton's method for the part that a law has in its own motion: a law
// that changes by a and b at the two points moves what it drives by
//
//	(a/3 - b/24)·length and (2·a/3 + b/6)·length
//
// times a factor, which is learned from the rounds before, and for what locks carry at
// once (heed). The motion that it comes to is that of couple.
//
//go:nosplit
func (k *Kernel) coupleSparse() {
	k.presume()
	k.calls.expand(k, k.x)
	k.change, k.rounds = 0, 0
}

// agree takes the rounds, or goes on with them after those that were rough.
//
//go:nosplit
func (k *Kernel) agree(rough bool) {
	enough := 0.0
	if rough {
		enough = settledRough
	} else {
		k.refined()
	}
	for ; k.rounds < coupling; k.rounds++ {
		before := k.change
		k.change = 0
		for p, theta := range lawPoints {
			k.instant(theta)
			for _, i := range k.t.Net.Felt {
				k.torqueAt(i, theta)
			}
			k.heed(p+1, k.rounds == 0)
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
		k.calls.amend(k, k.change)
		if k.change <= enough || before > 0 && k.change*(k.change/before) <= settledSparse {
			k.rounds++
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
		k.w1[j], k.w2[j] = k.trend[3*q]*l, k.trend[3*q+1]*l*l
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
		if step := math.Abs(k.w[j] - k.lawAt[2*q+p]); k.t.Net.Drives[q] && !(step <= 0) {
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
// which laws changed by at most before. One that only others read is as it answers.
//
//go:nosplit
func (k *Kernel) correct(q int, before float64) {
	a, b := k.lawAt[2*q], k.lawAt[2*q+1]
	fa, fb := k.answer[2*q], k.answer[2*q+1]
	if k.t.Net.Drives[q] {
		f := &k.trend[3*q+2]
		da, db := a-k.asked[4*q], b-k.asked[4*q+1]
		if before > 0 && max(math.Abs(da), math.Abs(db)) > max(learnFrom, learnShare*before)*k.size[q] {
			oa, ob := fa-k.asked[4*q+2], fb-k.asked[4*q+3]
			ma, mb := da/3-db/24, 2*da/3+db/6
			own := k.t.Net.Own[q]
			*f = min(max((oa*db-ob*da)/(ma*db-mb*da)/k.length, -own), own)
		}
		k.asked[4*q], k.asked[4*q+1], k.asked[4*q+2], k.asked[4*q+3] = a, b, fa, fb
		g := *f * k.length
		m11, m12, m21, m22 := 1-g/3, g/24, -2*g/3, 1-g/6
		det := m11*m22 - m12*m21
		ra, rb := fa-a, fb-b
		fa, fb = a+(m22*ra-m12*rb)/det, b+(m11*rb-m21*ra)/det
	}
	k.lawAt[2*q], k.lawAt[2*q+1] = fa, fb
	j := k.t.FirstLaw + q
	k.w1[j], k.w2[j] = parabola(k.w0[j], fa, fb)
}

// mostEcho bounds the part of a torque that laws which read it give back to it at once.
const mostEcho = 0.5

// echo is a friction torque as laws read it in a round, and what came of it.
type echo struct{ in, wasIn, wasOut float64 }

// heed sets the friction torques that laws read at point p, 0 the start of the piece, in
// the round to come: where a law acts at once on a torque that it reads (the block of a
// locked brake pushes on its bogie, which loads the wheel), what came of the last round is
// only on the way to where they agree, and the secant through two rounds leads there.
//
//go:nosplit
func (k *Kernel) heed(p int, first bool) {
	if k.t.Net == nil {
		return
	}
	for f, i := range k.t.Net.Felt {
		e, out := &k.echoes[3*f+p], k.tau[i]
		part, of := &k.echoed[2*f], &k.echoed[2*f+1]
		if first {
			if modes := k.modesOf(k.home[i].block); p == 0 && modes != *of {
				*part, *of = 0, modes
			}
			e.in, e.wasIn, e.wasOut = out, out, out
			continue
		}
		if d := e.in - e.wasIn; p == 0 && math.Abs(d) > learnFrom*math.Abs(out) {
			*part = min(max((out-e.wasOut)/d, -mostEcho), mostEcho)
		}
		e.wasIn, e.wasOut = e.in, out
		e.in += (out - e.in) / (1 - *part)
		k.tau[i] = e.in
	}
}

// modesOf is a number for the modes of block b.
//
//go:nosplit
func (k *Kernel) modesOf(b int) float64 {
	s := 0.0
	for _, i := range k.blocks[b].Of {
		s = 5*s + float64(k.mode[i])
	}
	return s
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
		k.trend[3*q], k.trend[3*q+1] = (k.w1[j]+2*theta*k.w2[j])/l, k.w2[j]/(l*l)
		k.begunAt[q] = k.w0[j] + theta*(k.w1[j]+theta*k.w2[j])
	}
	if k.t.ReadsTau { // so do the torques that they read
		k.instant(theta)
		k.torquesAt(theta)
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
		k.begunAt[q] = k.w0[j]
	}
	return moved
}
