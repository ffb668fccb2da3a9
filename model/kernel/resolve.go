package kernel

import (
	"math"
	"math/bits"
)

// resolve settles the modes of all elements at rest, given the state, the inputs
// and the capacities of this instant: which stick, which slip and which way
// (004 eq. 18). Nothing breaks as long as there is a split of the lock torques
// within the capacities. What breaks drops from its static to its kinetic torque,
// and the rest is settled again; what that carries back joins the rest.
//
//go:nosplit
func (k *Kernel) resolve() {
	rest, returned := k.stuck(), uint64(0) // each returns once at most
	clear(k.broken)
	for range k.t.Mc + 1 {
		k.limits()
		k.balance(rest)
		again := k.settle(rest)
		k.limits()
		k.load()
		for i := k.wrongWay(returned); i >= 0; i = k.wrongWay(returned) {
			k.set(i, Stuck)
			returned |= 1 << i
			k.broken[i], k.fresh[i], again = false, false, true
		}
		if !again {
			return
		}
		rest = k.stuck()
	}
}

// stuck is the set of all stuck elements: kappa, and the idle ones that add
// nothing to it.
//
//go:nosplit
func (k *Kernel) stuck() uint64 {
	set := uint64(0)
	for i, mode := range k.mode {
		if mode == Stuck {
			set |= 1 << i
		}
	}
	return set
}

// idle reports whether element i is stuck outside kappa: the locks in kappa hold
// it still, and it gives idleTorque.
//
//go:nosplit
func (k *Kernel) idle(i int) bool { return k.mode[i] == Stuck && k.kappa>>i&1 == 0 }

// idleTorque is what element i gives while it idles: the part split[i] of its
// capacity. A freewheel is not bound below: a negative split[i] is N·m.
//
//go:nosplit
func (k *Kernel) idleTorque(i int) float64 {
	if k.split[i] < 0 && k.t.Friction[i].OneWay {
		return k.split[i]
	}
	return k.split[i] * k.capNow[i]
}

// limits sets what each element can carry at this instant: limit while stuck,
// drag where it slips, give where it slips or idles.
//
//go:nosplit
func (k *Kernel) limits() {
	for i := range k.limit {
		f := &k.t.Friction[i]
		k.limit[i], k.drag[i] = max(f.Peak*k.capNow[i], f.Floor), k.capNow[i]
		k.give[i] = k.direction(i) * k.drag[i]
		if k.idle(i) {
			k.give[i] = k.idleTorque(i)
		}
	}
}

// least is the smallest torque of stuck element i: minus its limit, but nothing
// holds a freewheel back.
//
//go:nosplit
func (k *Kernel) least(i int) float64 {
	if k.t.Friction[i].OneWay {
		return math.Inf(-1)
	}
	return -k.limit[i]
}

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
func (k *Kernel) balance(rest uint64) {
	for r := rest; r != 0; r &= r - 1 {
		i := bits.TrailingZeros64(r)
		k.give[i], k.place[i] = 0, 0
	}
	copy(k.w[k.t.M:], k.give)
	m := k.open()
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w)
	k.slips.mul(k.rate, k.xd)
	fewest, patience := k.t.Mc+1, 3
	for range balanceTries * k.t.Mc {
		k.inside(rest)
		violated := k.violated(rest)
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
			k.exchange(bits.TrailingZeros64(violated))
		}
	}
	k.inside(rest)
}

// inside sets trial: the bound of what stands there, and for the others the
// torques that take their slip acceleration away.
//
//go:nosplit
func (k *Kernel) inside(rest uint64) {
	mc, f := k.t.Mc, &k.factor
	f.rank = 0
	for r := rest; r != 0; r &= r - 1 {
		i := bits.TrailingZeros64(r)
		switch k.place[i] {
		case 1:
			k.trial[i] = k.limit[i]
		case -1:
			k.trial[i] = k.least(i)
		default:
			f.taken[f.rank] = i
			f.rank++
			k.trial[i] = 0
		}
	}
	for q, i := range f.taken[:f.rank] { // Cholesky of -G + softness, and the right side
		for p, j := range f.taken[:q+1] {
			s := -k.t.Gram[i*mc+j]
			if p == q {
				s *= 1 + softness
			}
			for c := range p {
				s -= f.l[q*mc+c] * f.l[p*mc+c]
			}
			if p < q {
				f.l[q*mc+p] = s / f.l[p*mc+p]
			} else {
				f.l[q*mc+q] = math.Sqrt(max(s, -k.t.Gram[i*mc+i]*softness/2))
			}
		}
		s := k.rate[i]
		for r := rest; r != 0; r &= r - 1 {
			j := bits.TrailingZeros64(r)
			if k.place[j] != 0 {
				s += k.t.Gram[i*mc+j] * k.trial[j]
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
			s -= f.l[p*mc+q] * k.trial[f.taken[p]]
		}
		k.trial[f.taken[q]] = s / f.l[q*mc+q]
	}
}

// violated is the set of elements that do not stand where trial wants them.
//
//go:nosplit
func (k *Kernel) violated(rest uint64) uint64 {
	set := uint64(0)
	for r := rest; r != 0; r &= r - 1 {
		i := bits.TrailingZeros64(r)
		bad := false
		if k.place[i] == 0 {
			slack := overload/4*k.limit[i] + k.noise
			bad = k.trial[i] > k.limit[i]+slack || k.trial[i] < k.least(i)-slack
		} else {
			a, size := k.moves(rest, i)
			bad = float64(k.place[i])*a < -1e-11*size
		}
		if bad {
			set |= 1 << i
		}
	}
	return set
}

// moves is the slip acceleration of element i under trial, and the size of the
// terms it is made of, rad/s².
//
//go:nosplit
func (k *Kernel) moves(rest uint64, i int) (a, size float64) {
	mc := k.t.Mc
	a = k.rate[i] + softness*k.t.Gram[i*mc+i]*k.trial[i]
	size = math.Abs(k.rate[i])
	for r := rest; r != 0; r &= r - 1 {
		j := bits.TrailingZeros64(r)
		g := k.t.Gram[i*mc+j] * k.trial[j]
		a += g
		size += math.Abs(g)
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

// settle sets the modes of the elements at rest as balance found them: of those
// inside, independent ones with the largest reserve are kappa and the others
// idle; of those at a bound, what the locks hold still idles and the others slip.
// It reports whether one of these drops to a smaller torque by it.
//
//go:nosplit
func (k *Kernel) settle(rest uint64) bool {
	k.kappa, k.rank = 0, 0
	for r := rest; r != 0; r &= r - 1 {
		k.mode[bits.TrailingZeros64(r)] = Stuck
	}
	for left := rest; left != 0; {
		best, most := -1, math.Inf(-1)
		for r := left; r != 0; r &= r - 1 {
			i := bits.TrailingZeros64(r)
			if reserve := min(k.limit[i]-k.trial[i], k.trial[i]-k.least(i)); k.place[i] == 0 && reserve > most {
				best, most = i, reserve
			}
		}
		if best < 0 {
			break
		}
		left &^= 1 << best
		if k.take(k.t.Gram, k.t.Mc, best) {
			k.kappa |= 1 << best
		}
	}
	drops := false
	for r := rest; r != 0; r &= r - 1 {
		i := bits.TrailingZeros64(r)
		if k.kappa>>i&1 == 1 {
			continue
		}
		if k.place[i] != 0 && k.movable(i) {
			k.mode[i] = k.place[i]
			k.broken[i], k.fresh[i] = true, true
			drops = drops || k.drag[i] < k.limit[i]
			continue
		}
		k.idleAt(i, k.trial[i])
	}
	return drops
}

// idleAt lets element i idle with torque tau.
//
//go:nosplit
func (k *Kernel) idleAt(i int, tau float64) {
	switch {
	case tau < 0 && k.t.Friction[i].OneWay:
		k.split[i] = tau
	case k.capNow[i] > 0:
		k.split[i] = tau / k.capNow[i]
	default:
		k.split[i] = 0
	}
}

// load sets the torque of the elements outside kappa in w and tau of all.
//
//go:nosplit
func (k *Kernel) load() {
	copy(k.w[k.t.M:], k.give)
	k.torques(k.x)
}

// direction is the sign of the torque of a slipping element, 0 for the others.
//
//go:nosplit
func (k *Kernel) direction(i int) float64 {
	if k.mode[i] == Forward || k.mode[i] == Backward {
		return float64(k.mode[i])
	}
	return 0
}

// slide sets the part of w that belongs to element i over the piece.
//
//go:nosplit
func (k *Kernel) slide(i int) {
	d, at := k.direction(i), k.t.M+i
	if k.idle(i) {
		d = k.split[i]
		if d < 0 && k.t.Friction[i].OneWay {
			k.w0[at], k.w1[at], k.w2[at] = d, 0, 0
			return
		}
	}
	k.w0[at], k.w1[at], k.w2[at] = d*k.capC[3*i], d*k.capC[3*i+1], d*k.capC[3*i+2]
}

// overloaded reports whether the torque of a lock exceeds its limit.
//
//go:nosplit
func (k *Kernel) overloaded() bool {
	for i, tau := range k.tau {
		excess := max(tau-k.limit[i], k.least(i)-tau)
		if k.mode[i] == Stuck && excess > overload*k.limit[i]+4*k.noise {
			return true
		}
	}
	return false
}

// wrongWay is the first element that broke away in this instant although the
// others carry its slip the other way, now that what broke has dropped to its
// kinetic torque, and that has not returned before; -1 for none. What counts is the
// acceleration of this instant, as in balance, in either form.
//
//go:nosplit
func (k *Kernel) wrongWay(returned uint64) int {
	m := k.use()
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w)
	for i, b := range k.broken {
		if !b || returned>>i&1 == 1 {
			continue
		}
		a := k.direction(i) * dotRow(k.t.W, i, k.xd)
		if a < -(1e-9*k.limit[i]+10*k.noise)*math.Abs(k.t.Gram[i*k.t.Mc+i]) {
			return i
		}
	}
	return -1
}

// land puts the state on the constraint of the lock set: the slip left by
// rounding is taken out, momentum kept. Gaps that have parted are open from here on.
//
//go:nosplit
func (k *Kernel) land() {
	k.part()
	if k.kappa == 0 {
		return
	}
	mul(k.x1, k.use().P, k.x)
	copy(k.x, k.x1)
}
