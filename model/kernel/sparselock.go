package kernel

import "math/bits"

// lockFactor returns the factorisation of the present lock set of block b.
//
//go:nosplit
func (k *Kernel) lockFactor(b int) *blockFactor {
	f := &k.locks[b]
	if f.kappa != k.kappa[b] {
		g := &k.blocks[b]
		f.rank = 0
		for rest := k.kappa[b]; rest != 0; rest &= rest - 1 {
			f.addLock(g.Gram, len(g.Elements), bits.TrailingZeros64(rest))
		}
		for q := range f.rank {
			f.inverseDiag[q] = 1 / f.l[q*len(g.Elements)+q]
		}
		if f.rank == 2 {
			f.first, f.second = g.Elements[f.taken[0]], g.Elements[f.taken[1]]
			f.inverseFirst, f.inverseSecond, f.below = f.inverseDiag[0], f.inverseDiag[1], f.l[len(g.Elements)]
		}
		f.kappa = k.kappa[b]
	}

	return f
}

// solveLockTorques sets the torques of the locks of block b that cancel the accelerations in
// residualAccel. Locks that depend on those before them carry none. The friction that slides on their faces acts with
// them, and its torques are set, too, except while a state is projected.
//
//go:nosplit
func (k *Kernel) solveLockTorques(b int, tau []float64) {
	g := &k.blocks[b]
	for rest := k.kappa[b]; rest != 0; rest &= rest - 1 {
		tau[g.Elements[bits.TrailingZeros64(rest)]] = 0
	}
	if len(k.t.Faces) > 0 && !k.projecting && k.slidesWithLocks(b) {
		k.solveSliding(&k.sliding[b], g, tau)
	} else {
		k.lockFactor(b).solve(g, k.residualAccel, tau)
	}
}

// solve sets tau of the locks of block g to the torques that cancel the accelerations residual.
//
//go:nosplit
func (f *blockFactor) solve(g *Block, residual, tau []float64) {
	mc := len(g.Elements)
	if mc == 2 && f.rank == 2 {
		f.solvePair(residual, tau)
		return
	}

	for q, l := range f.taken[:f.rank] {
		s := residual[g.Elements[l]]
		for p := range q {
			s -= float64(f.l[q*mc+p] * f.rhs[p])
		}
		f.rhs[q] = float64(s * f.inverseDiag[q])
	}
	for q := f.rank - 1; q >= 0; q-- {
		s := f.rhs[q]
		for p := q + 1; p < f.rank; p++ {
			s -= float64(f.l[p*mc+q] * f.rhs[p])
		}
		f.rhs[q] = float64(s * f.inverseDiag[q])
		tau[g.Elements[f.taken[q]]] = f.rhs[q]
	}
}

// solvePair is solve for two locks, its loops unrolled.
//
//go:nosplit
func (f *blockFactor) solvePair(residual, tau []float64) {
	r := float64(residual[f.first] * f.inverseFirst)
	s := float64(float64((residual[f.second]-float64(f.below*r))*f.inverseSecond) * f.inverseSecond)
	tau[f.first], tau[f.second] = float64((r-float64(f.below*s))*f.inverseFirst), s
}

// projectSlips removes the slip of locked elements from dst, a state or a derivative of one. It sets tau to the torques
// or impulses of the locks that do so. Of a derivative they do so together with the friction that slides on their faces.
//
//go:nosplit
func (k *Kernel) projectSlips(dst, tau []float64) {
	k.setResidualAccel(dst)
	clear(k.lockTorque)
	for b, kappa := range k.kappa {
		if kappa == 0 {
			continue
		}
		g := &k.blocks[b]
		if kappa == 3 && len(g.Elements) == 2 && len(k.t.Faces) == 0 { // a locked brake of a wheel that rolls
			if f := k.lockFactor(b); f.rank == 2 {
				f.solvePair(k.residualAccel, k.lockTorque)
				tau[f.first], tau[f.second] = k.lockTorque[f.first], k.lockTorque[f.second]
				continue
			}
		}
		if len(g.Elements) == 1 || kappa&(kappa-1) == 0 && len(k.t.Faces) == 0 { // most blocks have one lock
			l := bits.TrailingZeros64(kappa)
			i, own := g.Elements[l], g.Gram[l*(len(g.Elements)+1)]
			if own != 0 {
				k.lockTorque[i] = -k.residualAccel[i] / own
			}
			tau[i] = k.lockTorque[i]
			continue
		}

		k.calls.solveLockTorques(k, b, k.lockTorque)
		for rest := kappa; rest != 0; rest &= rest - 1 {
			i := g.Elements[bits.TrailingZeros64(rest)]
			tau[i] = k.lockTorque[i]
		}
	}

	for _, f := range k.t.Faces {
		if !k.projecting && k.followsLock(f) {
			tau[f] = k.lockTorque[f]
		}
	}
	k.addLockTorques(dst)
}

// setResidualAccel sets residualAccel of the locks to their slips in dst.
//
//go:nosplit
func (k *Kernel) setResidualAccel(dst []float64) {
	if !k.largeBlocks {
		clear(k.residualAccel)
		k.slipStream.mulAdd(k.residualAccel, dst)
		return
	}
	for b, kappa := range k.kappa {
		for rest := kappa; rest != 0; rest &= rest - 1 {
			i := k.blocks[b].Elements[bits.TrailingZeros64(rest)]
			k.residualAccel[i] = k.slips.dot(i, dst)
		}
	}
}

// addLockTorques adds the effect of lockTorque to dst.
//
//go:nosplit
func (k *Kernel) addLockTorques(dst []float64) {
	if !k.largeBlocks {
		k.frictionStream.mulAdd(dst, k.lockTorque)
		return
	}
	for b, kappa := range k.kappa {
		if kappa == 0 {
			continue
		}
		for rest := kappa | k.faceBits[b]; rest != 0; rest &= rest - 1 {
			i := k.blocks[b].Elements[bits.TrailingZeros64(rest)]
			if v := k.lockTorque[i]; v != 0 {
				k.bcT.axpy(dst, v, i)
			}
		}
	}
}

// projectSparse projects a state on the constraint of the lock set; momentum is kept.
//
//go:nosplit
func (k *Kernel) projectSparse(x []float64) {
	k.projecting = true
	k.projectSlips(x, k.dtau)
	k.projecting = false
}

// setFreeAccel sets freeAccel for state x from w.
//
//go:nosplit
func (k *Kernel) setFreeAccel(x []float64) {
	k.t.Sparse.WA.mul(k.freeAccel, x)
	k.t.Sparse.WB.mulAdd(k.freeAccel, k.totalSignals(x, k.w))
}

// setFreeAccelOfLocks sets freeAccel of the locks, which alone need it for their torques, for state x from signals v.
//
//go:nosplit
func (k *Kernel) setFreeAccelOfLocks(x, v []float64) {
	for b, kappa := range k.kappa {
		for rest := kappa; rest != 0; rest &= rest - 1 {
			i := k.blocks[b].Elements[bits.TrailingZeros64(rest)]
			k.freeAccel[i] = k.t.Sparse.WB.dotFrom(k.t.Sparse.WA.dot(i, x), i, v)
		}
	}
}

// totalSignals returns the signals of w plus the slope parts of affine ones in x; nil x adds none.
//
//go:nosplit
func (k *Kernel) totalSignals(x, w []float64) []float64 {
	if len(k.region) == 0 || x == nil {
		return w[:k.t.M]
	}
	k.setSlopeParts(x)
	copy(k.signals, w[:k.t.FirstAffine])
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		k.signals[j] += w[j]
	}
	copy(k.signals[k.t.FirstLaw:], w[k.t.FirstLaw:k.t.M])
	return k.signals
}

// setSlopeParts sets the affine entries of signals to their slope parts in x.
//
//go:nosplit
func (k *Kernel) setSlopeParts(x []float64) {
	for i, slope := range k.slope {
		j := k.t.FirstAffine + i
		if k.signals[j] = 0; slope != 0 { // teeth apart have none
			k.signals[j] = float64(slope * k.levels.dot(k.t.Signals[j].Affine.Switch, x))
		}
	}
}

// setTorquesSparse is setTorques for a plant stepped sparse.
//
//go:nosplit
func (k *Kernel) setTorquesSparse(x []float64) {
	k.setFreeAccelOfLocks(x, k.totalSignals(x, k.w))
	for i := range k.tau {
		k.tau[i] = k.appliedTorque(i)
	}
	for b := range k.blocks {
		k.setBlockLocks(b)
	}
}

// setBlockLocks sets tau of the locks of block b from freeAccel and tau of the other elements.
//
//go:nosplit
func (k *Kernel) setBlockLocks(b int) {
	if k.kappa[b] == 0 {
		return
	}
	g := &k.blocks[b]
	for rest := k.kappa[b]; rest != 0; rest &= rest - 1 {
		l := bits.TrailingZeros64(rest)
		i := g.Elements[l]
		k.residualAccel[i] = k.freeAccel[i] + g.addedAcceleration(l, k.tau)
	}
	k.calls.solveLockTorques(k, b, k.tau)
}

// appliedTorque returns the torque of element i at this instant, 0 where it is in kappa or follows a lock.
//
//go:nosplit
func (k *Kernel) appliedTorque(i int) float64 {
	c := k.t.Friction[i].Face - 1
	switch {
	case k.mode[i] == Free:
		return 0
	case c >= 0 && !k.isIdle(c):
		return 0
	case c >= 0:
		return float64(k.facePer(c) * k.idleTorque(c))
	case k.mode[i] != Stuck:
		return float64(float64(k.mode[i]) * k.capNow[i])
	case k.carriesLoad(i):
		return 0
	}

	return k.idleTorque(i)
}

// setLoads sets the limits and the torques of the friction elements at this instant.
//
//go:nosplit
func (k *Kernel) setLoads() {
	if k.t.Sparse != nil {
		k.setFreeAccelOfLocks(k.x, k.totalSignals(k.x, k.w))
	}
	for b := range k.blocks {
		k.setLimits(k.blocks[b].Elements)
		k.setLoad(b)
	}
	if k.t.DecidesAlone {
		k.setLoadTorques()
	}
}

// isIndependent reports whether element l of block b can slip while those in the present
// factorisation are locked.
//
//go:nosplit
func (k *Kernel) isIndependent(b, l int) bool {
	g := &k.blocks[b]
	if !k.addLock(g.Gram, len(g.Elements), l) {
		return false
	}
	k.rank--
	return true
}
