package gearbox

import "math"

const (
	crankInertia  = 0.23 // of the engine with the drums and one input shaft, kg.m2
	swapTime      = 0.12 // time in which the clutches hand over the torque, s
	swapMost      = 2.0  // longest exchange of the clutches beyond its planned time, s
	syncMargin    = 10.0 // speed of the engine beyond that of the new gear at the hand-over, rad/s
	slipTime      = 0.15 // time in which the off-going clutch begins to slip: a period of the shafts, which then do not swing, s
	syncGain      = 4.0  // torque per speed of the engine behind its plan, N.m.s/rad
	leastShare    = 0.25 // share of the torque of the engine that drives the wheels at least
	softClose     = 0.2  // share of the torque that moves the engine at the end of the slip, so that the shafts do not swing
	softShare     = 0.5  // share of the slip from which on it falls to that
	closingTorque = 15.0 // torque of the on-coming clutch above that of the engine while it closes, N.m
	closingRate   = 100  // its increase, N.m/s
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
	began  float64    // begin of the exchange, s
	handed float64    // begin of the hand-over, s; NaN before
	carry  [2]float64 // torques of the clutches in this cycle, N.m
	offers float64    // torque of the off-going clutch at the begin of the hand-over, N.m
}

// take starts a shift to the gear aim with the exchange of the clutches to a gear.
func (s *dct) take(t float64, gear, aim int) {
	s.swap(t, gear)
	s.aim, s.start, s.kind, s.slip = aim, t, byClutch, s.engine-s.at(aim)
	if s.from == 0 {
		s.slip = 0
		return
	}
	inertia := crankInertia * math.Abs(s.slip) / max(math.Abs(s.torque), idleTorque)
	s.plan = min(max(s.shiftTime, inertia), 2*s.shiftTime)
	if s.torque*s.slip < 0 && math.Abs(s.torque) > idleTorque {
		s.kind, s.plan = byEngine, max(s.shiftTime, math.Abs(s.slip)/syncRate, inertia/engineShare)
		if s.torque < 0 && s.plan > coastTime { // the drag of the engine would take too long
			s.kind, s.plan = byClutch, coastTime
		}
	}
}

// swap starts the exchange of the clutches to a gear.
func (s *dct) swap(t float64, gear int) {
	s.Logf("%.2f s: shift %s -> %s", t, dctNames[s.gear], dctNames[gear])
	s.from, s.gear, s.closed, s.still, s.began, s.handed = s.gear, gear, false, 0, t, math.NaN()
	s.shifts++
	if gear == 0 {
		s.from = 0
	}
}

// at returns the speed of the engine in a gear, rad/s.
func (s *dct) at(gear int) float64 { return dctRatio[gear] * s.out }

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
	if s.aim == s.gear || !s.open(t) {
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
	case late && s.engaged(half(s.gear)) != s.gear: // a sleeve does not move: the gear before drives on
		s.Logf("%.2f s: gear %s not engaged", t, dctNames[s.gear])
		s.gear, s.aim, s.slip, s.ended = s.from, s.from, 0, t
	case s.busy() && s.at(s.gear) < slowEngine+10 && s.gear != dctReverse: // the car stops: the new clutch slips
		s.from, s.aim, s.slip, s.ended = s.gear, s.gear, 0, t
	case !s.closed && s.engine > slowEngine && (late || s.still >= 3 && (!s.busy() || s.open(t))):
		s.closed = true
		s.from, s.ended = s.gear, t
		s.Logf("%.2f s: gear %s engaged", t, dctNames[s.gear])
	case s.closed && s.engine < slowEngine:
		s.closed = false
	}
}

// torques sets the torques of the clutches, N.m, and returns the share of the accelerator that the engine gets.
func (s *dct) torques(t float64) (limit float64) {
	before := s.carry
	s.carry = [2]float64{}
	if s.gear == 0 {
		return 1
	}
	on, off := half(s.gear), 1-half(s.gear)
	full := engineTorque*s.accelerator + holdTorque
	switch {
	case s.busy():
		if math.IsNaN(s.handed) {
			s.offers = before[off]
		}
		if s.kind == byEngine && s.torque*s.slip >= 0 { // the driver has changed his mind
			s.kind = byClutch
		}
		if s.kind == byClutch {
			limit = s.moveEngine(t, on, off)
		} else {
			limit = s.letEngine(t, on, off)
		}
		return limit
	case s.closed:
		s.carry[on] = full
		if s.kind == byClutch && s.slip > 0 {
			return min(1, s.cut+(1-s.cut)*(t-s.ended)/limitGrows)
		}
	default:
		s.carry[on] = s.launch()
	}
	return 1
}

// moveEngine hands the torque over, and then moves the engine with the on-coming clutch. After the planned time its
// torque rises further.
func (s *dct) moveEngine(t float64, on, off int) (limit float64) {
	if math.IsNaN(s.handed) {
		if s.engaged(on) != s.gear {
			s.carry[off] = s.offers
			return 1
		}
		s.handed = t
	}
	passed := min(1, (t-s.handed)/swapTime)
	s.carry[off] = s.offers * (1 - passed)
	s.carry[on] = max(0, math.Copysign(1, s.slip)*s.torque) * passed
	over := t - s.handed - swapTime
	if over <= 0 {
		return 1
	}
	near := min(1, softClose+(1-softClose)*math.Abs(s.engine-s.at(s.gear))/max(math.Abs(softShare*s.slip), 1e-9))
	s.carry[on] += near * crankInertia * math.Abs(s.slip) / s.plan * min(1, over/swapTime) * (1 + 2*max(0, over/s.plan-1))
	if s.torque > 0 && s.slip > 0 {
		return s.cut
	}
	return 1
}

// letEngine lets the engine go to the speed of the last gear along a plan, and hands the torque over once it has the
// speed of the new gear and that is engaged. Both clutches together carry what the engine does not need.
func (s *dct) letEngine(t float64, on, off int) (limit float64) {
	side, since, rate := math.Copysign(1, s.slip), t-s.start, math.Abs(s.slip)/s.plan
	if since > s.plan {
		rate = 0
	}
	if math.IsNaN(s.handed) && side*(s.engine-s.at(s.gear)) < -syncMargin/2 && s.engaged(on) == s.gear {
		s.handed = t
	}
	closes := s.gear == s.aim && s.open(t)
	behind := side*(s.engine-s.at(s.aim)) + syncMargin - math.Abs(s.slip)*(1-min(1, max(0, since-slipTime/2)/s.plan))
	if closes {
		behind = 0
	}
	torque := math.Abs(s.torque)
	torque = max(leastShare*torque, torque-crankInertia*rate*min(1, since/slipTime)-syncGain*behind)
	if closes {
		torque += closingTorque + closingRate*(t-s.handed-swapTime)
	}
	passed := 0.0
	if !math.IsNaN(s.handed) {
		passed = min(1, (t-s.handed)/swapTime)
	}
	s.carry[off], s.carry[on] = torque*(1-passed), torque*passed
	return 1
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
