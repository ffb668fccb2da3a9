package kernel

import (
	"math"
	"math/bits"
)

// currentMode returns the matrices of the present lock set: from the table where the lock sets are
// precomputed, otherwise factorised in place.
//
//go:nosplit
func (k *Kernel) currentMode() *Mode {
	if k.t.Modes != nil {
		return &k.t.Modes[k.base|int(k.kappa[0])]
	}
	if len(k.t.Faces) > 0 && k.facesMoved() || k.lockedSet != k.kappa[0] || k.lockedBase != k.base {
		k.calls.factorise(k)
		k.lockedSet, k.lockedBase = k.kappa[0], k.base
	}

	return &k.lockedMode
}

// factor is the working memory for a Cholesky factorisation S = L·Lᵀ of S = W_L·M⁻¹·W_Lᵀ on a set
// of locks.
type factor struct {
	rank  int       // locks taken
	taken []int     // the independent locks, in the order in which they were taken
	l     []float64 // mc×mc, lower triangle
	rhs   []float64 // mc×(2n+m+mc)
}

// addLock adds lock e to the factorisation and reports true, if e is independent of the locks in
// it.
//
//go:nosplit
func (f *factor) addLock(gram []float64, mc, e int) bool {
	q := f.rank
	row := f.l[q*mc : q*mc+q+1]
	d := -gram[e*mc+e]
	left := d
	for j, g := range f.taken[:q] {
		s := -gram[e*mc+g]
		for p := range j {
			s -= float64(row[p] * f.l[j*mc+p])
		}
		row[j] = s / f.l[j*mc+j]
		left -= float64(row[j] * row[j])
	}

	if !(left > 1e-11*d) {
		return false
	}
	row[q] = math.Sqrt(left)
	f.taken[q] = e
	f.rank++
	return true
}

// canSlip reports whether element l of block b, outside kappa, can slip while kappa holds: whether
// the mobility W_i·P·M⁻¹·W_iᵀ of its slip is not zero.
//
//go:nosplit
func (k *Kernel) canSlip(b, l int) bool {
	if k.t.Sparse != nil {
		return k.isIndependent(b, l)
	}
	m, n, mc, i := k.currentMode(), k.t.N, k.t.Mc, l
	g := 0.0
	for r := range n {
		w := k.t.W[i*n+r]
		if w == 0 {
			continue
		}
		for c, p := range m.P[r*n : (r+1)*n] {
			g += float64(w * p * k.t.Bc[c*mc+i])
		}
	}

	return g < 1e-10*k.t.Gram[i*mc+i] // both negative
}

// factorise sets lockedMode for lock set kappa without allocating:
//
//	(T, U, S⁻¹·W) = S⁻¹·(W·A, W·B, W)    A_kappa = A + Bc·T, and so on.
//
// Locks that depend on those before them carry no torque. In T and U the friction that slides on the faces of the locks
// acts with them. The cost is bounded by mc²·(2n+m+mc).
//
//go:nosplit
func (k *Kernel) factorise() {
	t, kappa, open := k.t, k.kappa[0], k.currentUnlocked()
	k.rank = 0
	for rest := kappa; rest != 0; rest &= rest - 1 {
		k.addLock(t.Gram, t.Mc, bits.TrailingZeros64(rest))
	}
	m, n, mw := &k.lockedMode, t.N, t.M+t.Mc
	width := 2*n + mw
	k.setLockRows()
	k.solveLocks()
	copy(m.P, t.Open.P)
	for q, e := range k.taken[:k.rank] {
		for i := range n {
			if b := t.Bc[i*t.Mc+e]; b != 0 {
				axpy(m.P[i*n:(i+1)*n], b, k.rhs[q*width+n+mw:(q+1)*width])
			}
		}
	}

	if len(t.Faces) > 0 {
		k.setLockRows()
		k.solveSlidingLocks()
	}
	copy(m.A, open.A)
	copy(m.B, t.Open.B)
	clear(m.T)
	clear(m.U)
	for i := range n {
		for rest := kappa; rest != 0; rest &= rest - 1 {
			m.B[i*mw+t.M+bits.TrailingZeros64(rest)] = 0
		}
	}
	for q, e := range k.taken[:k.rank] {
		x := k.rhs[q*width : (q+1)*width]
		k.addLockTorque(m, e, 1, x)
		if k.lockedPer[e] != 0 {
			k.addLockTorque(m, t.FaceOn[e], k.lockedPer[e], x)
		}
	}
}

// addLockTorque adds element e to mode m, whose torque is per times that of a lock with the rows x of T and U.
//
//go:nosplit
func (k *Kernel) addLockTorque(m *Mode, e int, per float64, x []float64) {
	n, mw := k.t.N, k.t.M+k.t.Mc
	axpy(m.T[e*n:(e+1)*n], per, x[:n])
	axpy(m.U[e*mw:(e+1)*mw], per, x[n:n+mw])
	for i := range n {
		if b := float64(per * k.t.Bc[i*k.t.Mc+e]); b != 0 {
			axpy(m.A[i*n:(i+1)*n], b, x[:n])
			axpy(m.B[i*mw:(i+1)*mw], b, x[n:n+mw])
		}
	}
}

// setLockRows sets rhs to (W·A, W·B, W) on the locks taken, without the columns of B that belong to locks of kappa.
//
//go:nosplit
func (k *Kernel) setLockRows() {
	t, f := k.t, &k.factor
	n, mw := t.N, t.M+t.Mc
	width := 2*n + mw
	for q, e := range f.taken[:f.rank] {
		r := f.rhs[q*width : (q+1)*width]
		copy(r[:n], k.unlockedWA[e*n:(e+1)*n])
		copy(r[n:n+mw], t.WB[e*mw:(e+1)*mw])
		for rest := k.kappa[0]; rest != 0; rest &= rest - 1 {
			r[n+t.M+bits.TrailingZeros64(rest)] = 0
		}
		copy(r[n+mw:], t.W[e*n:(e+1)*n])
	}
}

// solveLocks multiplies rhs by S⁻¹ on the locks taken.
//
//go:nosplit
func (k *Kernel) solveLocks() {
	f, mc := &k.factor, k.t.Mc
	width := 2*k.t.N + k.t.M + mc
	row := func(q int) []float64 { return f.rhs[q*width : (q+1)*width] }
	for q := range f.rank {
		r := row(q)
		for j := range q {
			axpy(r, -f.l[q*mc+j], row(j))
		}
		scaleIn(r, 1/f.l[q*mc+q])
	}

	for q := f.rank - 1; q >= 0; q-- {
		r := row(q)
		for j := q + 1; j < f.rank; j++ {
			axpy(r, -f.l[j*mc+q], row(j))
		}
		scaleIn(r, 1/f.l[q*mc+q])
	}
}
