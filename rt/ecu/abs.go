package ecu

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/brutella/can"
)

// Identifiers of the frames, as in abs.dbc.
const (
	idAbsFront    = 0x120
	idAbsRear     = 0x121
	idWheelSpeeds = 0x1A0
	idChassis     = 0x1A1
	idPulsesFront = 0x1A3
)

// absWiring is that of the car.
var absWiring = brakeWiring{idWheelSpeeds, idChassis, idPulsesFront, "wheels", absRadius, 48, 2, absBar}

const (
	absRadius = 0.3   // m, of the wheels
	wheelBit  = 0.01  // rad/s, 15 bits signed
	absBar    = 0.1   // bar per bit of the master pressure, 12 bits
	absShare  = 0.001 // per bit of a valve's command, 10 bits
	absMost   = 12.0  // m/s2, by which no car slows down
	absBuild  = 110.0 // bar/s through the open inlet at a difference of 1 bar
	absDump   = 150.0 // bar/s through the open outlet at 1 bar
	absKeep   = 0.1   // s, between speeds that are kept while all wheels roll
	absTry    = 0.5   // s, between tries of a rear wheel, at least
	absRest   = 4.0   // times as long as the last one took
	absSeldom = 1.0   // s, at most
	absSoon   = 0.25  // s, after the first one
	absLong   = 0.25  // s, that a try lasts at most
	absGains  = 10.0  // m/s2 more than the car, at which a wheel picks up speed
	absRolls  = 3.0   // m/s2 more, below which it rolls again
	absEven   = 0.05  // s, within which the rear brakes are evened out
	absApart  = 10.0  // bar, by which the brakes of an axle always may differ
)

// absTuning is what can be set.
type absTuning struct {
	slip     float64 // of the speed, which is wanted
	margin   float64 // m/s, more than that
	ahead    float64 // s, by which the start of control looks ahead
	follow   float64 // bar/s per m/s of slip speed too little, in front
	damp     float64 // bar per m/s of its rate
	rearGain float64 // a rear brake has a third of the torque
	step     float64 // bar/s, the largest rate that is asked for
	drop     float64 // bar/s, downwards
	pedal    float64 // bar, above which the driver brakes
	crawl    float64 // m/s, below which the wheels may lock
}

// absSpread is how fast the brakes in front and at the rear may part, bar/s.
var absSpread = [2]float64{200, 50}

// absNames are the wheels in the order of the frames.
var absNames = [4]string{"FL", "FR", "RL", "RR"}

// absWheel is what the unit does with the valves of a wheel.
type absWheel struct {
	bar           float64 // pressure in the caliper as the unit reckons it
	active        bool    // the unit holds the slip
	cycles        int     // of it
	inlet, outlet float64 // 0 to 1; the inlet is closed at 1
}

// abs is the anti-lock control unit of a car. It sleeps until it hears WheelSpeeds (0x1A0);
// from then on it sends the commands of the valves (0x120, 0x121) every 5 ms. It has the
// wheels and the pressure of the master cylinder to go by, no acceleration and no pressure
// in a caliper. While the driver brakes it holds a wheel that leaves its slip at it by the
// rate of its pressure, against a speed of the car that falls as fast as it did last, and
// no slower than the fastest wheel. What all wheels hide, as none is left to roll, one rear
// wheel in turn tells: it is let go until it has picked up speed, and is the car's again.
// Each front wheel is held for itself. The rear ones get what the worse of them bears, and
// on a road that differs from left to right slowly more, as the driver takes to steering
// against it. After a second without WheelSpeeds it sleeps again.
type abs struct {
	brake
	tune     absTuning
	wheels   [4]absWheel
	car      float64    // m/s
	slows    float64    // m/s2, by how much it was seen to slow down
	fall     float64    // m/s2, by which it is taken to
	rolled   [2]known   // where wheels were known to roll, the latest behind
	tried    float64    // s, when a rear wheel was last let go
	released int        // the rear wheel that is, 2 or 3; 0: none
	side     int        // the latest that was
	rest     float64    // s, until the next one is
	told     bool       // one has told the speed
	gains    bool       // it has picked up speed
	spread   [2]float64 // bar, by which the brakes of an axle may differ
}

// known is a speed of the car that is known for an instant.
type known struct{ at, v float64 } // s and m/s

func newAbs(s *session) law {
	return &abs{brake: newBrake(s, &absWiring), side: 2, tune: absTuning{
		slip: 0.12, margin: 0.05, ahead: 0.02, follow: 80, damp: 8, rearGain: 3,
		step: 600, drop: 1200, pedal: 5, crawl: 1.5,
	}}
}

func (s *abs) parameters() []Parameter {
	t := &s.tune
	return []Parameter{
		{"slip", "", 0, 1, &t.slip},
		{"margin", "m/s", 0, 10, &t.margin},
		{"ahead", "s", 0, 1, &t.ahead},
		{"follow", "bar/s per m/s", 0, 1e4, &t.follow},
		{"damp", "bar per m/s", 0, 1e3, &t.damp},
		{"rear_gain", "", 0, 100, &t.rearGain},
		{"step", "bar/s", 1, 1e5, &t.step},
		{"drop", "bar/s", 1, 1e5, &t.drop},
		{"pedal", "bar", 0, 200, &t.pedal},
		{"crawl", "m/s", 0, 100, &t.crawl},
	}
}

func (s *abs) result() string {
	var list [4]int
	for i, w := range s.wheels {
		list[i] = w.cycles
	}
	return fmt.Sprintf("; %d stops, cycles in control of %v: %v", s.stops, absNames, list)
}

func (s *abs) hear(f *can.Frame, now time.Time) { s.listen(f, now) }

// step is one cycle of 5 ms.
func (s *abs) step(t, dt float64) []can.Frame {
	s.control(t, dt)
	return []can.Frame{
		valves(idAbsFront, s.wheels[:2], s.needed(), s.count),
		valves(idAbsRear, s.wheels[2:], s.needed(), s.count),
	}
}

// needed says that the unit holds a wheel.
func (s *abs) needed() bool {
	return slices.ContainsFunc(s.wheels[:], func(w absWheel) bool { return w.active })
}

// control sets the valves for the next dt, s.
func (s *abs) control(t, dt float64) {
	braking := s.demand > s.tune.pedal
	s.refer(braking)
	s.tryOut(braking)
	var wish [4]float64 // bar/s
	for i := range s.wheels {
		wish[i] = s.wish(i, braking)
	}
	s.even(wish[:2], 0, dt)
	s.even(wish[2:], 2, dt)
	for i := range s.wheels {
		w := &s.wheels[i]
		if w.active && (!braking || s.car < s.tune.crawl || w.bar > s.demand-1 && wish[i] > 0) {
			w.active = false
		}
		w.set(wish[i], s.demand, dt)
	}

	s.track(t, s.car, s.needed(), !braking || s.car < s.tune.crawl)
}

// refer reckons the speed of the car. As long as no wheel is held the fastest one has it,
// unless it slows down as no car does, and marks tell how fast it falls.
func (s *abs) refer(braking bool) {
	passed := s.values.now - s.at
	s.at = s.values.now
	rolls := !braking || !s.needed()
	if rolls {
		s.fall, s.told, s.released, s.tried, s.rest = absMost, false, 0, s.at, 0
	}
	if s.car = max(s.fastest(), s.car-s.fall*passed); !braking {
		s.car = s.fastest()
	}
	if now := (known{s.at, s.car}); rolls && now.at-s.rolled[1].at > absKeep {
		s.rolled = [2]known{s.rolled[1], now}
	}
	if before := s.rolled[0]; rolls {
		s.slows = min(max((before.v-s.car)/(s.at-before.at+brakeCycle.Seconds()), 0), absMost)
	}
}

// tryOut lets a rear wheel go until it rolls, and takes the speed of the car from it.
func (s *abs) tryOut(braking bool) {
	if !braking || !s.needed() {
		s.released = 0
		return
	}

	if s.released == 0 {
		if s.at-s.tried > s.rest {
			s.side = 5 - s.side
			if other := 5 - s.side; s.wheels[other].bar < s.wheels[s.side].bar/2 {
				s.side = other
			}
			s.released, s.gains, s.tried = s.side, false, s.at
			s.wheels[s.released].active = true
		}

		return
	}

	more := s.wheel[s.released].rate + s.slows
	s.gains = s.gains || more > absGains
	if s.at-s.tried > absLong || s.gains && more < absRolls {
		s.learn(known{s.at, s.wheel[s.released].v})
	}
}

// learn takes the speed of the car from a wheel that rolls, and from the second one on how
// fast it slows down.
func (s *abs) learn(now known) {
	s.car = max(now.v, s.fastest())
	s.rest = min(max(absTry, absRest*(s.at-s.tried)), absSeldom)
	if before := s.rolled[1]; s.told {
		s.fall = min(max((before.v-now.v)/(now.at-before.at), 0.3), absMost)
		s.slows = s.fall
	} else {
		s.told, s.rest = true, absSoon
	}

	s.rolled[1] = now
	s.released, s.tried = 0, s.at
}

// wish is the rate, bar/s, at which the pressure of wheel i should change. It begins to
// hold a wheel that is about to leave the slip that is wanted.
func (s *abs) wish(i int, braking bool) float64 {
	w, want := &s.wheel[i], s.tune.slip*s.car+s.tune.margin
	slip, faster := s.car-w.v, -s.slows-w.rate // m/s and m/s2
	if braking && s.car > s.tune.crawl && slip+s.tune.ahead*faster > want {
		s.wheels[i].active = true
	}
	gain := 1.0
	if i >= 2 {
		gain = s.tune.rearGain
	}
	rate := gain * (s.tune.follow*(want-slip) - s.tune.damp*(s.tune.slip*s.slows+faster))
	return min(max(rate, -s.tune.drop), s.tune.step)
}

// even lets the brakes of an axle, from wheel first on, differ slowly more and more, so that
// the driver can steer against it: what the worse wheel bears, and a little more. The rear
// ones are held together; the one that is let go tells nothing of what it bears.
func (s *abs) even(wish []float64, first int, dt float64) {
	pair, spread := s.wheels[first:first+2], &s.spread[first/2]
	if !pair[0].active && !pair[1].active {
		*spread = 0
		return
	}

	if first == 2 {
		pair[0].active, pair[1].active = true, true
	}
	if s.released != 0 && first == 2 {
		let := s.released - 2
		if wish[let] = 0; !s.gains {
			wish[let] = -s.tune.drop
		}
		wish[1-let] = min(wish[1-let], 0)
		return
	}

	*spread = min(*spread+absSpread[first/2]*dt, math.Abs(pair[0].bar-pair[1].bar)+absApart)
	worse := 0
	if wish[1] < wish[0] {
		worse = 1
	}
	better := 1 - worse
	wish[better] = min(wish[better], max(wish[worse], 0)+(pair[worse].bar+*spread-pair[better].bar)/absEven)
}

// set reckons the pressure over the dt that has passed with the commands as they were, and
// turns the rate that is wanted into new ones.
func (w *absWheel) set(wish, pedal, dt float64) {
	if in, out := w.rates(pedal); w.inlet > 0 || w.outlet > 0 {
		w.bar = max(0, w.bar+((1-w.inlet)*in-w.outlet*out)*dt)
	} else {
		w.bar += min(pedal-w.bar, in*dt)
	}

	in, out := w.rates(pedal)
	switch {
	case !w.active:
		w.inlet, w.outlet = 0, 0
		return
	case wish > 0:
		w.inlet, w.outlet = 1-min(1, wish/in), 0
	default:
		w.inlet, w.outlet = 1, min(1, -wish/out)
	}

	w.cycles++
}

// rates are those of the pressure with the inlet and with the outlet open, bar/s.
func (w *absWheel) rates(pedal float64) (in, out float64) {
	return absBuild * math.Sqrt(max(pedal-w.bar, 0.5)), absDump * math.Sqrt(max(w.bar, 0.5))
}

// valves packs the commands of two wheels: inlet and outlet of each in 10 bits from bit 0
// on, the pump in bit 40, whether the unit holds the wheel in bits 41 and 42, the counter
// in bits 60 to 63.
func valves(id uint32, pair []absWheel, pump bool, counter uint8) can.Frame {
	var g group
	for i, w := range pair {
		g.raw(20*i, 10, uint64(math.RoundToEven(w.inlet/absShare)))
		g.raw(20*i+10, 10, uint64(math.RoundToEven(w.outlet/absShare)))
		g.flag(41+i, w.active)
	}

	g.flag(40, pump)
	g.raw(60, 4, uint64(counter))
	return g.frame(id)
}
