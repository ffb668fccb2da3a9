package kernel

import "math/bits"

// lock is the factorisation of the present lock set of block b.
//
//go:nosplit
func (k *Kernel) lock(b int) *blockFactor {
	f := &k.locks[b]
	if f.of != k.kappa[b] {
		g := &k.blocks[b]
		f.rank = 0
		for rest := k.kappa[b]; rest != 0; rest &= rest - 1 {
			f.take(g.Gram, len(g.Of), bits.TrailingZeros64(rest))
		}
		for q := range f.rank {
			f.turn[q] = 1 / f.l[q*len(g.Of)+q]
		}
		f.of = k.kappa[b]
	}
	return f
}

// carry sets the torques of the locks of block b that take their accelerations in left
// away; locks that depend on those before them carry none.
//
//go:nosplit
func (k *Kernel) carry(b int, tau []float64) {
	f, g := k.lock(b), &k.blocks[b]
	mc := len(g.Of)
	for rest := k.kappa[b]; rest != 0; rest &= rest - 1 {
		tau[g.Of[bits.TrailingZeros64(rest)]] = 0
	}
	for q, l := range f.taken[:f.rank] {
		s := k.left[g.Of[l]]
		for p := range q {
			s -= f.l[q*mc+p] * f.rhs[p]
		}
		f.rhs[q] = s * f.turn[q]
	}
	for q := f.rank - 1; q >= 0; q-- {
		s := f.rhs[q]
		for p := q + 1; p < f.rank; p++ {
			s -= f.l[p*mc+q] * f.rhs[p]
		}
		f.rhs[q] = s * f.turn[q]
		tau[g.Of[f.taken[q]]] = f.rhs[q]
	}
}

// project takes the slip of what is locked out of dst, a state or a derivative of one,
// and sets tau to the torques or impulses of the locks that do so.
//
//go:nosplit
func (k *Kernel) project(dst, tau []float64) {
	for b, kappa := range k.kappa {
		if kappa == 0 {
			continue
		}
		g := &k.blocks[b]
		if len(g.Of) == 1 || kappa&(kappa-1) == 0 { // most blocks have one lock
			l := bits.TrailingZeros64(kappa)
			i, own := g.Of[l], g.Gram[l*(len(g.Of)+1)]
			tau[i] = 0
			if own != 0 {
				tau[i] = -k.slips.dot(i, dst) / own
				k.pushes.axpy(dst, tau[i], i)
			}
			continue
		}
		for rest := kappa; rest != 0; rest &= rest - 1 {
			i := g.Of[bits.TrailingZeros64(rest)]
			k.left[i] = k.slips.dot(i, dst)
		}
		k.calls.carry(k, b, tau)
		for rest := kappa; rest != 0; rest &= rest - 1 {
			i := g.Of[bits.TrailingZeros64(rest)]
			k.pushes.axpy(dst, tau[i], i)
		}
	}
}

// constrain puts a state on the constraint of the lock set, momentum kept.
//
//go:nosplit
func (k *Kernel) constrain(x []float64) { k.project(x, k.dtau) }

// unforced sets free for state x from w.
//
//go:nosplit
func (k *Kernel) unforced(x []float64) {
	k.t.Net.WA.mul(k.free, x)
	k.t.Net.WB.mulAdd(k.free, k.driven(x, k.w))
}

// driven are the signals of w with what the slopes of affine ones give in x, of which nil
// is none.
//
//go:nosplit
func (k *Kernel) driven(x, w []float64) []float64 {
	if len(k.region) == 0 || x == nil {
		return w[:k.t.M]
	}
	k.yield(x)
	copy(k.forced, w[:k.t.FirstAffine])
	for j := k.t.FirstAffine; j < k.t.FirstLaw; j++ {
		k.forced[j] += w[j]
	}
	copy(k.forced[k.t.FirstLaw:], w[k.t.FirstLaw:k.t.M])
	return k.forced
}

// yield sets affine signals in forced to what their slopes give in x.
//
//go:nosplit
func (k *Kernel) yield(x []float64) {
	for s, r := range k.region {
		z := k.levels.dot(s, x)
		for _, j := range k.t.Switches[s].Signals {
			k.forced[j] = k.t.Signals[j].Affine.Slope[r] * z
		}
	}
}

// torquesSparse is torques of a plant that is stepped sparse.
//
//go:nosplit
func (k *Kernel) torquesSparse(x []float64) {
	k.unforced(x)
	for b := range k.blocks {
		k.torquesOf(b)
	}
}

// torquesOf sets tau of block b from free.
//
//go:nosplit
func (k *Kernel) torquesOf(b int) {
	g := &k.blocks[b]
	for _, i := range g.Of {
		k.tau[i] = k.given(i)
	}
	if k.kappa[b] == 0 {
		return
	}
	for l, i := range g.Of {
		k.left[i] = k.free[i] + g.gathered(l, k.tau)
	}
	k.calls.carry(k, b, k.tau)
}

// given is the torque of element i at this instant unless it carries: then 0.
//
//go:nosplit
func (k *Kernel) given(i int) float64 {
	switch {
	case k.idle(i):
		return k.idleTorque(i)
	case k.mode[i] == Free:
		return 0
	}
	return k.direction(i) * k.capNow[i]
}

// grip sets what the friction elements can carry and do carry at this instant.
//
//go:nosplit
func (k *Kernel) grip() {
	if k.t.Net != nil {
		k.unforced(k.x)
	}
	for b := range k.blocks {
		k.limits(k.blocks[b].Of)
		k.load(b)
	}
}

// adds reports whether element l of block b can slip while those in the factorisation
// at hand are locked.
//
//go:nosplit
func (k *Kernel) adds(b, l int) bool {
	g := &k.blocks[b]
	if !k.take(g.Gram, len(g.Of), l) {
		return false
	}
	k.rank--
	return true
}
