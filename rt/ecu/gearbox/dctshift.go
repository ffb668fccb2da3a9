package gearbox

import "math"

const (
	crankInertia  = 0.23  // of the engine with the drums and one input shaft, kg.m2
	swapTime      = 0.15  // time in which the clutches hand over the torque, s
	swapMost      = 2.0   // longest exchange of the clutches beyond its planned time, s
	syncMargin    = 10.0  // speed of the engine beyond that of the new gear at the hand-over, rad/s
	roadFilter    = 5.0   // natural frequency of the filter of the output speed, rad/s
	slipTime      = 0.15  // time in which the off-going clutch begins to slip: a period of the shafts, which then do not swing, s
	syncGain      = 4.0   // torque per speed of the engine behind its plan, N.m.s/rad
	loadShare     = 0.6   // share of the torque of the engine that moves it, under load
	leastShare    = 0.25  // share of the torque of the engine that the wheels keep at least
	coneFalls     = 0.05  // time in which the unit takes the torque of the synchroniser back, s
	coneGear      = 0.24  // torque that a synchroniser takes from the differential, per force of the fork, m
	flareSlip     = 40.0  // speed of the engine beyond its plan, or that of a closed clutch, at which its clutch counts as open, rad/s
	flareCycles   = 2     // cycles for which it must do so
	launchSlip    = 250.0 // slip of a clutch while the car starts that counts so, rad/s
	launchCycles  = 20    // cycles for which it must do so
	softClose     = 0.2   // share of the torque that moves the engine at the end of the slip, so that the shafts do not swing
	softShare     = 0.5   // share of the slip from which on it falls to that
	closingTorque = 15.0  // torque of the on-coming clutch above that of the engine while it closes, N.m
	closingRate   = 100   // its increase, N.m/s
)

// exchange is the change of the torque from one clutch to the other. Where the torque of the engine moves it away from
// the speed of the new gear (upshift under load, downshift while coasting), the clutches hand over the torque first, and
// the on-coming one moves the engine. In the others the off-going clutch carries less than the engine gives until that
// has found its new speed, and then hands the torque over: under load, the wheels are driven throughout.
//
// A shift within one half of the gearbox goes by way of a bridge gear of the other half. While its clutch carries, the
// sleeves of the first half change the gear. Under load the engine goes on to the speed of the last gear meanwhile.
type exchange struct {
	aim    int        // gear at the end of the shift: that of the exchange, or of the one that follows
	kind   int        // byClutch, byEngine
	start  float64    // begin of the shift, s
	slip   float64    // speed of the engine above that of the last gear then, rad/s
	plan   float64    // planned time of the change of the engine speed, s
	path   float64    // planned change of the engine speed until now, rad/s
	began  float64    // begin of the exchange, s
	handed float64    // begin of the hand-over, s; NaN before
	ahead  float64    // speed of the engine beyond its plan, or away from the new gear, rad/s
	excess float64    // speed of the engine beyond that of the gear before, at the hand-over, rad/s
	carry  [2]float64 // torques of the clutches in this cycle, N.m
	offers float64    // torque of the off-going clutch at the begin of the hand-over, N.m
	cone   float64    // torque of the off-going clutch that the synchroniser takes, N.m
}

// take starts a shift to the gear aim with the exchange of the clutches to a gear.
func (s *dct) take(t float64, gear, aim int) {
	s.swap(t, gear)
	s.cone, s.aim, s.slip = 0, aim, 0
	if s.from != 0 {
		s.planSpeed(t)
	}
}

// planSpeed plans the change of the engine speed from now on.
func (s *dct) planSpeed(t float64) {
	s.start, s.kind, s.slip, s.path = t, byClutch, s.engine-s.goal(s.aim), 0
	inertia := crankInertia * math.Abs(s.slip) / max(math.Abs(s.torque), idleTorque)
	s.plan = min(max(s.shiftTime, inertia), 2*s.shiftTime)
	if s.torque*s.slip < 0 && math.Abs(s.torque) > idleTorque {
		s.kind, s.plan = byEngine, max(s.shiftTime, math.Abs(s.slip)/syncRate, inertia/s.moves())
		if s.torque < 0 && s.plan > coastTime { // the drag of the engine would take too long
			s.kind, s.plan = byClutch, coastTime
		}
	}
}

// moves returns the share of the torque of the engine that moves it to its new speed. Under load the wheels keep more.
func (s *dct) moves() float64 {
	if s.torque > 0 {
		return loadShare
	}
	return 1 - leastShare
}

// swap starts the exchange of the clutches to a gear.
func (s *dct) swap(t float64, gear int) {
	s.Logf("%.2f s: shift %s -> %s", t, dctNames[s.gear], dctNames[gear])
	s.from, s.gear, s.closed, s.still, s.began, s.handed, s.ahead = s.gear, gear, false, 0, t, math.NaN(), 0
	s.shifts++
	if gear == 0 {
		s.from = 0
	}
}

// at returns the speed of the engine in a gear, rad/s.
func (s *dct) at(gear int) float64 { return dctRatio[gear] * s.out }

// goal returns the speed to which the engine goes for a gear, rad/s. It leaves out the swings of the shafts, which the
// clutches excite: a plan that followed them would keep them up.
func (s *dct) goal(gear int) float64 { return dctRatio[gear] * s.road }

// filter filters the output speed, without lag in a constant acceleration.
func (s *dct) filter(dt float64) {
	off := s.out - s.road
	s.roadRate += roadFilter * roadFilter * off * dt
	s.road += (s.roadRate + 1.4*roadFilter*off) * dt
}

// busy reports whether the clutches are exchanged.
func (s *dct) busy() bool { return s.gear != s.from }

// open reports whether the off-going clutch has handed the torque over.
func (s *dct) open(t float64) bool { return t >= s.handed+swapTime }

// bridge returns the gear of the next exchange on the way to a gear: that one, or a gear of the other half. The one that
// is engaged there is the fastest if it lies between.
func (s *dct) bridge(to int) int {
	if half(to) != half(s.gear) {
		return to
	}
	if between := s.engaged(1 - half(to)); min(s.gear, to) < between && between < max(s.gear, to) {
		return between
	}
	if to < s.gear {
		return to + 1
	}
	return to - 1
}

// goOn continues a shift by way of a bridge gear, once the clutch of the first gear is open. Under load the engine
// needs no clutch to go on, so that the sleeves may still move.
func (s *dct) goOn(t float64) {
	if s.aim == s.gear || !s.open(t) || s.ahead > flareSlip/4 { // the bridge clutch must carry
		return
	}
	s.want[half(s.aim)] = s.aim
	switch {
	case s.kind == byEngine:
		s.swap(t, s.aim)
	case s.engaged(half(s.aim)) == s.aim:
		s.take(t, s.aim, s.aim)
	}
}

// watch ends an exchange when the clutch of the new gear does not slip, or has taken too long, and closes the clutch.
func (s *dct) watch(t float64) {
	if s.gear == 0 {
		return
	}
	if s.busy() && s.from == 0 {
		s.from = s.gear // a start, not an exchange
	}
	late := s.busy() && t > s.began+s.plan+swapMost
	switch {
	case s.flares(late):
		s.fail(t)
	case late && s.engaged(half(s.gear)) != s.gear: // a sleeve does not move: the gear before drives on
		s.Logf("%.2f s: gear %s not engaged", t, dctNames[s.gear])
		s.gear, s.aim, s.slip, s.ended = s.from, s.from, 0, t
	case late && s.kind == byEngine && math.IsNaN(s.handed): // the engine is too weak: the new clutch moves it
		s.kind, s.plan, s.began = byClutch, coastTime, t
	case s.busy() && s.goal(s.gear) < slowEngine+10 && s.gear != dctReverse: // the car stops: the new clutch slips
		s.from, s.aim, s.slip, s.ended = s.gear, s.gear, 0, t
	case !s.closed && s.engine > slowEngine && (late || s.still >= 3 && (!s.busy() || s.open(t))):
		s.closed = true
		s.from, s.ended = s.gear, t
		s.Logf("%.2f s: gear %s engaged", t, dctNames[s.gear])
	case s.closed && s.engine < slowEngine:
		s.closed = false
	}
}

// flares reports whether the engine runs away from the speed that the clutch of the gear gives it: the clutch does not
// close.
func (s *dct) flares(late bool) bool {
	slip, runs, long := s.engine-s.in[half(s.gear)], false, flareCycles
	switch {
	case s.motor.Late(s.LastCycle) || s.speeds.Late(s.LastCycle):
	case s.busy():
		runs = s.ahead > flareSlip || late && !math.IsNaN(s.handed) && math.Abs(slip) > 3*dctSlip
	case s.closed:
		runs = min(slip, s.engine-s.goal(s.gear)) > flareSlip && s.goal(s.gear) > slowEngine && s.accelerator > pressedPedal
	case !s.catches():
		runs, long = s.engine-s.goal(s.gear) > launchSlip, launchCycles
	}
	if s.runs++; !runs {
		s.runs = 0
	}
	return s.runs >= long
}

// fail lets the gear of the other half drive on, after the clutch that should carry has not closed.
func (s *dct) fail(t float64) {
	h := half(s.gear)
	if s.busy() && math.IsNaN(s.handed) {
		h = half(s.from)
	}
	s.broken[h] = true
	s.Memory.Fail(codeDctSlip)
	to := s.engaged(1 - h)
	if s.gear == dctReverse || to == dctReverse || s.broken[1-h] || s.goal(to) < slowEngine+10 || s.goal(to) > fastestInput {
		s.leave(t)
		return
	}
	s.Logf("%.2f s: K%d does not close, gear %s drives on", t, h+1, dctNames[to])
	s.gear, s.from, s.aim, s.slip, s.closed, s.still, s.ended = to, to, to, 0, false, 0, t
}

// catches reports whether the clutch is to catch an engine that another one has let go.
func (s *dct) catches() bool {
	return s.broken != [2]bool{} && (dctRatio[1]*s.road > slowEngine || s.engine > launchSlip)
}

// torques sets the torques of the clutches, N.m, and the share of the accelerator that the engine gets.
func (s *dct) torques(t, dt float64) {
	before := s.carry
	s.carry = [2]float64{}
	share := min(1, s.share+(1-s.cut)*dt/limitGrows)
	on, off := half(s.gear), 1-half(s.gear)
	switch {
	case s.gear == 0:
		if s.catches() {
			share = 0
		}
	case s.busy():
		if math.IsNaN(s.handed) {
			s.offers = before[off]
		}
		switch { // the driver has changed his mind
		case s.kind == byEngine && s.torque*s.slip >= 0:
			s.kind = byClutch
		case s.kind == byClutch && math.IsNaN(s.handed) && s.torque > idleTorque && s.slip < 0:
			s.planSpeed(t)
		}
		if s.kind == byClutch {
			share = s.moveEngine(t, dt, on, off)
		} else {
			s.letEngine(t, dt, on, off)
		}
	case s.closed:
		s.carry[on] = engineTorque*s.accelerator + holdTorque
	default:
		s.carry[on] = s.launch()
		if s.catches() {
			share = min(1, flareSlip/math.Abs(s.engine-s.in[on])) * s.cut
		}
	}
	s.share = share
}

// moveEngine hands the torque over, and then moves the engine with the on-coming clutch. After the planned time its
// torque rises further. It returns the share of the accelerator that the engine gets: less under load, until the
// engine is near its new speed.
func (s *dct) moveEngine(t, dt float64, on, off int) float64 {
	side, missing := math.Copysign(1, s.slip), s.engine-s.goal(s.gear)
	torque := max(0, side*s.torque)
	if side*missing < -dctSlip { // the torque of the engine has moved it beyond the speed of the new gear
		torque = max(0, -side*s.torque)
	}
	if math.IsNaN(s.handed) {
		if s.engaged(on) != s.gear {
			s.carry[off] = s.offers
			if side*(s.engine-s.in[off]) > -dctSlip { // it holds what the driver adds
				s.carry[off] = max(s.offers, engineTorque*s.accelerator+holdTorque)
			}
			return s.share
		}
		s.handed, s.excess = t, max(0, s.beyond())
		if math.Abs(s.engine-s.in[off]) < dctSlip { // the locked clutch falls from the torque that it must hold
			s.offers = min(s.offers, holdMargin*torque)
		}
	}
	s.ahead = s.beyond() - s.excess
	if s.slip < 0 && s.torque > idleTorque { // the driver accelerates the engine beyond the new gear
		s.ahead = max(s.ahead, min(missing, s.engine-s.in[on]))
	}
	passed := min(1, (t-s.handed)/swapTime)
	s.carry[off] = s.offers * (1 - passed)
	s.carry[on] = max(torque*passed, torque-s.carry[off]) // the driver may have added torque
	over := t - s.handed - swapTime
	if over <= 0 {
		return s.share
	}
	change := math.Abs(s.slip + s.goal(s.aim) - s.goal(s.gear))
	near := min(1, softClose+(1-softClose)*math.Abs(missing)/max(softShare*change, 1e-9))
	s.carry[on] += near * crankInertia * change / s.plan * min(1, over/swapTime) * (1 + 2*max(0, over/s.plan-1))
	if s.torque > 0 && s.slip > 0 {
		return max(1-(1-s.cut)*near, s.share-(1-s.cut)*dt/swapTime)
	}
	return s.share
}

// beyond returns the speed of the engine beyond that of the gear before, away from the new one, rad/s.
func (s *dct) beyond() float64 { return math.Copysign(1, s.slip) * (s.engine - s.goal(s.from)) }

// letEngine lets the engine go to the speed of the last gear along a plan, and hands the torque over once it has the
// speed of the new gear and that is engaged. Both clutches together carry what the engine does not need.
func (s *dct) letEngine(t, dt float64, on, off int) {
	side, torque, size := math.Copysign(1, s.slip), math.Abs(s.torque), math.Abs(s.slip)
	s.cone = max(s.coneTorque(), s.cone*(1-dt/coneFalls))
	rate := min(size/s.shiftTime, syncRate, max(0, s.moves()*torque-s.cone)/crankInertia) * min(1, (t-s.start)/slipTime)
	if s.path > size+syncMargin {
		rate = 0
	}
	s.path += rate * dt
	if math.IsNaN(s.handed) && side*(s.engine-s.goal(s.gear)) < -syncMargin/2 && s.engaged(on) == s.gear {
		s.handed = t
	}
	closes := s.gear == s.aim && s.open(t)
	behind := side*(s.engine-s.goal(s.aim)) + s.path - size
	s.ahead = -behind
	if closes {
		behind = 0
	}
	torque = max(leastShare*torque+s.cone, torque-crankInertia*rate-syncGain*behind)
	if closes {
		torque += closingTorque + closingRate*(t-s.handed-swapTime)
	}
	passed := 0.0
	if !math.IsNaN(s.handed) {
		passed = min(1, (t-s.handed)/swapTime)
	}
	s.carry[off], s.carry[on] = torque*(1-passed), torque*passed
}

// coneTorque returns what the synchroniser of the last, lower gear takes from the clutch of the bridge gear, N.m.
func (s *dct) coneTorque() float64 {
	if s.slip > 0 || half(s.from) == half(s.gear) || s.engaged(half(s.gear)) == s.gear {
		return 0
	}
	return coneGear * math.Abs(s.force[dctSleeve[s.gear]]) / dctRatio[s.from]
}

// launch returns the torque of the clutch while the car starts or creeps, N.m; below 0 it is open.
func (s *dct) launch() float64 {
	torque := s.creep + s.accelerator*engineTorque
	if s.brake > 3 {
		torque = s.creep * max(0, 1-(s.brake-3)/7)
	}
	if s.engine < slowEngine+10 {
		torque *= max(0, (s.engine-slowEngine)/10)
	}
	return torque
}
