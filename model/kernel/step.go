package kernel

import "math"

// overload is the relative excess over a capacity that counts as too much: above
// the rounding of a lock torque.
const overload = 1e-9

// pieces is the largest number of pieces a tick can take.
func (t *Tables) pieces() int {
	stretched := 2 + int(t.LagBound/(float64(t.PeriodNs)*1e-9))
	return t.Split*stretched + extraPieces
}

// advance takes the plant towards the grid time of this tick: over the period
// and what the lag still owes. What it does not reach stays in the lag.
func (k *Kernel) advance() {
	owed := k.lag
	total := k.h + owed
	start := float64(k.tick)*k.h - owed
	done, found := 0.0, 0
	for range k.t.pieces() {
		left := total - done
		if left <= cornerGap {
			break
		}
		now := start + done
		if k.corner <= now+cornerGap {
			k.corner = k.nextCorner(now)
		}
		length := min(left, k.corner-now)
		k.in = k.u
		if done < owed-cornerGap { // the commands of this tick hold from its start
			k.in = k.uOld
			length = min(length, owed-done)
		}
		if length > k.t.Delta-cornerGap {
			length = k.t.Delta
		}
		k.sources(now, length)
		k.begin(now)
		theta, cause := k.walk()
		done += theta * length
		if cause < 0 {
			continue
		}
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

// stop reports whether the tick ends at its found-th event.
func (k *Kernel) stop(found int, done, total float64) bool {
	if k.t.Scheme == Papers {
		return done > cornerGap && total-done <= k.t.LagBound
	}
	return found >= k.t.EventBudget
}

// begin brings the modes in line with the capacities at the start of a piece:
// elements without capacity are free, others become active, and a lock that is
// overloaded (a command fell) breaks.
func (k *Kernel) begin(now float64) {
	mul(k.slip, k.t.W, k.x)
	copy(k.before, k.mode)
	gained := false
	for i, s := range k.slip {
		active := k.capMiddle(i) > 0
		switch {
		case !active && k.mode[i] != Free:
			k.set(i, Free)
		case active && k.mode[i] == Free:
			k.set(i, side(s))
			gained = gained || k.mode[i] == Stuck
		}
		if math.Abs(s) > 10*slipZero {
			k.fresh[i] = false
		}
	}
	k.instant(0)
	k.load()
	if gained || k.overloaded(-1) >= 0 {
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

// set moves element i to mode to and keeps kappa in step; a split found for the
// former lock set is void.
func (k *Kernel) set(i int, to int8) {
	k.mode[i] = to
	clear(k.split)
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

// walk takes the state to the end of the piece, or to the first event in it. It
// returns the place and the element that caused it, -1 for none.
func (k *Kernel) walk() (theta float64, cause int) {
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
	if cause >= 0 && k.stalled <= 2*k.t.Mc+2 {
		k.horner(k.x, theta)
		return theta, cause
	}
	copy(k.x, k.x1)
	if cause >= 0 {
		k.cross()
	}
	k.stalled = 0
	return 1, -1
}

// cross is the way out where events pile up at one instant: the piece was taken
// without them, and what slipped through zero slips the other way.
func (k *Kernel) cross() {
	mul(k.slip, k.t.W, k.x)
	for i, s := range k.slip {
		if d := k.mode[i]; (d == Forward || d == Backward) && float64(d)*s < 0 {
			k.mode[i] = -d
			k.transitions++
		}
	}
}

// suspect reports whether the piece from x to x1 can hold an event.
func (k *Kernel) suspect() bool {
	m := &k.t.Modes[k.kappa]
	mul(k.slip1, k.t.W, k.x1)
	mul(k.xd, m.A, k.x)
	mulAdd(k.xd, m.B, k.w0)
	k.instant(1)
	for i, mode := range k.mode {
		switch mode {
		case Free:
		case Stuck:
			if k.excess(i, k.x1) > 0 {
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

// excess is by how much the lock torque of stuck element i in state x, with the
// inputs that instant has set, exceeds its static capacity, N·m.
func (k *Kernel) excess(i int, x []float64) float64 {
	m := &k.t.Modes[k.kappa]
	tau := dotRow(m.T, i, x) + dotRow(m.U, i, k.w) + k.split[i]
	k.tau[i] = tau
	static := k.t.Friction[i].Peak * k.capNow[i]
	return math.Abs(tau) - static*(1+overload)
}

// dips reports whether the slip of slipping element i can reach zero: at the end
// of the piece, or in between by the parabola through both ends and the slope.
func (k *Kernel) dips(i int) bool {
	d := float64(k.mode[i])
	s0, s1 := d*k.slip[i], d*k.slip1[i]
	if k.fresh[i] {
		s0, s1 = s0+slipZero, s1+slipZero
	}
	if s1 <= 0 {
		return true
	}
	r := d * dotRow(k.t.W, i, k.xd) * k.length
	c := s1 - s0 - r
	return r < 0 && c > 0 && s0-r*r/(4*c) <= 0.05*math.Abs(c)
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
			k.instant(1)
			if k.excess(i, k.x1) <= 0 {
				continue
			}
			k.torquePoly(i)
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
// capacity minus lock torque, on the side that is exceeded at the end.
func (k *Kernel) torquePoly(i int) {
	m, n := &k.t.Modes[k.kappa], k.t.N
	side := math.Copysign(1, k.tau[i])
	peak := k.t.Friction[i].Peak * (1 + overload/2)
	clear(k.poly)
	for j := range k.t.Degree + 1 {
		k.poly[j] = -side * dotRow(m.T, i, k.c[j*n:(j+1)*n])
	}
	for j, w := range [3][]float64{k.w0, k.w1, k.w2} {
		k.poly[j] += peak*k.capC[3*i+j] - side*dotRow(m.U, i, w)
	}
	k.poly[0] -= side * k.split[i]
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
	force := -1
	if k.mode[cause] == Stuck {
		force = cause
	}
	for i, s := range k.slip {
		slips := k.mode[i] == Forward || k.mode[i] == Backward
		if slips && (i == cause || math.Abs(s) <= slipZero && !k.fresh[i]) {
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
