package kernel

import (
	"math"
	"math/bits"
)

// resolve settles the modes of all elements at rest, given the state, the inputs
// and the capacities of this instant: starting from all of them locked, what is
// overloaded breaks away until what is locked holds (004 eq. 18, steps 3 to 5).
// Where there are more locks than directions, nothing breaks as long as there is
// a split of the torque within the capacities. force names an element that the
// caller saw reach its capacity, or none.
func (k *Kernel) resolve(force int) {
	clear(k.broken)
	for range k.t.Mc {
		rest := k.stuck()
		if !k.redundant(rest) {
			k.pivot(rest, 0, force)
			return
		}
		settled := k.share(rest, force)
		// What moves drops to its kinetic torque; what that carries back joins
		// the rest, which is looked at again.
		force = none
		k.limits(0, 0)
		k.load()
		for i := k.wrongWay(all); i >= 0; i = k.wrongWay(all) {
			settled = false
			k.restick(i)
			k.load()
		}
		if settled {
			return
		}
	}
}

// all is every element.
const all = ^uint64(0)

// shareLevels are the reserves tried for a split: level j leaves 2^-(j+1) of the
// static capacities, the last one nothing.
const shareLevels = 20

// share looks for the split of the torque of redundant locks that holds them all
// with the largest reserve. Where there is none it reports false and leaves what
// cannot be held slipping.
func (k *Kernel) share(rest uint64, force int) bool {
	at := func(level int) bool {
		part := 1.0
		if level < shareLevels-1 {
			part -= math.Ldexp(1, -level-1)
		}
		k.pivot(rest, part, force)
		return k.rejoin(rest)
	}
	if at(0) {
		return true
	}
	if !at(shareLevels - 1) {
		return false
	}
	lo, hi := 1, shareLevels-1
	for lo < hi {
		if mid := (lo + hi) / 2; at(mid) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return at(hi)
}

// stuck is the set of all stuck elements: kappa, and the idle ones that add
// nothing to it.
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
func (k *Kernel) idle(i int) bool { return k.mode[i] == Stuck && k.kappa>>i&1 == 0 }

// idleTorque is what element i gives while it idles: the part split[i] of its
// capacity; of a freewheel, which has no lower bound, split[i] itself, N·m.
func (k *Kernel) idleTorque(i int) float64 {
	if k.t.Friction[i].OneWay {
		return k.split[i]
	}
	return k.split[i] * k.capNow[i]
}

// pivotTries bounds the search of pivot, per friction element.
const pivotTries = 8

// pivot looks for the modes of the elements in rest: each either sticks, with a
// torque within its limit, or slips in the direction it broke. For part 0 the
// limit is the static capacity and what slips drops to the kinetic one. For
// part > 0 both are that part of the static capacity, a linear complementarity
// problem; of redundant locks an independent set starts as stuck, the others
// idle. The most overloaded breaks first and what is carried
// the wrong way sticks again; where that goes in circles the lowest index is
// changed first, which comes to an end (Murty, Linear Algebra Appl. 7, 1974).
func (k *Kernel) pivot(rest uint64, part float64, force int) {
	mc := k.t.Mc
	k.limits(rest, part)
	for i := range mc {
		if rest>>i&1 == 1 {
			k.restick(i)
		}
	}
	if part > 0 {
		k.load()
		k.independent(rest)
	}
	among := rest
	if part == 0 {
		among = all
	}
	for try := range pivotTries * mc {
		least := try >= 2*mc
		k.load()
		i, j := k.overloaded(force, least, overload/4), k.wrongWay(among)
		force = none
		switch {
		case i < 0 && j < 0:
			return
		case i < 0 || least && j >= 0 && j < i:
			k.restick(j)
		default:
			k.breakAway(i)
		}
	}
	k.load()
}

// limits sets what each element can carry at this instant: limit while stuck,
// drag where it breaks, give where it slips or idles; see pivot for rest and part.
func (k *Kernel) limits(rest uint64, part float64) {
	for i := range k.limit {
		f := &k.t.Friction[i]
		k.limit[i], k.drag[i] = max(f.Peak*k.capNow[i], f.Floor), k.capNow[i]
		if part > 0 && rest>>i&1 == 1 {
			k.limit[i] *= part
			k.drag[i] = k.limit[i]
		}
		k.give[i] = k.direction(i) * k.drag[i]
		if k.idle(i) {
			k.give[i] = k.idleTorque(i)
		}
	}
}

// independent leaves a largest set of independent elements of rest stuck, the
// strongest first; the others give what they have in the split of smallest norm,
// within their limits.
func (k *Kernel) independent(rest uint64) {
	k.redundant(0)
	for rest != 0 {
		i := bits.TrailingZeros64(rest)
		for j := range k.limit {
			if rest>>j&1 == 1 && k.limit[j] > k.limit[i] {
				i = j
			}
		}
		rest &^= 1 << i
		if k.take(k.t.Gram, k.t.Mc, i) {
			continue
		}
		tau := k.tau[i]
		k.breakAway(i)
		k.give[i] = min(max(tau, k.least(i)), k.limit[i])
	}
}

// least is the smallest torque of stuck element i: minus its limit, but nothing
// holds a freewheel back.
func (k *Kernel) least(i int) float64 {
	if k.t.Friction[i].OneWay {
		return math.Inf(-1)
	}
	return -k.limit[i]
}

// load sets the torque of the elements outside kappa in w and tau of all.
func (k *Kernel) load() {
	copy(k.w[k.t.M:], k.give)
	k.torques(k.x)
}

// direction is the sign of the torque of a slipping element, 0 for the others.
func (k *Kernel) direction(i int) float64 {
	if k.mode[i] == Forward || k.mode[i] == Backward {
		return float64(k.mode[i])
	}
	return 0
}

// slide sets the part of w that belongs to element i over the piece.
func (k *Kernel) slide(i int) {
	d, at := k.direction(i), k.t.M+i
	if k.idle(i) {
		d = k.split[i]
		if k.t.Friction[i].OneWay {
			k.w0[at], k.w1[at], k.w2[at] = d, 0, 0
			return
		}
	}
	k.w0[at], k.w1[at], k.w2[at] = d*k.capC[3*i], d*k.capC[3*i+1], d*k.capC[3*i+2]
}

// overloaded is the stuck element whose torque exceeds its limit by the largest
// ratio, or the first that does, by more than excess; -1 for none. Inside an
// event the excess is smaller than the one that makes an event.
func (k *Kernel) overloaded(force int, least bool, excess float64) int {
	worst, ratio := -1, 1+excess
	for i, tau := range k.tau {
		if k.mode[i] != Stuck {
			continue
		}
		r := math.Abs(tau) / k.limit[i]
		if tau == 0 || tau < k.limit[i] && k.t.Friction[i].OneWay {
			r = 0
		}
		if i == force && r >= 1-overload {
			r = max(r, 1+2*overload)
		}
		if r > ratio {
			worst, ratio = i, r
			if least {
				break
			}
		}
	}
	return worst
}

// breakAway lets stuck element i slip in the direction of its torque.
func (k *Kernel) breakAway(i int) {
	to := Forward
	if k.tau[i] < 0 {
		to = Backward
	}
	k.set(i, to)
	k.broken[i], k.fresh[i] = true, true
	k.give[i] = float64(to) * k.drag[i]
}

// restick takes back that element i broke.
func (k *Kernel) restick(i int) {
	k.set(i, Stuck)
	k.broken[i], k.fresh[i] = false, false
	k.give[i] = 0
}

// wrongWay is the first element among a set that broke away in this instant and
// can move, although the others carry its slip the other way or it gives less
// than its limit; -1 for none.
func (k *Kernel) wrongWay(among uint64) int {
	k.rates(k.w)
	for i, b := range k.broken {
		if !b || among>>i&1 == 0 || !k.movable(i) {
			continue
		}
		if k.give[i] < k.drag[i] && (k.give[i] > -k.drag[i] || k.t.Friction[i].OneWay) {
			return i
		}
		a := k.direction(i) * dotRow(k.t.W, i, k.xd)
		if a < -1e-9*k.limit[i]*math.Abs(k.t.Gram[i*k.t.Mc+i]) {
			return i
		}
	}
	return -1
}

// rejoin makes what broke of rest but cannot move, as long as kappa holds, stuck
// again and idle, with the torque it gives. It reports whether all of rest holds.
func (k *Kernel) rejoin(rest uint64) bool {
	held := true
	for i, b := range k.broken {
		if !b || rest>>i&1 == 0 {
			continue
		}
		if k.movable(i) {
			held = false
			continue
		}
		k.mode[i], k.split[i] = Stuck, 0
		switch {
		case k.t.Friction[i].OneWay:
			k.split[i] = k.give[i]
		case k.capNow[i] > 0:
			k.split[i] = k.give[i] / k.capNow[i]
		}
		k.broken[i], k.fresh[i] = false, false
	}
	k.torques(k.x)
	return held
}

// land puts the state on the constraint of the lock set: the slip left by
// rounding is taken out, momentum kept.
func (k *Kernel) land() {
	if k.kappa == 0 {
		return
	}
	mul(k.x1, k.use().P, k.x)
	copy(k.x, k.x1)
}
