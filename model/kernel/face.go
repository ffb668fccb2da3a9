package kernel

import (
	"math"
	"math/bits"
)

// The friction on the face of a contact follows the force of the contact at once. While it slides it is in a fixed ratio
// to that force, so the locks are solved with it wherever they are solved, and no law is iterated for it.

// bindFaces sets Faces and FaceOn.
func (t *Tables) bindFaces() {
	for f := range t.Friction {
		c := t.Friction[f].Face - 1
		if c < 0 {
			continue
		}
		if t.FaceOn == nil {
			t.FaceOn = make([]int, t.Mc)
			for i := range t.FaceOn {
				t.FaceOn[i] = -1
			}
		}
		t.Faces, t.FaceOn[c] = append(t.Faces, f), f
	}
}

// facePer returns the torque of the friction on the face of contact c per torque of the contact: 0 where it sticks or
// there is none.
//
//go:nosplit
func (k *Kernel) facePer(c int) float64 {
	f := k.t.FaceOn[c]
	if f < 0 {
		return 0
	}
	if k.isIdle(f) {
		return -float64(k.idleShare[f] * k.t.Friction[f].Mu)
	}
	return -float64(k.direction(f) * k.t.Friction[f].Mu)
}

// followsLock reports whether element i is the friction on a face that follows the torque of its contact, a lock.
//
//go:nosplit
func (k *Kernel) followsLock(i int) bool {
	c := k.t.Friction[i].Face - 1
	return c >= 0 && k.mode[i] != Free && k.carriesLoad(c) && !k.carriesLoad(i)
}

// faceCapacity returns the capacity of the friction on a face, element f, at torque tau of its contact, N·m.
//
//go:nosplit
func (k *Kernel) faceCapacity(f int, tau float64) float64 {
	return max(0, -float64(k.t.Friction[f].Mu*tau))
}

// setFaceLimits sets the capacities and limits of the friction on faces in block b from the torques tau of their
// contacts.
//
//go:nosplit
func (k *Kernel) setFaceLimits(b int, tau []float64) {
	for _, f := range k.t.Faces {
		if k.bitOf[f].block != b || k.mode[f] == Free {
			continue
		}
		capacity := k.faceCapacity(f, tau[k.t.Friction[f].Face-1])
		k.capNow[f], k.capC[3*f], k.kinetic[f] = capacity, capacity, capacity
		k.limit[f] = max(float64(k.t.Friction[f].Peak*capacity), k.t.Friction[f].Floor)
	}
}

// setTrialFaces sets trialPer at the start of the lock decision of block g: the friction on faces that slide.
//
//go:nosplit
func (k *Kernel) setTrialFaces(g *Block, atRest uint64) {
	for _, f := range k.t.Faces {
		if at := k.bitOf[f]; at.block == k.bitOf[g.Elements[0]].block {
			k.trialPer[k.t.Friction[f].Face-1] = 0
			if atRest>>at.bit&1 == 0 {
				k.trialPer[k.t.Friction[f].Face-1] = -float64(k.direction(f) * k.t.Friction[f].Mu)
			}
		}
	}
}

// setTrialTaus sets trialTau of the friction on faces at a bound, and the limits of all, from trialTau of their contacts.
//
//go:nosplit
func (k *Kernel) setTrialTaus(g *Block, atRest uint64) {
	b := k.bitOf[g.Elements[0]].block
	for _, f := range k.t.Faces {
		at, c := k.bitOf[f], k.t.Friction[f].Face-1
		if at.block != b {
			continue
		}
		if atRest>>k.bitOf[c].bit&1 == 0 {
			k.trialTau[c] = 0
		}
		if atRest>>at.bit&1 == 1 && k.atBound[f] != 0 {
			k.trialTau[f] = float64(k.trialPer[c] * k.trialTau[c])
		}
	}
	k.setFaceLimits(b, k.trialTau)
}

// clearTrialFaces ends the lock decision of block g: impacts have no friction on faces.
//
//go:nosplit
func (k *Kernel) clearTrialFaces(g *Block) {
	for _, f := range k.t.Faces {
		if k.bitOf[f].block == k.bitOf[g.Elements[0]].block {
			k.trialPer[k.t.Friction[f].Face-1] = 0
		}
	}
}

// freeFace frees the friction on the face of contact c, which opens.
//
//go:nosplit
func (k *Kernel) freeFace(c int) {
	if f := k.t.FaceOn[c]; f >= 0 {
		at := k.bitOf[f]
		k.mode[f] = Free
		k.kappa[at.block] &^= 1 << at.bit
	}
}

// activateFaces gives the friction on the faces of contacts that have closed the mode of its slip.
//
//go:nosplit
func (k *Kernel) activateFaces() {
	for _, f := range k.t.Faces {
		if k.mode[f] == Free && k.mode[k.t.Friction[f].Face-1] == Stuck {
			k.setMode(f, k.modeAtSlip(f, k.slip[f]))
		}
	}
}

// maxJams bounds the jams of a block that one decision of the modes stops.
const maxJams = 2

// stopJam stops friction that jams in block b: it slides on the face of a contact that would have to pull to stay closed,
// because the friction turns the sign of its mobility. No force is consistent with the slip, so an impulse ends it
// (Painlevé; Génot and Brogliato, Eur. J. Mech. A/Solids 18, 1999). It reports whether there was such friction.
//
//go:nosplit
func (k *Kernel) stopJam(b int) bool {
	for _, f := range k.t.Faces {
		c := k.t.Friction[f].Face - 1
		if k.bitOf[f].block == b && k.followsLock(f) && k.tau[c] > 10*k.torqueTolOf(c) {
			k.setMode(f, Stuck)
			k.stopTogether(b, k.kappa[b])
			return true
		}
	}
	return false
}

// slidingFactor is the factorisation of the lock set of a block with friction that slides on faces: L·U, the diagonal of
// L is 1.
type slidingFactor struct {
	kappa uint64 // lock set that is factorised
	factor
	per []float64 // facePer of the elements of the block in it
}

// slidesWithLocks reports whether friction slides on the faces of the locks of block b, and makes sliding[b] their
// factorisation with it.
//
//go:nosplit
func (k *Kernel) slidesWithLocks(b int) bool {
	f, g := &k.sliding[b], &k.blocks[b]
	slides, same := false, f.kappa == k.kappa[b]
	for rest := k.kappa[b]; rest != 0; rest &= rest - 1 {
		l := bits.TrailingZeros64(rest)
		per := k.facePer(g.Elements[l])
		slides, same = slides || per != 0, same && per == f.per[l]
		f.per[l] = per
	}
	if slides && !same {
		f.kappa = k.kappa[b]
		k.factoriseSliding(f, g)
	}

	return slides
}

// factoriseSliding sets f to the factorisation of its lock set on the independent locks.
//
//go:nosplit
func (k *Kernel) factoriseSliding(f *slidingFactor, g *Block) {
	mc := len(g.Elements)
	f.rank = 0
	for rest := f.kappa; rest != 0; rest &= rest - 1 {
		f.addLock(g.Gram, mc, bits.TrailingZeros64(rest))
	}
	for q := range f.rank {
		k.addSlidingRow(&f.factor, g, f.per, q)
	}
}

// addSlidingRow adds row q to the factorisation of the locks taken in f with the friction that slides on their faces, of
// torque per times that of the lock.
//
//go:nosplit
func (k *Kernel) addSlidingRow(f *factor, g *Block, per []float64, q int) {
	mc, l := len(g.Elements), f.taken[q]
	row := f.l[q*mc : q*mc+f.rank]
	for c, j := range f.taken[:f.rank] {
		row[c] = -g.Gram[l*mc+j]
		if per[j] != 0 {
			row[c] -= float64(per[j] * g.Gram[l*mc+k.bitOf[k.t.FaceOn[g.Elements[j]]].bit])
		}
	}
	for p := range q {
		part := row[p] / f.l[p*mc+p]
		axpy(row[p:], -part, f.l[p*mc+p:p*mc+f.rank])
		row[p] = part
	}
	if own := -g.Gram[l*mc+l]; math.Abs(row[q]) < float64(1e-11*own) { // the friction jams
		row[q] = math.Inf(1)
	}
}

// solveSliding sets the torques of the locks of block b that cancel the accelerations in residualAccel together with
// the friction that slides on their faces, and the torques of that friction.
//
//go:nosplit
func (k *Kernel) solveSliding(f *slidingFactor, g *Block, tau []float64) {
	mc := len(g.Elements)
	for q, l := range f.taken[:f.rank] {
		s := k.residualAccel[g.Elements[l]]
		for p := range q {
			s -= float64(f.l[q*mc+p] * f.rhs[p])
		}
		f.rhs[q] = s
	}
	for q := f.rank - 1; q >= 0; q-- {
		s := f.rhs[q]
		for c := q + 1; c < f.rank; c++ {
			s -= float64(f.l[q*mc+c] * f.rhs[c])
		}
		f.rhs[q] = s / f.l[q*mc+q]
	}
	for q, l := range f.taken[:f.rank] {
		i := g.Elements[l]
		tau[i] = f.rhs[q]
		if f.per[l] != 0 {
			tau[k.t.FaceOn[i]] = float64(f.per[l] * f.rhs[q])
		}
	}
}

// facesMoved reports whether the friction on the faces of locks is not that of lockedMode, and makes lockedPer that of
// the present modes.
//
//go:nosplit
func (k *Kernel) facesMoved() bool {
	moved := false
	for rest := k.kappa[0]; rest != 0; rest &= rest - 1 {
		c := bits.TrailingZeros64(rest)
		per := k.facePer(c)
		moved = moved || per != k.lockedPer[c]
		k.lockedPer[c] = per
	}
	return moved
}

// solveSlidingLocks is solveLocks with the friction that slides on the faces of the locks.
//
//go:nosplit
func (k *Kernel) solveSlidingLocks() {
	f, mc := &k.factor, k.t.Mc
	width := 2*k.t.N + k.t.M + mc
	for q := range f.rank {
		k.addSlidingRow(f, &k.blocks[0], k.lockedPer, q)
		for p := range q {
			axpy(f.rhs[q*width:(q+1)*width], -f.l[q*mc+p], f.rhs[p*width:(p+1)*width])
		}
	}
	for q := f.rank - 1; q >= 0; q-- {
		for c := q + 1; c < f.rank; c++ {
			axpy(f.rhs[q*width:(q+1)*width], -f.l[q*mc+c], f.rhs[c*width:(c+1)*width])
		}
		scaleIn(f.rhs[q*width:(q+1)*width], 1/f.l[q*mc+q])
	}
}
