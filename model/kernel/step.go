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
	return t.periods()*(t.Split+1+2*t.Looks+t.strides()) + t.Corners
}

// periods is how many periods a tick can span, at most.
//
//go:nosplit
func (t *Tables) periods() int { return 2 + int(t.LagBound/(float64(t.PeriodNs)*1e-9)) }

// strides is how many of them a period has; in a long plant each is a piece, since
// every one moves all of it.
//
//go:nosplit
func (t *Tables) strides() int {
	if t.Net != nil {
		return t.Split
	}
	return max(leastStrides, 4*t.Split)
}

// leastStrides is how many there are in a period of one piece.
const leastStrides = 64

// advance takes the plant towards the grid time of this tick: over the period
// and what the lag still owes. What it does not reach stays in the lag; a tick
// after which that could be more than the bound goes all the way.
//
//go:nosplit
func (k *Kernel) advance() {
	if k.t.Partition != nil {
		k.calls.macro(k)
		return
	}
	k.eta = 1
	stops := k.h+k.lag <= k.t.LagBound+k.gap && (k.t.Net == nil || k.t.Scheme == Papers)
	reached := k.travel(-k.lag, k.h, stops)
	if k.lag = k.h - reached; k.lag <= k.gap {
		k.lag = 0
	}
}

// travel takes the plant from one time towards another, both local: counted from
// the grid time at the start of the tick. Where it may stop it does at the event at
// which its scheme ends. It returns how far it came.
//
//go:nosplit
func (k *Kernel) travel(from, to float64, stops bool) float64 {
	local, found, looks := from, 0, k.t.Looks*-int(ticks((from-to+k.gap)/k.h))
	clear(k.struck)
	for range k.t.pieces() {
		left := to - local
		if left <= k.gap || stops && looks <= 0 && local-from > k.gap {
			break
		}
		length := min(left, max(k.corner(local)-local, k.gap))
		if length > k.t.Delta-k.gap {
			length = k.t.Delta
		}
		k.calls.sources(k, k.x, local, length)
		k.calls.begin(k, local)
		theta, cause := k.calls.walk(k, local, looks > 0)
		k.keep(theta)
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
			if stops && k.stop(found, local-from) {
				break
			}
		}
	}
	return local
}

// stop reports whether a tick ends at its found-th event, with so much of its time
// done.
//
//go:nosplit
func (k *Kernel) stop(found int, done float64) bool {
	if k.t.Scheme == Papers {
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
	k.grip()
	if again || k.overloaded() {
		k.calls.resolve(k)
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
	for _, i := range k.t.Gapped { // where a contact ends it has no torque, but terms that round
		if k.carries(i) {
			k.noise = max(k.noise, torqueNoise/50*k.terming(i))
		}
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
	at := k.home[i]
	if to == Stuck {
		k.kappa[at.block] |= 1 << at.bit
	} else {
		k.kappa[at.block] &^= 1 << at.bit
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

// walk takes the state to the end of the piece, or to the first event in it; one that
// is less than a stride away is not told apart from those behind it. It returns the
// place and the cause.
//
//go:nosplit
func (k *Kernel) walk(local float64, look bool) (theta float64, cause int) {
	expanded := true
	if look && k.t.Net != nil && k.t.FirstLaw < k.t.M {
		theta, cause = k.hunt(local)
	} else {
		theta, cause, expanded = k.calls.seek(k, local, look, halved, false)
	}
	apart := theta >= k.stride(look)
	if cause != none && apart && k.t.FirstLaw < k.t.M {
		theta, cause = k.shorten(local, theta, cause)
		apart = theta >= k.stride(look) // the first event of the shorter piece may be another
	}
	if cause == none {
		theta = 1
	}
	if len(k.pulse) > 0 && (cause == none || apart) {
		k.calls.pulses(k, local, theta, expanded)
	}
	switch {
	case cause == none:
		copy(k.x, k.x1)
	case apart:
		k.horner(k.x, theta)
		return theta, cause
	default:
		theta = k.stride(look)
		k.calls.leap(k, local, theta)
	}
	if k.stalled++; theta*k.length > slipZero {
		k.stalled = 0
	}
	return theta, none
}

// stride is the part of the piece in which events are not told apart: none while the
// tick looks for them, a little where they pile up at one instant.
//
//go:nosplit
func (k *Kernel) stride(look bool) float64 {
	if !look {
		return min(1, k.h/(float64(k.t.strides())*k.length))
	}
	if k.piled() {
		return 1. / 4096
	}
	return 0
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
		return k.calls.strike(k, cause, local)
	}
	copy(k.before, k.mode)
	k.slips.mul(k.slip, k.x)
	k.rates(k.w)
	for i, s := range k.slip {
		d := k.direction(i)
		leaves := k.fresh[i] && d*k.slips.dot(i, k.xd) >= 0
		if d != 0 && (i == cause || math.Abs(s) <= 2*slipZero && !leaves) {
			k.set(i, Stuck)
		}
	}
	k.calls.resolve(k)
	k.land()
	changed := k.count(local)
	if changed {
		k.events++
	}
	return changed
}
