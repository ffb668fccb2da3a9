package kernel

import "math"

// overload is the relative excess over a capacity that counts as too much: above
// the rounding of a lock torque.
const overload = 1e-9

// torqueNoise is the part of the largest friction torque that is rounding in the
// others: a freewheel without load carries that much.
const torqueNoise = 1e-13

// cornerGap is the time below which two instants are one near time 0, s.
const cornerGap = 1e-12

// pieces is the largest number of pieces a tick can take: what the period and the
// longest lag need, and one more for each place where a piece can be cut.
//
//go:nosplit
func (t *Tables) pieces() int {
	return t.periods()*(t.Split+1) + t.Corners + 2*t.events()
}

// periods is how many periods a tick can span, at most.
//
//go:nosplit
func (t *Tables) periods() int { return 2 + int(t.LagBound/(float64(t.PeriodNs)*1e-9)) }

// events is how many events a tick looks for. The rest of the period is then
// taken without, so that it always reaches its end.
//
//go:nosplit
func (t *Tables) events() int { return t.EventBudget + extraEvents }

// advance takes the plant towards the grid time of this tick: over the period
// and what the lag still owes. What it does not reach stays in the lag.
//
//go:nosplit
func (k *Kernel) advance() {
	if k.t.Partition != nil {
		k.joint.macro(k)
		return
	}
	k.eta = 1
	reached := k.travel(-k.lag, k.h, k.t.Scheme)
	if k.lag = k.h - reached; k.lag <= k.gap {
		k.lag = 0
	}
}

// travel takes the plant from one time towards another, both local: counted from
// the grid time at the start of the tick. It returns how far it came.
//
//go:nosplit
func (k *Kernel) travel(from, to float64, scheme Scheme) float64 {
	local, found, looks := from, 0, k.t.events()
	for range k.t.pieces() {
		left := to - local
		if left <= k.gap {
			break
		}
		length := min(left, max(k.corner(local)-local, k.gap))
		if length > k.t.Delta-k.gap {
			length = k.t.Delta
		}
		k.joint.sources(k, k.x, local, length)
		k.joint.begin(k, local)
		theta, cause := k.joint.walk(k, local, looks > 0)
		if k.failed() {
			return local
		}
		local += theta * k.length
		if cause == none {
			if k.length < length { // it was shortened for an event that is not in it
				looks--
			}
			continue
		}
		looks--
		if k.event(local, theta, cause) && to-local > k.gap {
			if found++; found == 1 {
				k.eta = (local - from) / (to - from)
			}
			if k.stop(scheme, found, local-from, to-local) {
				break
			}
		}
	}
	return local
}

// stop reports whether a tick ends at its found-th event, with so much of its
// time done and left.
//
//go:nosplit
func (k *Kernel) stop(scheme Scheme, found int, done, left float64) bool {
	if left > k.t.LagBound {
		return false
	}
	if scheme == Papers {
		return done > k.gap
	}
	return found >= k.t.EventBudget
}

// begin brings the modes in line with the capacities at the start of a piece:
// elements without capacity are free, others become active, and a lock that is
// overloaded (a command fell) breaks.
//
//go:nosplit
func (k *Kernel) begin(local float64) {
	k.slips.mul(k.slip, k.x)
	copy(k.before, k.mode)
	again := false
	for i, s := range k.slip {
		active := k.active(i)
		switch {
		case !active && k.mode[i] != Free:
			again = again || k.mode[i] == Stuck
			k.set(i, Free)
		case active && k.mode[i] == Free:
			k.set(i, k.rest(i, s))
			again = again || k.mode[i] == Stuck
		}
		if math.Abs(s) > 10*slipZero {
			k.fresh[i] = false
		}
	}
	for _, i := range k.t.Gapped {
		if k.mode[i] == Stuck {
			k.shut(i)
		}
	}
	k.instant(0)
	k.limits()
	k.load()
	if again || k.overloaded() {
		k.joint.resolve(k)
		k.land()
	}
	if k.count(local) {
		k.events++
		if k.t.ReadsTau { // laws began with the torques of the modes before
			k.begun(k.x)
		}
	}
	k.noise = 0
	for i, tau := range k.tau {
		k.tau0[i] = tau
		k.noise = max(k.noise, torqueNoise*math.Abs(tau), torqueNoise*k.limit[i])
	}
	for i := range k.mode {
		k.slide(i)
	}
}

// set moves element i to mode to and keeps kappa in step.
//
//go:nosplit
func (k *Kernel) set(i int, to int8) {
	k.mode[i] = to
	if to == Stuck {
		k.kappa |= 1 << i
	} else {
		k.kappa &^= 1 << i
	}
}

// count records the transitions since before was taken and reports whether there
// were any.
//
//go:nosplit
func (k *Kernel) count(local float64) bool {
	any := false
	for i, to := range k.mode {
		if from := k.before[i]; from != to {
			any = true
			k.transitions++
			k.record(Event{Time: k.grid() + local, Friction: i, From: from, To: to})
		}
	}
	return any
}

// Causes of an event: a friction element from 0 on, switch s as mc+s, guard g as
// -2-g.
const none = -1

// walk takes the state to the end of the piece, or to the first event in it if it
// is to look for one. It returns the place and the cause.
//
//go:nosplit
func (k *Kernel) walk(local float64, look bool) (theta float64, cause int) {
	k.slips.mul(k.slip, k.x)
	expanded := true
	switch {
	case k.t.FirstLaw < k.t.M:
		k.couple()
		k.horner(k.x1, 1)
	case k.length != k.t.Delta || k.t.Modes == nil:
		k.joint.expand(k, k.x)
		k.horner(k.x1, 1)
	default:
		k.whole(k.x1, k.x)
		expanded = false
	}
	theta, cause = 1, none
	if k.suspect() {
		if !expanded {
			k.joint.expand(k, k.x)
		}
		theta, cause = k.first()
		if cause != none && look && !k.piled() && k.t.FirstLaw < k.t.M {
			theta, cause = k.shorten(local, theta, cause)
		}
	}
	switch {
	case cause == none:
		copy(k.x, k.x1)
		theta = 1
	case look && !k.piled():
		k.horner(k.x, theta)
		return theta, cause
	case look:
		theta = stride
		k.horner(k.x, theta)
		k.cross(local+theta*k.length, theta)
	default:
		copy(k.x, k.x1)
		theta = 1
		k.cross(local+k.length, 1)
	}
	if k.stalled++; theta*k.length > slipZero {
		k.stalled = 0
	}
	return theta, none
}

// piled reports whether events pile up at one instant.
//
//go:nosplit
func (k *Kernel) piled() bool { return k.stalled > k.pile() }

// pile is how many events at one instant are none: from half of it on impacts are
// plastic, which ends most.
//
//go:nosplit
func (k *Kernel) pile() int { return 2 * (k.t.Mc + len(k.side) + len(k.region) + 1) }

// shorten walks the piece again up to just behind the event found at theta: the
// laws then do not see what lies behind it, where they may have a corner.
//
//go:nosplit
func (k *Kernel) shorten(local, theta float64, cause int) (float64, int) {
	length := theta * k.length * (1 + 1e-6)
	if !(length > k.gap && length < k.length) {
		return theta, cause
	}
	k.joint.sources(k, k.x, local, length)
	k.couple()
	k.horner(k.x1, 1)
	if !k.suspect() {
		return 1, none
	}
	return k.first()
}

// stride is the part of a piece that is taken without looking where events pile
// up at one instant.
const stride = 1. / 4096

// cross follows a piece that was taken without looking: a slip that passed
// through zero is put there, momentum kept, and what is then at rest is settled;
// guards that were passed are passed.
//
//go:nosplit
func (k *Kernel) cross(local, theta float64) {
	copy(k.before, k.mode)
	k.slips.mul(k.slip, k.x)
	k.instant(theta)
	k.torqued(k.x)
	for g := range k.side {
		if k.passed(g, k.x) {
			k.side[g] = -k.side[g]
		}
	}
	k.relocate(local)
	passed := k.overlap()
	for i, s := range k.slip {
		if k.direction(i)*s < 0 {
			k.set(i, Stuck)
			passed = true
		}
	}
	if !passed {
		return
	}
	k.land()
	k.joint.resolve(k)
	k.land()
	if k.count(local) {
		k.events++
	}
}

// event lets what caused it and the elements at rest with it make their one
// transition. It reports whether a friction element or a switch made one.
//
//go:nosplit
func (k *Kernel) event(local, theta float64, cause int) bool {
	if theta*k.length > slipZero {
		k.stalled = 0
	}
	k.stalled++
	if cause < none {
		k.side[-2-cause] = -k.side[-2-cause]
		k.events++
		return false
	}
	if cause >= k.t.Mc {
		k.pass(cause-k.t.Mc, local)
		return true
	}
	k.instant(theta)
	if k.t.Friction[cause].Gap != nil && k.mode[cause] == Free {
		return k.joint.strike(k, cause, local)
	}
	copy(k.before, k.mode)
	k.slips.mul(k.slip, k.x)
	k.rates(k.w)
	for i, s := range k.slip {
		d := k.direction(i)
		leaves := k.fresh[i] && d*dotRow(k.t.W, i, k.xd) >= 0
		if d != 0 && (i == cause || math.Abs(s) <= 2*slipZero && !leaves) {
			k.set(i, Stuck)
		}
	}
	k.joint.resolve(k)
	k.land()
	changed := k.count(local)
	if changed {
		k.events++
	}
	return changed
}
