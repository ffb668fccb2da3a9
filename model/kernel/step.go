package kernel

import "math"

// overload is the relative excess over a capacity that counts as too much: above
// the rounding of a lock torque.
const overload = 1e-9

// pieces is the largest number of pieces a tick can take: what the period and the
// longest lag need, and one more for each place where a piece can be cut.
func (t *Tables) pieces() int {
	return t.periods()*(t.Split+1) + t.Corners + 2*t.events()
}

// periods is how many periods a tick can span, at most.
func (t *Tables) periods() int { return 2 + int(t.LagBound/(float64(t.PeriodNs)*1e-9)) }

// events is how many events a tick looks for. The rest of the period is then
// taken without, so that it always reaches its end.
func (t *Tables) events() int { return t.EventBudget + extraEvents }

// advance takes the plant towards the grid time of this tick: over the period
// and what the lag still owes. What it does not reach stays in the lag.
func (k *Kernel) advance() {
	owed := k.lag
	total := k.h + owed
	start := float64(k.tick)*k.h - owed
	done, found, looks := 0.0, 0, k.t.events()
	for range k.t.pieces() {
		left := total - done
		if left <= cornerGap {
			break
		}
		now := start + done
		if k.corner <= now+cornerGap {
			k.corner = k.nextCorner(now)
		}
		length := min(left, k.corner-now, k.commands(owed-done))
		if length > k.t.Delta-cornerGap {
			length = k.t.Delta
		}
		k.sources(now, length)
		k.begin(now)
		theta, cause := k.walk(now, looks > 0)
		if k.failed() {
			return
		}
		done += theta * length
		if cause < 0 {
			continue
		}
		looks--
		if k.event(start+done, theta, cause) && total-done > cornerGap {
			if found++; found == 1 {
				k.eta = done / total
			}
			if k.stop(found, done, total) {
				break
			}
		}
	}
	if k.lag = total - done; k.lag <= cornerGap {
		k.lag = 0
	}
}

// commands sets the inputs that held at the given time before this tick, s (0 or
// less: after it), and returns how long they hold from there.
func (k *Kernel) commands(owed float64) float64 {
	back := 0
	if owed > cornerGap {
		back = min(int(math.Ceil((owed-cornerGap)/k.h)), k.t.periods())
	}
	k.in = k.past(k.tick - int64(back))
	return owed - float64(back-1)*k.h
}

// stop reports whether the tick ends at its found-th event.
func (k *Kernel) stop(found int, done, total float64) bool {
	if total-done > k.t.LagBound {
		return false
	}
	if k.t.Scheme == Papers {
		return done > cornerGap
	}
	return found >= k.t.EventBudget
}

// begin brings the modes in line with the capacities at the start of a piece:
// elements without capacity are free, others become active, and a lock that is
// overloaded (a command fell) breaks.
func (k *Kernel) begin(now float64) {
	mul(k.slip, k.t.W, k.x)
	copy(k.before, k.mode)
	again := false
	for i, s := range k.slip {
		active := k.capMiddle(i) > 0
		switch {
		case !active && k.mode[i] != Free:
			again = again || k.mode[i] == Stuck
			k.set(i, Free)
		case active && k.mode[i] == Free:
			k.set(i, side(s))
			again = again || k.mode[i] == Stuck
		}
		if math.Abs(s) > 10*slipZero {
			k.fresh[i] = false
		}
	}
	k.instant(0)
	k.limits(0, 0)
	k.load()
	if again || k.overloaded(-1, true, overload) >= 0 {
		k.resolve(-1)
		k.land()
	}
	if k.count(now) {
		k.events++
	}
	for i := range k.mode {
		k.slide(i)
	}
}

// set moves element i to mode to and keeps kappa in step.
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
func (k *Kernel) count(now float64) bool {
	any := false
	for i, to := range k.mode {
		if from := k.before[i]; from != to {
			any = true
			k.transitions++
			if len(k.log) < cap(k.log) {
				k.log = append(k.log, Event{Time: now, Friction: i, From: from, To: to})
			}
		}
	}
	return any
}

// walk takes the state to the end of the piece, or to the first event in it if it
// is to look for one. It returns the place and the element that caused it, -1 for
// none.
func (k *Kernel) walk(now float64, look bool) (theta float64, cause int) {
	mul(k.slip, k.t.W, k.x)
	expanded := k.length != k.t.Delta
	if expanded {
		k.expand(k.x)
		k.horner(k.x1, 1)
	} else {
		k.whole(k.x1, k.x)
	}
	theta, cause = 1, -1
	if k.suspect() {
		if !expanded {
			k.expand(k.x)
		}
		theta, cause = k.first()
	}
	switch {
	case cause < 0:
		copy(k.x, k.x1)
		theta = 1
	case look && k.stalled <= 2*k.t.Mc+2:
		k.horner(k.x, theta)
		return theta, cause
	case look:
		theta = stride
		k.horner(k.x, theta)
		k.cross(now+theta*k.length, theta)
	default:
		copy(k.x, k.x1)
		theta = 1
		k.cross(now+k.length, 1)
	}
	k.stalled = 0
	return theta, -1
}

// stride is the part of a piece that is taken without looking where events pile
// up at one instant.
const stride = 1. / 4096

// cross follows a piece that was taken without looking: a slip that passed
// through zero is put there, momentum kept, and what is then at rest is settled.
func (k *Kernel) cross(now, theta float64) {
	copy(k.before, k.mode)
	mul(k.slip, k.t.W, k.x)
	passed := false
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
	k.instant(theta)
	k.resolve(-1)
	k.land()
	if k.count(now) {
		k.events++
	}
}

// suspect reports whether the piece from x to x1 can hold an event.
func (k *Kernel) suspect() bool {
	mul(k.slip1, k.t.W, k.x1)
	k.rates(k.w0)
	k.instant(1)
	for i, mode := range k.mode {
		switch mode {
		case Free:
		case Stuck:
			if k.yields(i) != 0 {
				return true
			}
		default:
			if k.dips(i) {
				return true
			}
		}
	}
	return false
}

// yields is the side, +1 or -1, on which the lock torque of stuck element i can
// exceed its static capacity: at the end of the piece, or in between by the
// parabola through both ends and the slope. 0: on none.
func (k *Kernel) yields(i int) float64 {
	m, peak := &k.t.Modes[k.kappa], k.t.Friction[i].Peak
	if k.idle(i) {
		return 0
	}
	tau0, tau1 := k.tau[i], dotRow(m.T, i, k.x1)+dotRow(m.U, i, k.w)
	slope := k.length*dotRow(m.T, i, k.xd) + dotRow(m.U, i, k.w1)
	if math.Abs(tau1) > peak*k.capNow[i]*(1+overload) {
		return math.Copysign(1, tau1)
	}
	for _, side := range [2]float64{1, -1} {
		if sags(peak*k.cap0[i]-side*tau0, peak*k.cap1[i]-side*tau1, peak*k.capC[3*i+1]-side*slope) {
			return side
		}
	}
	return 0
}

// sags reports whether a curve over the piece that starts at a with slope r and
// ends at b, both positive, can reach zero in between: the parabola through them
// does, within what a sine of at most one radian departs from it.
func sags(a, b, r float64) bool {
	c := b - a - r
	return r < 0 && c > 0 && a-r*r/(4*c) <= 0.05*(c-r)
}

// dips reports whether the slip of slipping element i can reach zero: at the end
// of the piece, or in between by the parabola through both ends and the slope. A
// slip that just left zero can come back on any curve.
func (k *Kernel) dips(i int) bool {
	d := k.direction(i)
	s0, s1 := d*k.slip[i], d*k.slip1[i]
	return k.fresh[i] || s1 <= 0 || sags(s0, s1, d*dotRow(k.t.W, i, k.xd)*k.length)
}

// first finds the first event of the expanded piece: place and element, or 1
// and -1.
func (k *Kernel) first() (theta float64, cause int) {
	theta, cause = 1, -1
	for i, mode := range k.mode {
		switch mode {
		case Free:
			continue
		case Stuck:
			side := k.yields(i)
			if side == 0 {
				continue
			}
			k.torquePoly(i, side)
		default:
			if !k.dips(i) {
				continue
			}
			k.slipPoly(i)
		}
		if at, ok := firstRoot(k.poly); ok && (cause < 0 || at < theta) {
			theta, cause = at, i
		}
	}
	return theta, cause
}

// slipPoly sets poly to the slip of element i over the piece, positive on its
// own side.
func (k *Kernel) slipPoly(i int) {
	n, d := k.t.N, float64(k.mode[i])
	clear(k.poly)
	for j := range k.t.Degree + 1 {
		k.poly[j] = d * dotRow(k.t.W, i, k.c[j*n:(j+1)*n])
	}
	if k.fresh[i] {
		k.poly[0] += slipZero
	}
}

// torquePoly sets poly to the reserve of stuck element i over the piece: static
// capacity minus lock torque, on one side.
func (k *Kernel) torquePoly(i int, side float64) {
	m, n := &k.t.Modes[k.kappa], k.t.N
	peak := k.t.Friction[i].Peak * (1 + overload/2)
	clear(k.poly)
	for j := range 3 {
		k.poly[j] = peak * k.capC[3*i+j]
	}
	for j := range k.t.Degree + 1 {
		k.poly[j] -= side * dotRow(m.T, i, k.c[j*n:(j+1)*n])
	}
	for j, w := range [3][]float64{k.w0, k.w1, k.w2} {
		k.poly[j] -= side * dotRow(m.U, i, w)
	}
}

// event lets the element that caused it and those at rest with it make their one
// transition. It reports whether any made one.
func (k *Kernel) event(now, theta float64, cause int) bool {
	if theta*k.length > slipZero {
		k.stalled = 0
	}
	k.stalled++
	copy(k.before, k.mode)
	mul(k.slip, k.t.W, k.x)
	k.instant(theta)
	k.rates(k.w)
	force := -1
	if k.mode[cause] == Stuck {
		force = cause
	}
	for i, s := range k.slip {
		d := k.direction(i)
		leaves := k.fresh[i] && d*dotRow(k.t.W, i, k.xd) >= 0
		if d != 0 && (i == cause || math.Abs(s) <= 2*slipZero && !leaves) {
			k.set(i, Stuck)
		}
	}
	k.resolve(force)
	k.land()
	changed := k.count(now)
	if changed {
		k.events++
	}
	return changed
}
