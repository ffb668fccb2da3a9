package kernel

import "math"

// derive sets dst to the derivative of state x under w, and tau to its friction torques: those of w
// and those of the locks. A nil x or w is zero.
//
//go:nosplit
func (k *Kernel) derive(dst, x, w, tau []float64) {
	clear(dst)
	if x != nil {
		k.aStream.mulAdd(dst, x)
	}
	switch {
	case w != nil:
		k.bStream.mulAdd(dst, k.totalSignals(x, w))
	case x != nil && len(k.region) > 0:
		k.setSlopeParts(x)
		k.affineStream.mulAdd(dst, k.signals)
	}

	if w == nil {
		clear(tau)
	} else {
		copy(tau, w[k.t.M:])
		for i, v := range tau {
			if v != 0 {
				k.bcT.axpy(dst, v, i)
			}
		}
	}

	k.projectSlips(dst, tau)
}

// Limits on the remainder of a Taylor polynomial, as part of the state.
const (
	remainder           = 1e-17 // below rounding, also for matrices that are not normal
	remainderLaws       = 1e-12 // of a plant with laws: below what their iteration leaves
	remainderCorrection = 1e-10 // of a law correction: below the tolerance of the iteration
	remainderCoarse     = 1e-6  // of a substep that is shortened to an event located coarsely
)

// termsNeeded returns the degree of the Taylor polynomial for a quantity rel times as large as the
// state over a substep, with a remainder below least.
//
//go:nosplit
func (k *Kernel) termsNeeded(size, least float64) int {
	r, j := float64(max(k.t.Radius, k.t.WaveRate)*k.length), 1
	if k.coarse {
		least = remainderCoarse
	}
	for term := float64(r * size); j < k.t.Degree && term > least; j++ {
		term = float64(term * (r / float64(j+1)))
	}
	return max(min(j, k.t.Degree), 4)
}

// remainder returns the limit of the remainder of the polynomial of a substep, as part of the state.
//
//go:nosplit
func (k *Kernel) remainder() float64 {
	if k.t.FirstLaw < k.t.M {
		return remainderLaws
	}
	return remainder
}

// expandSparse is expand without matrices of the lock set.
//
//go:nosplit
func (k *Kernel) expandSparse(x []float64) {
	n := k.t.N
	copy(k.c[:n], x)
	for _, i := range k.t.Sparse.StatesRead {
		k.lawStates[i], k.lawStates[n+i] = x[i], x[i]
	}
	k.degree = 0
	k.extendExpansion()
}

// keepExpansion makes the expansion of the substep that of a part of it from the start on, where no term was left out.
//
//go:nosplit
func (k *Kernel) keepExpansion(part float64) {
	k.shortened = part < 1 && !k.onValues && !(k.coarse && k.iterations > 0) && k.waveDegree <= 2
	if !k.shortened {
		return
	}
	n, mc, power := k.t.N, k.t.Mc, 1.0
	for j := range k.degree {
		scaleIn(k.tauPoly[j*mc:(j+1)*mc], power)
		power = float64(power * part)
		scaleIn(k.c[(j+1)*n:(j+2)*n], power)
	}
	for j, v := range k.w1 {
		k.dw1[j], k.dw2[j] = float64(part*v), float64(part*part*k.w2[j])
	}
}

// sameSignals reports whether w is the same function of time as in the substep that keepExpansion has shortened. A capacity
// that ends in one of them is not.
//
//go:nosplit
func (k *Kernel) sameSignals() bool {
	for j, v := range k.w1 {
		d := math.Abs(v-k.dw1[j]) + math.Abs(k.w2[j]-k.dw2[j])
		if !(d <= float64(sameSignal*(math.Abs(k.w0[j])+math.Abs(v)))) {
			return false
		}
	}
	return true
}

// sameSignal is the part of a signal by which it may differ between a substep and a part of it: rounding.
const sameSignal = 1e-12

// shortenExpansion is expandSparse where keepExpansion has kept the terms that the substep needs, or most of them.
//
//go:nosplit
func (k *Kernel) shortenExpansion() {
	n, middle := k.t.N, 1.0
	for _, i := range k.t.Sparse.StatesRead {
		k.lawStates[i], k.lawStates[n+i] = k.x[i], k.x[i]
	}
	k.degree = min(k.degree, k.termsNeeded(1, k.remainder()))
	for j := range k.degree {
		middle = float64(middle / 2)
		k.addLawStates(k.c[(j+1)*n:(j+2)*n], middle)
	}
	k.extendExpansion()
}

// extendExpansion adds terms to the expansion of the substep until the remainder is small.
//
//go:nosplit
func (k *Kernel) extendExpansion() {
	n, mc, middle, top := k.t.N, k.t.Mc, 1.0, k.termsNeeded(1, k.remainder())
	for j := range top {
		if middle = float64(middle / 2); j < k.degree {
			continue
		}
		switch {
		case j == 0:
			k.addTerm(j, k.w0)
		case j == 1:
			k.addTerm(j, k.w1)
		case j == 2:
			k.addTerm(j, k.w2)
		case j <= k.waveDegree:
			k.addTerm(j, k.waveTerms(j))
		default:
			k.addTerm(j, nil)
		}

		k.addLawStates(k.c[(j+1)*n:(j+2)*n], middle)
	}

	k.degree = top
	clear(k.tauPoly[top*mc : (top+1)*mc])
}

// refineExpansion makes a coarse expansion a full one.
//
//go:nosplit
func (k *Kernel) refineExpansion() {
	if !k.coarse {
		return
	}
	if k.coarse = false; k.iterations == 0 {
		k.extendExpansion()
		return
	}

	k.calls.expand(k, k.x) // the iterations left out terms of each coefficient
}

// addTerm sets coefficient j+1 of the state and j of the torques from coefficient j of the state
// and of w, given as w; nil is zero.
//
//go:nosplit
func (k *Kernel) addTerm(j int, w []float64) {
	n, mc := k.t.N, k.t.Mc
	next := k.c[(j+1)*n : (j+2)*n]
	k.calls.derive(k, next, k.c[j*n:(j+1)*n], w, k.tauPoly[j*mc:(j+1)*mc])
	if j == 0 {
		copy(k.startRate, next)
	}
	scaleIn(next, k.length/float64(j+1))
}

// signalCoefficient returns coefficient j of signal i over the substep.
//
//go:nosplit
func (k *Kernel) signalCoefficient(j, i int) float64 {
	switch j {
	case 0:
		return k.w0[i]
	case 1:
		return k.w1[i]
	case 2:
		return k.w2[i]
	}

	if q := k.t.Signals[i].Wave; q >= 0 {
		return k.waveTerm(q, j)
	}
	return 0
}

// correctExpansion adds the effect of the changes dw1 and dw2 of w to the expanded substep. They
// are change times as large as w; smaller changes need fewer terms.
//
//go:nosplit
func (k *Kernel) correctExpansion(change float64) {
	middle, top := 0.125, min(k.termsNeeded(change, remainderCorrection), k.degree)
	k.correctTerm(1, 0.25, nil, k.dw1)
	k.correctTerm(2, middle, k.term, k.dw2)
	for j := 3; j < top; j++ {
		middle = float64(middle / 2)
		k.correctTerm(j, middle, k.term, nil)
	}
}

// correctTerm adds term j+1 of a correction, from its previous term x and coefficient w of the
// change; nil is zero. middle is the part of the term at the middle of the substep.
//
//go:nosplit
func (k *Kernel) correctTerm(j int, middle float64, x, w []float64) {
	n, mc := k.t.N, k.t.Mc
	k.calls.derive(k, k.next, x, w, k.dtau)
	part, c := k.length/float64(j+1), k.c[(j+1)*n:(j+2)*n]
	next, term := k.next[:len(c)], k.term[:len(c)]
	for i, v := range next {
		v = float64(v * part)
		term[i] = v
		c[i] += v
	}

	axpy(k.tauPoly[j*mc:(j+1)*mc], 1, k.dtau)
	k.addLawStates(k.term, middle)
}

// addLawStates adds a term of the polynomial to lawStates; middle is the part of it at the middle of the substep.
//
//go:nosplit
func (k *Kernel) addLawStates(term []float64, middle float64) {
	n := len(term)
	mid, end := k.lawStates[:n], k.lawStates[n:2*n]
	for _, i := range k.t.Sparse.StatesRead {
		v := term[i]
		mid[i] += float64(middle * v)
		end[i] += v
	}
}

// expandFrictions sets capacities and torques of some elements over the substep. Those of clearances do not follow the
// laws.
//
//go:nosplit
func (k *Kernel) expandFrictions(of []int) {
	for _, i := range of {
		k.expandCapacity(i)
		k.expandTorque(i)
	}
}

// lockTorqueAt returns the torque of lock i at theta of the substep, N·m.
//
//go:nosplit
func (k *Kernel) lockTorqueAt(i int, theta float64) float64 {
	s := 0.0
	for at := k.degree*k.t.Mc + i; at >= 0; at -= k.t.Mc {
		s = float64(s*theta) + k.tauPoly[at]
	}
	return s
}

// setTorquesAt sets tau at theta of the expanded substep, where setInstant was called and a law or an event indicator
// reads it.
//
//go:nosplit
func (k *Kernel) setTorquesAt(theta float64) {
	for _, i := range k.t.Sparse.TorquesSeen {
		k.setTorqueAt(i, theta)
	}
}

// setTorqueAt sets tau of element i at theta of the expanded substep.
//
//go:nosplit
func (k *Kernel) setTorqueAt(i int, theta float64) {
	if k.tau[i] = k.appliedTorque(i); k.carriesLoad(i) || k.followsLock(i) {
		k.tau[i] = k.lockTorqueAt(i, theta)
	}
}

// prepareIndicator sets the arguments of event indicator g over the substep and reports whether it
// can change its sign. A linear one cannot if the terms of its polynomial are too small.
//
//go:nosplit
func (k *Kernel) prepareIndicator(g int) bool {
	p, n, width := &k.programs[k.indicatorProgram(g)], k.t.N, k.t.Degree+1
	for a := range p.Args {
		f, poly := &p.Args[a], k.argPoly[a*width:(a+1)*width]
		clear(poly)
		for j := range k.degree + 1 {
			c := k.c[j*n : (j+1)*n]
			poly[j] = k.argRows.dot(p.row+a, c)
			for i, signal := range f.Signal {
				if j <= max(2, k.waveDegree) {
					poly[j] += float64(f.Coef[i] * k.signalCoefficient(j, signal))
				}
				if signal >= k.t.FirstAffine && signal < k.t.FirstLaw {
					s := k.t.Signals[signal].Affine
					z := k.levels.dot(s.Switch, c)
					if j == 0 {
						z = k.level(s.Switch, c)
					}
					poly[j] += float64(f.Coef[i] * k.slope[signal-k.t.FirstAffine] * z)
				}
			}
		}

		poly[0] += f.Const
	}

	if len(p.Ops) != 1 || k.argTauRows.rowStart(p.row) != k.argTauRows.End[p.row] {
		return true
	}
	reach := 0.0
	for _, c := range k.argPoly[1:width] {
		reach += math.Abs(c)
	}
	return !(k.indicatorMargin(g, k.argPoly[0]) > reach)
}

// indicatorAt returns the value of event indicator g at theta of the substep, from the arguments
// that prepareIndicator has set.
//
//go:nosplit
func (k *Kernel) indicatorAt(g int, theta float64) float64 {
	p, width := &k.programs[k.indicatorProgram(g)], k.t.Degree+1
	if last := p.row + len(p.Args) - 1; len(p.Args) > 0 && k.argTauRows.rowStart(p.row) != k.argTauRows.End[last] {
		k.setInstantTorques(p.row, last, theta)
	}

	for a := range p.Args {
		s := 0.0
		for j := k.degree; j >= 0; j-- {
			s = float64(s*theta) + k.argPoly[a*width+j]
		}
		k.stack[k.firstArg+a] = k.argTauRows.dotFrom(s, p.row+a, k.tau)
	}

	return k.execute(p)
}

// setInstantTorques sets the torques that rows first to last of the arguments read, at theta of the expanded substep.
//
//go:nosplit
func (k *Kernel) setInstantTorques(first, last int, theta float64) {
	if len(k.t.WavePressed) > 0 {
		k.setInstant(theta)
	}
	for p := k.argTauRows.rowStart(first); p < k.argTauRows.End[last]; p++ {
		i := k.argTauRows.Col[p]
		if len(k.t.WavePressed) == 0 {
			k.capNow[i] = max(0, k.capC[3*i]+float64(theta*(k.capC[3*i+1]+float64(theta*k.capC[3*i+2]))))
		}
		k.setTorqueAt(i, theta)
	}
}
