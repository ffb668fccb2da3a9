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
	k.hold(local, theta)
	if len(k.pulse) > 0 {
		k.calls.pulses(k, local, theta, true)
	}
	copy(k.x, k.x1)
	local += theta * k.length
	k.instant(theta)
	k.torqued(k.x, theta)
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
		case !k.shutIn[i]:
		case k.opening(i, k.x) > 0:
			k.set(i, Free)
		default:
			passed = true
		}
	}
	k.relocate(local)
	if passed {
		k.land()
		k.calls.resolve(k)
		k.land()
	}
	if k.count(local) {
		k.events++
	}
}

// holdTries is how often hold looks for gaps; the last time it takes all of them.
const holdTries = 8

// hold sets x1 to the end of the stride and holds the gaps that would close in it: what
// is on both sides goes on together from the start, as after a plastic impact. They are in
// shutIn.
//
//go:nosplit
func (k *Kernel) hold(local, theta float64) {
	clear(k.shutIn)
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
				k.shutIn[i] = true
				more = true
			}
		}
		if !more {
			break
		}
		k.settleState()
		k.calls.expand(k, k.x)
		k.horner(k.x1, theta)
		k.slips.mul(k.slip, k.x)
	}
}

// turn brakes the slips that passed zero in the stride: there friction turned, up to
// twice the capacity for the time behind it. It reports whether one did.
//
//go:nosplit
func (k *Kernel) turn(theta float64) bool {
	any := false
	for i := range k.mode {
		s, d, gram := k.slips.dot(i, k.x), k.direction(i), k.mobility(i)
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
		k.pushes.axpy(k.x, -(d * most), i)
	}
	return any
}

// repay gives the plant what a spring would have, had it turned from the slope of one
// region to that of the next where it passed the border: its work is an integral over the
// deflection, and the impulse for it acts where the spring does.
//
//go:nosplit
func (k *Kernel) repay(s int) {
	sw, z := &k.t.Switches[s], k.level(s, k.x)
	from, to := k.region[s], sw.regionOf(z)
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
		k.driveOf(j)
		direct := k.levels.dot(s, k.x1)
		k.flowOf(k.x1)
		yields := -k.levels.dot(s, k.xd)
		if direct != 0 || !(yields > 0) { // a damper, or what moves nothing
			continue
		}
		k.flowOf(k.x)
		rate := k.levels.dot(s, k.xd)
		p := (rate - math.Copysign(math.Sqrt(max(0, rate*rate-2*yields*owed)), rate)) / yields
		axpy(k.x, p, k.x1)
	}
}

// driveOf sets x1 to what signal j drives under the present locks.
//
//go:nosplit
func (k *Kernel) driveOf(j int) {
	if k.t.Net != nil {
		clear(k.dw1)
		k.dw1[j] = 1
		k.calls.derive(k, k.x1, nil, k.dw1, k.dtau)
		return
	}
	m, mw := k.use(), k.t.M+k.t.Mc
	for i := range k.x1 {
		k.x1[i] = m.B[i*mw+j]
	}
}

// flowOf sets xd to A·x under the present locks.
//
//go:nosplit
func (k *Kernel) flowOf(x []float64) {
	if k.t.Net != nil {
		k.calls.derive(k, k.xd, x, nil, k.dtau)
		return
	}
	mul(k.xd, k.use().A, x)
}
