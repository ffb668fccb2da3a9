package kernel

import (
	"math"
	"math/bits"
)

// lockCompliance is the part of its own mobility by which a lock yields in solveComplementarity. It
// makes the split of load between redundant locks unique and is far below overload.
const lockCompliance = 1e-13

// maxPivots bounds the pivots of solveComplementarity, per friction element; with friction on faces, per element at rest.
const maxPivots = 4

// solveComplementarity solves for the torques of the elements at rest, the linear complementarity
// problem
//
//	a = b + G·tau,    low <= tau <= limit,    a = 0 inside, a >= 0 at limit, a <= 0 at low
//
// with a the slip accelerations, b those without these torques, and G = W·Bc. It moves violating
// elements between the interior and the bounds: all of them while this reduces their number, then
// only the one of the lowest index, which terminates (Júdice and Pires, Computers Ops Res. 21,
// 1994). trialTau holds the torques. atBound holds the bound: 1, -1, or 0 for the interior.
//
//go:nosplit
func (k *Kernel) solveComplementarity(b int, atRest uint64) {
	g := &k.blocks[b]
	for r := atRest; r != 0; r &= r - 1 {
		i := g.Elements[bits.TrailingZeros64(r)]
		k.applied[i], k.atBound[i] = 0, 0
	}

	k.setUnlockedAccel(g, atRest)
	if len(k.t.Faces) > 0 {
		k.setTrialFaces(g, atRest)
	}
	fewest, patience, last, exchanges := len(g.Elements)+1, 3, uint64(0), maxPivots*len(g.Elements)
	if len(k.t.Faces) > 0 { // friction on faces may jam, and there may be no solution
		exchanges = maxPivots * bits.OnesCount64(atRest)
	}
	for range exchanges {
		k.solveInterior(g, atRest)
		if len(k.t.Pressed) > 0 {
			k.setPressed(g, atRest)
		}
		if len(k.t.Faces) > 0 {
			k.setTrialTaus(g, atRest)
		}
		violated := k.violations(g, atRest)
		count := bits.OnesCount64(violated)
		switch {
		case count == 0:
			return
		case count < fewest:
			fewest, patience = count, 3
		case patience > 0:
			patience--
		default:
			if len(k.t.Faces) > 0 && violated != last {
				violated &^= last // of friction that jams, an exchange does not end the violation
			}
			violated &= -violated // only the lowest index
			last = violated
		}

		for ; violated != 0; violated &= violated - 1 {
			k.pivot(g.Elements[bits.TrailingZeros64(violated)])
		}
	}

	k.solveInterior(g, atRest)
	if len(k.t.Faces) > 0 {
		k.setTrialTaus(g, atRest)
	}
}

// setUnlockedAccel sets unlockedAccel of the elements at rest of a block: their slip accelerations under applied, rad/s².
//
//go:nosplit
func (k *Kernel) setUnlockedAccel(g *Block, atRest uint64) {
	if k.t.Sparse != nil {
		for r := atRest; r != 0; r &= r - 1 {
			l := bits.TrailingZeros64(r)
			i := g.Elements[l]
			k.unlockedAccel[i] = k.freeAccel[i] + g.addedAcceleration(l, k.applied)
		}
		return
	}

	copy(k.w[k.t.M:], k.applied)
	m := k.currentUnlocked()
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w)
	k.slips.mul(k.unlockedAccel, k.xd)
}

// solveInterior sets trialTau: the bound for elements at a bound, and for the others the torques
// that cancel their slip acceleration.
//
//go:nosplit
func (k *Kernel) solveInterior(g *Block, atRest uint64) {
	mc, f := len(g.Elements), &k.factor
	f.rank = 0
	for r := atRest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i := g.Elements[l]
		switch {
		case k.atBound[i] != 0 && k.t.Friction[i].Face > 0:
			k.trialTau[i] = 0 // part of its contact
		case k.atBound[i] > 0:
			k.trialTau[i] = k.limit[i]
		case k.atBound[i] < 0:
			k.trialTau[i] = k.minTorque(i)
		default:
			f.taken[f.rank] = l
			f.rank++
			k.trialTau[i] = 0
		}
	}

	if k.presses(g) {
		k.eliminateInterior(g, atRest)
		return
	}
	for q, i := range f.taken[:f.rank] { // Cholesky of -G with lockCompliance, and the right side
		for p, j := range f.taken[:q+1] {
			s := -g.Gram[i*mc+j]
			if p == q {
				s = float64(s * (1 + lockCompliance))
			}
			for c := range p {
				s -= float64(f.l[q*mc+c] * f.l[p*mc+c])
			}
			if p < q {
				f.l[q*mc+p] = s / f.l[p*mc+p]
			} else {
				f.l[q*mc+q] = math.Sqrt(max(s, float64(-g.Gram[i*mc+i]*lockCompliance/2)))
			}
		}

		s := k.unlockedAccel[g.Elements[i]]
		for r := atRest; r != 0; r &= r - 1 {
			j := bits.TrailingZeros64(r)
			if k.atBound[g.Elements[j]] != 0 {
				s += float64(g.Gram[i*mc+j] * k.trialTau[g.Elements[j]])
			}
		}

		for p := range q {
			s -= float64(f.l[q*mc+p] * f.rhs[p])
		}
		f.rhs[q] = s / f.l[q*mc+q]
	}

	for q := f.rank - 1; q >= 0; q-- {
		s := f.rhs[q]
		for p := q + 1; p < f.rank; p++ {
			s -= float64(f.l[p*mc+q] * k.trialTau[g.Elements[f.taken[p]]])
		}
		k.trialTau[g.Elements[f.taken[q]]] = s / f.l[q*mc+q]
	}
}

// violations returns the set of elements whose trialTau contradicts their bound.
//
//go:nosplit
func (k *Kernel) violations(g *Block, atRest uint64) uint64 {
	set := uint64(0)
	for r := atRest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i, bad := g.Elements[l], false
		if k.atBound[i] == 0 {
			slack := float64(overload/4*k.limit[i]) + k.torqueTolOf(i)
			bad = k.trialTau[i] > k.limit[i]+slack || k.trialTau[i] < k.minTorque(i)-slack
		} else {
			a, size := k.trialAcceleration(g, atRest, l)
			bad = float64(k.atBound[i])*a < -1e-11*size
		}

		if bad {
			set |= 1 << l
		}
	}

	return set
}

// trialAcceleration returns the slip acceleration of element l of a block under trialTau, and the
// size of its terms, rad/s².
//
//go:nosplit
func (k *Kernel) trialAcceleration(g *Block, atRest uint64, l int) (a, size float64) {
	mc, i := len(g.Elements), g.Elements[l]
	a = k.unlockedAccel[i] + float64(lockCompliance*g.Gram[l*mc+l]*k.trialTau[i])
	size = math.Abs(k.unlockedAccel[i])
	for r := atRest; r != 0; r &= r - 1 {
		j := bits.TrailingZeros64(r)
		if k.t.Friction[g.Elements[j]].Face > 0 && k.atBound[g.Elements[j]] != 0 {
			continue // part of its contact
		}
		gram := k.pressedGram(g, l, j)
		part := float64(gram * k.trialTau[g.Elements[j]])
		a += part
		size += math.Abs(part)
	}

	return a, size
}

// pivot moves element i to the bound that it exceeds, or back to the interior.
//
//go:nosplit
func (k *Kernel) pivot(i int) {
	switch {
	case k.atBound[i] != 0:
		k.atBound[i] = 0
	case k.trialTau[i] > 0:
		k.atBound[i] = 1
	default:
		k.atBound[i] = -1
	}
	if c := k.t.Friction[i].Face - 1; c >= 0 {
		k.trialPer[c] = -float64(float64(k.atBound[i]) * k.t.Friction[i].Mu)
	}
}
