package kernel

import "math"

// A law may read a torque that follows the law at once, such as the friction of a cone that a contact presses.
// solveInstant solves for all such laws at one instant, in a plant with pressed elements: there the gain of the loop may
// be anything. That of a gear with losses is below 1, and its law has corners, so it iterates without.

// instantDepth is the number of earlier iterations whose changes solveInstant keeps.
const instantDepth = 6

// instantLaws is the working memory of solveInstant; laws are those of Tables.Iterated.
type instantLaws struct {
	in, last  []float64 // laws, values read by this iteration and by the one before
	off, was  []float64 // laws, result minus value, of this iteration and of the one before
	dOff, dIn []float64 // instantDepth×laws, changes of both, such that those of off are orthonormal
	kept      int       // rows of dOff and dIn in use
}

// newInstantLaws returns the working memory for tables t.
func newInstantLaws(t *Tables) instantLaws {
	if !t.Instant {
		return instantLaws{}
	}
	vec := func(n int) []float64 { return make([]float64, n*len(t.Iterated)) }
	return instantLaws{in: vec(1), last: vec(1), off: vec(1), was: vec(1), dOff: vec(instantDepth), dIn: vec(instantDepth)}
}

// solveInstant makes the iterated laws in w consistent with the torques that follow them at this instant, for state x.
// Each iteration goes to where the changes of the earlier ones predict no change (Anderson, Journal of the ACM 12,
// 1965). Where laws and torques are straight, it needs one iteration per direction in which the laws change.
//
//go:nosplit
func (k *Kernel) solveInstant(x []float64) {
	s := &k.instantLaws
	s.kept = 0
	for round := range maxLawIterations {
		for q, j := range k.t.Iterated {
			s.in[q] = k.w[j]
		}
		k.setLawCapacities()
		k.calls.setTorques(k, x)
		k.iterateOnce(k.w[:k.t.M], x)
		converged := true
		for q, j := range k.t.Iterated {
			largest := max(k.lawMax[j-k.t.FirstLaw], math.Abs(k.w[j]))
			s.off[q] = k.w[j] - s.in[q]
			converged = converged && math.Abs(s.off[q]) <= lawTol*min(largest, math.MaxFloat64)
		}
		if converged {
			return
		}
		if round > 0 {
			s.keepChange()
		}
		copy(s.last, s.in)
		copy(s.was, s.off)
		s.jump()
		for q, j := range k.t.Iterated {
			k.w[j] = s.in[q]
		}
	}
}

// setLawCapacities sets the capacities that are laws, and the torques in w that follow from them, from the laws in w.
//
//go:nosplit
func (k *Kernel) setLawCapacities() {
	for _, i := range k.t.LawPressed {
		f, at := &k.t.Friction[i], k.t.M+i
		k.capNow[i] = float64(f.Gain * max(0, k.w[f.Signal]-f.Offset))
		k.w[at] = float64(k.direction(i) * k.capNow[i])
		if k.isIdle(i) {
			k.w[at] = k.idleTorque(i)
		}
	}
}

// keepChange keeps the change since the last iteration. It forgets all others where there is no room.
//
//go:nosplit
func (s *instantLaws) keepChange() {
	n := len(s.in)
	if s.kept == instantDepth {
		s.kept = 0
	}
	off, in := s.dOff[s.kept*n:(s.kept+1)*n], s.dIn[s.kept*n:(s.kept+1)*n]
	for q := range off {
		off[q], in[q] = s.off[q]-s.was[q], s.in[q]-s.last[q]
	}
	before := dotRow(off, 0, off)
	for r := range s.kept {
		c := -dotRow(s.dOff, r, off)
		axpy(off, c, s.dOff[r*n:(r+1)*n])
		axpy(in, c, s.dIn[r*n:(r+1)*n])
	}
	left := dotRow(off, 0, off)
	if !(left > 1e-20*before && left <= math.MaxFloat64) { // nothing new but rounding
		return
	}
	scaleIn(off, 1/math.Sqrt(left))
	scaleIn(in, 1/math.Sqrt(left))
	s.kept++
}

// jump sets in to the values at which the changes kept predict no change.
//
//go:nosplit
func (s *instantLaws) jump() {
	n := len(s.in)
	for r := range s.kept {
		c := -dotRow(s.dOff, r, s.off)
		axpy(s.off, c, s.dOff[r*n:(r+1)*n])
		axpy(s.in, c, s.dIn[r*n:(r+1)*n])
	}
	axpy(s.in, 1, s.off)
}
