package kernel

import (
	"math"
	"math/bits"
	"slices"

	"lockstep/model"
)

// lawPoints are the places of a substep, besides its start, at which laws are evaluated.
var lawPoints = [2]float64{0.5, 1}

// sparseLawTol is lawTol of a plant stepped sparse: an iteration leaves a hundredth of it.
const sparseLawTol = 1e-9

// coarseLawTol is sparseLawTol of a substep that will be shortened to the event found in it.
const coarseLawTol = 1e-5

// predictLaws starts the law iteration of a plant stepped sparse; its result is the motion that
// solveLaws gives, in fewer iterations. The laws continue from the end of the last substep, and
// each iteration adds a correction to the polynomial. An iteration is Newton's method for the part
// that a law has in its own motion. A law that changes by a and b at the two points moves what it
// drives by
//
//	(a/3 - b/24)·length and (2·a/3 + b/6)·length
//
// times a factor that previous iterations give. setTorquesOfLaws does the same for lock torques
// that respond at once.
//
//go:nosplit
func (k *Kernel) predictLaws() {
	k.extrapolateLaws()
	if k.shortened && k.sameSignals() {
		k.shortenExpansion()
	} else {
		k.calls.expand(k, k.x)
	}
	k.lawChange, k.iterations, k.shortened = 0, 0, false
}

// iterateLaws runs the law iterations; after a coarse run it continues them.
//
//go:nosplit
func (k *Kernel) iterateLaws(coarse bool) {
	tol := 0.0
	if coarse {
		tol = coarseLawTol
	} else {
		k.refineExpansion()
	}

	for ; k.iterations < maxLawIterations; k.iterations++ {
		before := k.lawChange
		k.lawChange = 0
		for p, theta := range lawPoints {
			k.setInstant(theta)
			for _, i := range k.t.Sparse.TorquesRead {
				k.setTorqueAt(i, theta)
			}
			k.setTorquesOfLaws(p+1, k.iterations == 0)
			k.iterateOnce(k.w[:k.t.M], k.lawStates[p*k.t.N:(p+1)*k.t.N])
			if len(k.t.Sparse.Answers) > 0 && !k.onValues {
				k.calls.answerTorques(k, p)
			}
			k.recordLaws(p)
		}

		if k.lawChange <= sparseLawTol {
			return
		}
		copy(k.dw1, k.w1)
		copy(k.dw2, k.w2)
		for q := range k.t.M - k.t.FirstLaw {
			k.correctLaw(q, before)
		}
		k.expandFrictions(k.t.Capacities)
		for j, v := range k.w1 {
			k.dw1[j], k.dw2[j] = v-k.dw1[j], k.w2[j]-k.dw2[j]
		}
		k.calls.correctExpansion(k, k.lawChange)
		if k.lawChange <= tol || before > 0 && k.lawChange*(k.lawChange/before) <= sparseLawTol {
			k.iterations++
			return // this iteration gains as much as the last one
		}
	}
}

// extrapolateLaws continues the laws over the substep with the trend of the previous one.
//
//go:nosplit
func (k *Kernel) extrapolateLaws() {
	l := k.length
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		k.w1[j], k.w2[j] = float64(k.lawTrend[3*q]*l), float64(k.lawTrend[3*q+1]*l*l)
		k.lawValues[2*q], k.lawValues[2*q+1] = k.w0[j]+float64(k.w1[j]/2)+float64(k.w2[j]/4), k.w0[j]+k.w1[j]+k.w2[j]
	}

	k.expandFrictions(k.t.Capacities)
}

// recordLaws stores the laws evaluated at point p, and the largest change.
//
//go:nosplit
func (k *Kernel) recordLaws(p int) {
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		k.lawMax[q] = max(k.lawMax[q], math.Abs(k.w[j]))
		if change := k.w[j] - k.lawValues[2*q+p]; k.t.Sparse.Drives[q] && change != 0 {
			k.lawChange = max(k.lawChange, math.Abs(change)/k.lawMax[q])
		}
		k.lawResults[2*q+p] = k.w[j]
	}
}

// The factors of the laws are updated from changes above these limits only.
const (
	minLearnedChange = 1e-8 // change of a law, as part of its largest value; below it is rounding
	minLearnedShare  = 1e-2 // part of the largest change in the iteration; below it is the effect of other laws
)

// correctLaw updates law q for the next iteration. It first updates the law's factor from the
// previous iteration, in which laws changed by at most before. A law that is only read takes its
// new value.
//
//go:nosplit
func (k *Kernel) correctLaw(q int, before float64) {
	a, b := k.lawValues[2*q], k.lawValues[2*q+1]
	fa, fb := k.lawResults[2*q], k.lawResults[2*q+1]
	if k.t.Sparse.Drives[q] {
		f := &k.lawTrend[3*q+2]
		da, db := a-k.lastIterate[4*q], b-k.lastIterate[4*q+1]
		if before > 0 &&
			max(math.Abs(da), math.Abs(db)) > max(minLearnedChange, float64(minLearnedShare*before))*k.lawMax[q] {
			oa, ob := fa-k.lastIterate[4*q+2], fb-k.lastIterate[4*q+3]
			ma, mb := da/3-db/24, 2*da/3+db/6
			own := k.t.Sparse.SelfRate[q]
			if d := float64(ma*db) - float64(mb*da); d != 0 { // 0 of tiny values: nothing is learned
				*f = min(max((float64(oa*db)-float64(ob*da))/d/k.length, -own), own)
			}
		}

		k.lastIterate[4*q], k.lastIterate[4*q+1], k.lastIterate[4*q+2], k.lastIterate[4*q+3] = a, b, fa, fb
		g := float64(*f * k.length)
		m11, m12, m21, m22 := 1-g/3, g/24, -2*g/3, 1-g/6
		det := float64(m11*m22) - float64(m12*m21)
		ra, rb := fa-a, fb-b
		fa, fb = a+(float64(m22*ra)-float64(m12*rb))/det, b+(float64(m11*rb)-float64(m21*ra))/det
	}

	k.lawValues[2*q], k.lawValues[2*q+1] = fa, fb
	j := k.t.FirstLaw + q
	k.w1[j], k.w2[j] = parabola(k.w0[j], fa, fb)
}

// maxTorqueFeedback bounds the gain from a torque, through the laws that read it, back to the
// torque.
const maxTorqueFeedback = 0.5

// torqueIterate is a friction torque during the law iteration, N·m: the value that the laws read, and
// the value and the result of the previous iteration.
type torqueIterate struct{ in, lastIn, lastOut float64 }

// setTorquesOfLaws sets the friction torques that laws read at point p, 0 the start of the substep,
// for the next iteration. A law may act at once on a torque that it reads: the block of a locked
// brake pushes on its bogie, which loads the wheel. The secant through two iterations then gives
// the torque. A torque of rounding is 0: motion fades to it along a train, and laws that follow it
// would take iterations without end.
//
//go:nosplit
func (k *Kernel) setTorquesOfLaws(p int, first bool) {
	if k.t.Sparse == nil {
		return
	}
	block, modes := -1, 0.0
	for f, i := range k.t.Sparse.TorquesRead {
		if math.Abs(k.tau[i]) <= k.torqueTol {
			k.tau[i] = 0
		}
		e, out := &k.torqueIterates[3*f+p], k.tau[i]
		feedback, of := &k.torqueFeedback[2*f], &k.torqueFeedback[2*f+1]
		if first {
			if b := k.bitOf[i].block; p == 0 && b != block {
				block, modes = b, k.modeNumber(b)
			}
			if p == 0 && modes != *of {
				*feedback, *of = 0, modes
			}
			e.in, e.lastIn, e.lastOut = out, out, out
			continue
		}

		if d := e.in - e.lastIn; p == 0 && math.Abs(d) > minLearnedChange*math.Abs(out) {
			*feedback = min(max((out-e.lastOut)/d, -maxTorqueFeedback), maxTorqueFeedback)
		}
		e.lastIn, e.lastOut = e.in, out
		e.in += (out - e.in) / (1 - *feedback)
		k.tau[i] = e.in
	}
}

// evaluateMoved sets the laws of v for state x that read a torque which the last call of setTorquesOfLaws for the start of
// the substep has changed; the others have their values.
//
//go:nosplit
//go:norace
func (k *Kernel) evaluateMoved(v, x []float64) {
	for f, laws := range k.t.Sparse.Readers {
		e := &k.torqueIterates[3*f]
		if math.Abs(e.in-e.lastIn) <= sparseLawTol*math.Abs(e.in) {
			continue
		}
		for _, j := range laws {
			v[j] = k.evaluateProgram(j-k.t.FirstLaw, x, v)
		}
	}
}

// torqueAnswer is a torque that laws read and that changes at once with capacities that are laws: the torque of a locked
// brake with the friction of the wheel that slides on the rail.
type torqueAnswer struct {
	Read    int   // index in TorquesRead
	Element int   // friction element of this torque
	Pressed []int // other elements of its block whose capacities are laws
	Laws    []int // laws that read the torque, and those that read these laws, in order
}

// findAnswers returns the torques that answer to laws; Readers must be set.
func (t *Tables) findAnswers(net *SparseTables) (list []torqueAnswer) {
	if len(t.Faces) > 0 {
		return nil
	}
	for r, element := range net.TorquesRead {
		a := torqueAnswer{Read: r, Element: element}
		for _, b := range net.Blocks {
			if !slices.Contains(b.Elements, element) {
				continue
			}
			for _, i := range b.Elements {
				if i != element && t.Friction[i].Signal >= t.FirstLaw {
					a.Pressed = append(a.Pressed, i)
				}
			}
		}
		if len(a.Pressed) > 0 {
			a.Laws = net.Readers[r]
			list = append(list, a)
		}
	}
	return list
}

// lawsReading returns the laws that read the torque of a friction element, and those that read these laws, in order.
func (t *Tables) lawsReading(element int) (list []int) {
	for j := t.FirstLaw; j < t.M; j++ {
		if slices.ContainsFunc(t.Signals[j].Law.Args, func(f model.Functional) bool {
			return f.Tau != nil && f.Tau[element] != 0 ||
				slices.ContainsFunc(f.Signal, func(i int) bool { return slices.Contains(list, i) })
		}) {
			list = append(list, j)
		}
	}
	return list
}

// answerTorques lets the torques that laws read answer to the capacities that these laws have just changed at point p,
// and evaluates the laws that read them again: the motion would answer only in the next iteration.
//
//go:nosplit
func (k *Kernel) answerTorques(p int) {
	for n := range k.t.Sparse.Answers {
		a := &k.t.Sparse.Answers[n]
		at := k.bitOf[a.Element]
		g, kappa := &k.blocks[at.block], k.kappa[at.block]
		if kappa>>at.bit&1 == 0 {
			continue
		}
		moved := false
		for _, i := range a.Pressed {
			f := &k.t.Friction[i]
			before, now := k.lawValues[2*(f.Signal-k.t.FirstLaw)+p], k.w[f.Signal]
			k.dtau[i] = float64(float64(k.direction(i)*f.Gain) * (max(0, now-f.Offset) - max(0, before-f.Offset)))
			moved = moved || k.dtau[i] != 0 && math.Abs(now-before) > sparseLawTol*k.lawMax[f.Signal-k.t.FirstLaw]
		}
		if !moved {
			continue
		}
		for rest := kappa; rest != 0; rest &= rest - 1 {
			l, sum := bits.TrailingZeros64(rest), 0.0
			for _, i := range a.Pressed {
				sum += float64(g.Gram[l*len(g.Elements)+k.bitOf[i].bit] * k.dtau[i])
			}
			k.residualAccel[g.Elements[l]] = sum
		}
		k.calls.solveLockTorques(k, at.block, k.lockTorque)
		e := &k.torqueIterates[3*a.Read+p+1]
		e.in = e.lastOut + k.lockTorque[a.Element]
		k.tau[a.Element] = e.in
		for _, j := range a.Laws {
			k.w[j] = k.evaluateProgram(j-k.t.FirstLaw, k.lawStates[p*k.t.N:(p+1)*k.t.N], k.w[:k.t.M])
		}
	}
}

// torquesMoved reports whether a friction torque that a law reads differs at the start of a substep from its
// value before, as after a jump of a command or of a source.
//
//go:nosplit
func (k *Kernel) torquesMoved() bool {
	change, size := 0.0, 0.0
	for f, i := range k.t.Sparse.TorquesRead {
		before := k.torqueIterates[3*f].lastOut
		change = max(change, math.Abs(k.tau[i]-before))
		size = max(size, math.Abs(k.tau[i]), math.Abs(before))
	}
	return !(change <= sparseLawTol*size)
}

// modeNumber returns a number that identifies the modes of block b.
//
//go:nosplit
func (k *Kernel) modeNumber(b int) float64 {
	s := 0.0
	for _, i := range k.blocks[b].Elements {
		s = float64(5*s) + float64(k.mode[i])
	}
	return s
}

// minCurved is the part of the longest substep from which a substep shows how laws bend. The bend of a shorter one is what
// the iteration has left in them: over a whole substep sparseLawTol would grow to more than a thousandth.
const minCurved = 1e-3

// saveLawTrend stores the laws at theta of the substep and their slopes, for the next substep.
//
//go:nosplit
func (k *Kernel) saveLawTrend(theta float64) {
	if k.t.Sparse == nil {
		return
	}
	l := k.length
	square := float64(l * l)
	if l < minCurved*k.t.Delta {
		square = math.Inf(1)
	}
	for j := k.t.FirstLaw; j < k.t.M; j++ {
		q := j - k.t.FirstLaw
		k.lawTrend[3*q], k.lawTrend[3*q+1] = (k.w1[j]+float64(2*theta*k.w2[j]))/l, k.w2[j]/square
		k.lawStart[q] = k.w0[j] + float64(theta*(k.w1[j]+float64(theta*k.w2[j])))
	}
}

// lawsMoved stores the iterated laws at the start of a substep and reports whether they changed since the
// last call. A law that no iteration has seen yet has no largest value but its present one.
//
//go:nosplit
func (k *Kernel) lawsMoved() bool {
	moved, tol := false, 0.0
	if k.t.Sparse != nil {
		tol = sparseLawTol
	}
	for _, j := range k.t.Iterated {
		q := j - k.t.FirstLaw
		change := k.w0[j] - k.lawStart[q]
		moved = moved || !(math.Abs(change) <= tol*max(k.lawMax[q], math.Abs(k.w0[j])))
		k.lawStart[q] = k.w0[j]
	}

	return moved
}
