package kernel

import (
	"math"
	"math/bits"
)

// softness is the part of its own mobility by which a lock yields in balance. It
// makes redundant locks share their load in one way and is far below overload.
const softness = 1e-13

// balanceTries bounds the exchanges of balance, per friction element.
const balanceTries = 4

// balance finds the torques of the elements at rest: the complementarity problem
//
//	a = b + G·tau,    low <= tau <= limit,    a = 0 inside, a >= 0 at limit, a <= 0 at low
//
// with a their slip accelerations, b those without their torques, G = W·Bc. It
// exchanges what violates this between the inside and the bounds: all of it while
// that helps, then the element of the lowest index alone, which comes to an end
// (Júdice and Pires, Computers Ops Res. 21, 1994). trial holds the torques, place
// the bound: 1, -1 or 0 inside.
//
//go:nosplit
func (k *Kernel) balance(b int, rest uint64) {
	g := &k.blocks[b]
	for r := rest; r != 0; r &= r - 1 {
		i := g.Of[bits.TrailingZeros64(r)]
		k.give[i], k.place[i] = 0, 0
	}
	k.unlocked(g)
	fewest, patience := len(g.Of)+1, 3
	for range balanceTries * len(g.Of) {
		k.inside(g, rest)
		violated := k.violated(g, rest)
		count := bits.OnesCount64(violated)
		switch {
		case count == 0:
			return
		case count < fewest:
			fewest, patience = count, 3
		case patience > 0:
			patience--
		default:
			violated &= -violated // the lowest index alone
		}
		for ; violated != 0; violated &= violated - 1 {
			k.exchange(g.Of[bits.TrailingZeros64(violated)])
		}
	}
	k.inside(g, rest)
}

// unlocked sets rate: the slip accelerations of a block under give.
//
//go:nosplit
func (k *Kernel) unlocked(g *Block) {
	if k.t.Net != nil {
		for l, i := range g.Of {
			k.rate[i] = k.free[i] + g.gathered(l, k.give)
		}
		return
	}
	copy(k.w[k.t.M:], k.give)
	m := k.open()
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w)
	k.slips.mul(k.rate, k.xd)
}

// inside sets trial: the bound of what stands there, and for the others the
// torques that take their slip acceleration away.
//
//go:nosplit
func (k *Kernel) inside(g *Block, rest uint64) {
	mc, f := len(g.Of), &k.factor
	f.rank = 0
	for r := rest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i := g.Of[l]
		switch k.place[i] {
		case 1:
			k.trial[i] = k.limit[i]
		case -1:
			k.trial[i] = k.least(i)
		default:
			f.taken[f.rank] = l
			f.rank++
			k.trial[i] = 0
		}
	}
	for q, i := range f.taken[:f.rank] { // Cholesky of -G + softness, and the right side
		for p, j := range f.taken[:q+1] {
			s := -g.Gram[i*mc+j]
			if p == q {
				s *= 1 + softness
			}
			for c := range p {
				s -= f.l[q*mc+c] * f.l[p*mc+c]
			}
			if p < q {
				f.l[q*mc+p] = s / f.l[p*mc+p]
			} else {
				f.l[q*mc+q] = math.Sqrt(max(s, -g.Gram[i*mc+i]*softness/2))
			}
		}
		s := k.rate[g.Of[i]]
		for r := rest; r != 0; r &= r - 1 {
			j := bits.TrailingZeros64(r)
			if k.place[g.Of[j]] != 0 {
				s += g.Gram[i*mc+j] * k.trial[g.Of[j]]
			}
		}
		for p := range q {
			s -= f.l[q*mc+p] * f.rhs[p]
		}
		f.rhs[q] = s / f.l[q*mc+q]
	}
	for q := f.rank - 1; q >= 0; q-- {
		s := f.rhs[q]
		for p := q + 1; p < f.rank; p++ {
			s -= f.l[p*mc+q] * k.trial[g.Of[f.taken[p]]]
		}
		k.trial[g.Of[f.taken[q]]] = s / f.l[q*mc+q]
	}
}

// violated is the set of elements that do not stand where trial wants them.
//
//go:nosplit
func (k *Kernel) violated(g *Block, rest uint64) uint64 {
	set := uint64(0)
	for r := rest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i, bad := g.Of[l], false
		if k.place[i] == 0 {
			slack := overload/4*k.limit[i] + k.noise
			bad = k.trial[i] > k.limit[i]+slack || k.trial[i] < k.least(i)-slack
		} else {
			a, size := k.moves(g, rest, l)
			bad = float64(k.place[i])*a < -1e-11*size
		}
		if bad {
			set |= 1 << l
		}
	}
	return set
}

// moves is the slip acceleration of element l of a block under trial, and the size of
// the terms it is made of, rad/s².
//
//go:nosplit
func (k *Kernel) moves(g *Block, rest uint64, l int) (a, size float64) {
	mc, i := len(g.Of), g.Of[l]
	a = k.rate[i] + softness*g.Gram[l*mc+l]*k.trial[i]
	size = math.Abs(k.rate[i])
	for r := rest; r != 0; r &= r - 1 {
		j := bits.TrailingZeros64(r)
		part := g.Gram[l*mc+j] * k.trial[g.Of[j]]
		a += part
		size += math.Abs(part)
	}
	return a, size
}

// exchange puts element i on the bound it exceeds, or back inside.
//
//go:nosplit
func (k *Kernel) exchange(i int) {
	switch {
	case k.place[i] != 0:
		k.place[i] = 0
	case k.trial[i] > 0:
		k.place[i] = 1
	default:
		k.place[i] = -1
	}
}
