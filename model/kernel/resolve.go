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
	clear(k.broken)
	if k.t.Net != nil {
		k.unforced(k.x)
	}
	for b := range k.blocks {
		k.calls.settleBlock(k, b)
	}
}

// settleBlock does so for the elements of block b; what the others do makes no
// difference to them.
//
//go:nosplit
func (k *Kernel) settleBlock(b int) {
	g := &k.blocks[b]
	rest, returned := k.stuck(g), uint64(0) // each returns once at most
	for range len(g.Of) + 1 {
		k.limits(g.Of)
		k.balance(b, rest)
		again := k.settle(b, rest)
		k.limits(g.Of)
		k.load(b)
		for bit := k.wrongWay(g, returned); bit >= 0; bit = k.wrongWay(g, returned) {
			i := g.Of[bit]
			k.set(i, Stuck)
			returned |= 1 << bit
			k.broken[i], k.fresh[i], again = false, false, true
		}
		if !again {
			return
		}
		rest = k.stuck(g)
	}
}

// stuck is the set of all stuck elements of a block: kappa, and the idle ones that
// add nothing to it.
//
//go:nosplit
func (k *Kernel) stuck(g *Block) uint64 {
	set := uint64(0)
	for bit, i := range g.Of {
		if k.mode[i] == Stuck {
			set |= 1 << bit
		}
	}
	return set
}

// idle reports whether element i is stuck outside kappa: the locks in kappa hold
// it still, and it gives idleTorque.
//
//go:nosplit
func (k *Kernel) idle(i int) bool { return k.mode[i] == Stuck && !k.carries(i) }

// carries reports whether element i is in kappa.
//
//go:nosplit
func (k *Kernel) carries(i int) bool {
	at := k.home[i]
	return k.kappa[at.block]>>at.bit&1 == 1
}

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

// limits sets what each of some elements can carry at this instant: limit while
// stuck, drag where it slips, give where it slips or idles.
//
//go:nosplit
func (k *Kernel) limits(of []int) {
	for _, i := range of {
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

// settle sets the modes of the elements at rest as balance found them: of those
// inside, independent ones with the largest reserve are kappa and the others
// idle; of those at a bound, what the locks hold still idles and the others slip.
// It reports whether one of these drops to a smaller torque by it.
//
//go:nosplit
func (k *Kernel) settle(b int, rest uint64) bool {
	g := &k.blocks[b]
	k.kappa[b], k.rank = 0, 0
	for r := rest; r != 0; r &= r - 1 {
		k.mode[g.Of[bits.TrailingZeros64(r)]] = Stuck
	}
	for left := rest; left != 0; {
		best, most := -1, math.Inf(-1)
		for r := left; r != 0; r &= r - 1 {
			l := bits.TrailingZeros64(r)
			i := g.Of[l]
			if reserve := min(k.limit[i]-k.trial[i], k.trial[i]-k.least(i)); k.place[i] == 0 && reserve > most {
				best, most = l, reserve
			}
		}
		if best < 0 {
			break
		}
		left &^= 1 << best
		if k.take(g.Gram, len(g.Of), best) {
			k.kappa[b] |= 1 << best
		}
	}
	drops := false
	for r := rest; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i := g.Of[l]
		if k.kappa[b]>>l&1 == 1 {
			continue
		}
		if k.place[i] != 0 && k.movable(b, l) {
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

// load sets the torque of the elements of block b outside kappa in w and tau of all.
//
//go:nosplit
func (k *Kernel) load(b int) {
	if k.t.Net != nil {
		for _, i := range k.blocks[b].Of {
			k.w[k.t.M+i] = k.give[i]
		}
		k.torquesOf(b)
		return
	}
	copy(k.w[k.t.M:], k.give)
	k.calls.torques(k, k.x)
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
func (k *Kernel) wrongWay(g *Block, returned uint64) int {
	if k.t.Net == nil {
		m := k.use()
		mul(k.xd, m.A, k.x)
		mulAdd(k.xd, m.B, k.w)
	}
	for l, i := range g.Of {
		if !k.broken[i] || returned>>l&1 == 1 {
			continue
		}
		a := 0.0
		if k.t.Net == nil {
			a = k.slips.dot(i, k.xd)
		} else {
			a = k.free[i] + g.gathered(l, k.tau)
		}
		if k.direction(i)*a < -(1e-9*k.limit[i]+10*k.noise)*math.Abs(k.mobility(i)) {
			return l
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
	k.settleState()
}

// settleState puts the state on the constraint of the lock set.
//
//go:nosplit
func (k *Kernel) settleState() {
	if k.t.Net != nil {
		k.constrain(k.x)
		return
	}
	if k.kappa[0] == 0 {
		return
	}
	mul(k.x1, k.use().P, k.x)
	copy(k.x, k.x1)
}
