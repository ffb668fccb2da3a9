package kernel

import "math"

// leap takes part theta of the expanded piece, a stride, as one, whatever happens in it:
// a gap that would close is held as it is, a slip that passes zero is braked for it, a
// spring that passes a border gives or takes what it did wrong, guards that were passed are
// passed. Nothing overlaps, momentum is kept; of the energy see doc.go.
//
//go:nosplit
func (k *Kernel) leap(local, theta float64) {
	copy(k.before, k.mode)
	held := k.hold(local, theta)
	if len(k.pulse) > 0 {
		k.joint.pulses(k, local, theta, true)
	}
	copy(k.x, k.x1)
	local += theta * k.length
	k.instant(theta)
	k.torqued(k.x)
	for g := range k.side {
		if k.passed(g, k.x) {
			k.side[g] = -k.side[g]
		}
	}
	for s := range k.region {
		k.repay(s)
	}
	passed := k.turn(theta)
	for _, i := range k.t.Gapped {
		switch {
		case held>>i&1 == 0:
		case k.opening(i, k.x) > 0:
			k.set(i, Free)
		default:
			passed = true
		}
	}
	k.relocate(local)
	if passed {
		k.land()
		k.joint.resolve(k)
		k.land()
	}
	if k.count(local) {
		k.events++
	}
}

// holdTries is how often hold looks for gaps; the last time it takes all of them.
const holdTries = 8

// hold sets x1 to the end of the stride and holds the gaps that would close in it: what
// is on both sides goes on together from the start, as after a plastic impact. It returns
// these gaps.
//
//go:nosplit
func (k *Kernel) hold(local, theta float64) uint64 {
	held := uint64(0)
	k.horner(k.x1, theta)
	for try := range holdTries {
		more := false
		for _, i := range k.t.Gapped {
			if k.mode[i] == Free && (k.opening(i, k.x1) < 0 || more && try == holdTries-1) {
				if k.slip[i] < -slipZero {
					k.record(Event{Time: k.grid() + local, Friction: i, From: Free, To: Struck})
					k.events++
				}
				k.set(i, Stuck)
				held |= 1 << i
				more = true
			}
		}
		if !more {
			break
		}
		mul(k.x1, k.use().P, k.x)
		copy(k.x, k.x1)
		k.joint.expand(k, k.x)
		k.horner(k.x1, theta)
		k.slips.mul(k.slip, k.x)
	}
	return held
}

// turn brakes the slips that passed zero in the stride: there friction turned, up to
// twice the capacity for the time behind it. It reports whether one did.
//
//go:nosplit
func (k *Kernel) turn(theta float64) bool {
	any := false
	for i := range k.mode {
		s, d, gram := dotRow(k.t.W, i, k.x), k.direction(i), k.t.Gram[i*k.t.Mc+i]
		if !(d*s < 0) {
			continue
		}
		any = true
		behind := theta * k.length * min(1, s/(s-k.slip[i]))
		most := 2 * k.capNow[i] * behind
		if k.t.Friction[i].OneWay || math.Abs(s) <= -gram*most {
			k.set(i, Stuck)
			continue
		}
		k.set(i, -k.mode[i])
		for r := range k.x {
			k.x[r] -= d * most * k.t.Bc[r*k.t.Mc+i]
		}
	}
	return any
}

// repay gives the plant what a spring would have, had it turned from the slope of one
// region to that of the next where it passed the border: its work is an integral over the
// deflection, and the impulse for it acts where the spring does.
//
//go:nosplit
func (k *Kernel) repay(s int) {
	sw, m, n, mw := &k.t.Switches[s], k.use(), k.t.N, k.t.M+k.t.Mc
	from, to, z := k.region[s], sw.regionAt(k.x), sw.level(k.x)
	if from == to {
		return
	}
	for _, j := range sw.Signals {
		slope, owed := k.t.Signals[j].Affine.Slope, 0.0
		for r := from; r < to; r++ {
			owed += (slope[r+1] - slope[r]) * (z - sw.Borders[r]) * (z - sw.Borders[r]) / 2
		}
		for r := from; r > to; r-- {
			owed += (slope[r-1] - slope[r]) * (z - sw.Borders[r-1]) * (z - sw.Borders[r-1]) / 2
		}
		direct := 0.0
		for i := range n {
			k.x1[i] = m.B[i*mw+j]
			direct += sw.Row[i] * k.x1[i]
		}
		mul(k.xd, m.A, k.x1)
		yields := -dotRow(sw.Row, 0, k.xd)
		if direct != 0 || !(yields > 0) { // a damper, or what moves nothing
			continue
		}
		mul(k.xd, m.A, k.x)
		rate := dotRow(sw.Row, 0, k.xd)
		p := (rate - math.Copysign(math.Sqrt(max(0, rate*rate-2*yields*owed)), rate)) / yields
		axpy(k.x, p, k.x1)
	}
}
