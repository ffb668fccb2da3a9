package ecu

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"
)

// Identifiers of the frames, as in wsp.dbc.
const (
	idValves     = 0x128
	idAxleSpeeds = 0x1A8
	idDemand     = 0x1A9
	idBogie1     = 0x1AB
)

// wspWiring is that of the rail vehicle.
var wspWiring = brakeWiring{idAxleSpeeds, idDemand, idBogie1, "axles", wspRadius, 80, 4, wspBar}

const (
	wspRadius = 0.46 // m, of the wheels
	wspBar    = 0.01 // bar per bit of the demand, 12 bits
	wspBrakes = 0.3  // bar, above which there is braking
	wspSlot   = 4    // cycles that a valve stays as it is
	wspCoasts = 30   // cycles after which a vented axle that keeps its speed rolls
	wspPast   = 30   // cycles that it takes at most to see that an axle slides
)

// wspTuning is what can be set.
type wspTuning struct {
	slip   float64 // of the speed of the train, beyond which an axle slides
	margin float64 // m/s, more than that
	fall   float64 // m/s2, by which a wheel on the rail does not slow down
	train  float64 // m/s2, by which the train does not
	gains  float64 // m/s2, from which on an axle picks up speed
	crawl  float64 // m/s, below which the wheels may lock
}

// What the valves of an axle do.
const (
	wspFill = iota // the cylinder follows the demand
	wspHold
	wspVent
)

// wspAxle is what the unit knows of an axle and does with its valves.
type wspAxle struct {
	*sensor
	active bool // the unit is at its brake
	valve  int
	since  int     // cycles, since when the valve is so
	steady int     // cycles, since when it has been vented and kept its speed
	rolls  int     // cycles, since when it rolls again
	pulses float64 // of filling that are owed
	vents  int     // how often it was let go
}

// wsp is the wheel slide protection of a rail vehicle with four axles. It sleeps until it
// hears AxleSpeeds (0x1A8); from then on it sends the commands of the valves (0x128) every
// 5 ms. While the brake asks for pressure it takes the speed of the fastest axle for that
// of the train, which falls no faster than a train can; an axle that lags behind it, or
// slows down faster than a wheel that rolls, is vented until it picks up speed, held until
// it rolls, and filled again in pulses. All axles may slide at once and slow down as a
// train would: so each axle that has come to roll again tells how fast the train slows
// down on this rail, and the speed of the train falls little faster from then on; one that
// is vented and yet gains no speed tells that it does. The unit has no sensor for pressures.
// After a second without AxleSpeeds it sleeps again.
type wsp struct {
	brake
	tune   wspTuning
	axles  [4]wspAxle
	train  float64              // m/s
	fall   float64              // m/s2, by which it falls at most
	knownT float64              // s, when an axle was last known to roll
	knownV float64              // m/s, its speed then
	past   [2 * wspPast]float64 // m/s, of the train in the cycles before
}

func newWsp(base *session) law {
	s := &wsp{
		brake: newBrake(base, &wspWiring),
		tune:  wspTuning{slip: 0.02, margin: 0.3, fall: 3.5, train: 2.6, gains: 0.5, crawl: 2},
	}
	for i := range s.axles {
		s.axles[i].sensor = &s.wheel[i]
	}
	return s
}

func (s *wsp) parameters() []Parameter {
	t := &s.tune
	return []Parameter{
		{"slip", "", 0, 1, &t.slip},
		{"margin", "m/s", 0, 10, &t.margin},
		{"fall", "m/s2", 0.1, 100, &t.fall},
		{"train", "m/s2", 0.5, 100, &t.train},
		{"gains", "m/s2", 0, 100, &t.gains},
		{"crawl", "m/s", 0, 100, &t.crawl},
	}
}

func (s *wsp) result() string {
	var list [4]int
	for i, a := range s.axles {
		list[i] = a.vents
	}
	return fmt.Sprintf("; %d stops, axles 1 to 4 let go %v times", s.stops, list)
}

// hear takes a frame from the bus.
func (s *wsp) hear(f *can.Frame, now time.Time) {
	if !s.listen(f, now) {
		return
	}
	s.train = s.fastest()
	s.knownT, s.knownV, s.fall = 0, s.train, s.tune.train
	for i := range s.past {
		s.past[i] = s.train
	}
}

// step is one cycle of 5 ms.
func (s *wsp) step(t, dt float64) []can.Frame {
	s.control(t, dt)
	return []can.Frame{s.valves()}
}

// control sets the valves for the next dt, s.
func (s *wsp) control(t, dt float64) {
	braking := s.demand > wspBrakes
	if s.train = max(s.fastest(), s.train-s.fall*dt); !braking {
		s.train, s.fall = s.fastest(), s.tune.train
		s.knownT, s.knownV = t, s.train
	}

	needed := false
	for i := range s.axles {
		a := &s.axles[i]
		if !braking || s.train < s.tune.crawl {
			a.active, a.valve, a.steady = false, wspFill, 0
			continue
		}

		a.turn(&s.tune, s.train)
		s.learn(a, t)
		needed = needed || a.active
	}

	oldest := &s.past[s.counts.Cycles%(2*wspPast)]
	if s.track(t, s.train, needed, !braking || s.train < s.tune.crawl) {
		s.slows((*oldest - s.past[(s.counts.Cycles+wspPast)%(2*wspPast)]) / (wspPast * brakeCycle.Seconds()))
	}
	*oldest = s.train
}

// slows lets the speed of the train fall little faster than by what was seen, m/s2.
func (s *wsp) slows(by float64) { s.fall = min(max(0.3+1.3*by, 0.5), s.tune.train) }

// learn takes from an axle how fast the train slows down.
func (s *wsp) learn(a *wspAxle, t float64) {
	if a.valve == wspVent && math.Abs(a.rate) < s.tune.gains {
		a.steady++
	} else {
		a.steady = 0
	}

	switch {
	case a.steady >= wspCoasts:
		s.train, s.fall = s.fastest(), min(2*s.fall, s.tune.train)
		a.steady = 0
	case a.active && a.rolls == wspSlot && t-s.knownT > 1:
		s.slows((s.knownV - a.v) / (t - s.knownT))
		s.knownT, s.knownV = t, a.v
	}
}

// turn is a cycle of an axle under a train at that speed, m/s.
func (a *wspAxle) turn(tune *wspTuning, train float64) {
	slip, most := train-a.v, tune.margin+tune.slip*train
	slides := slip > most || a.rate < -tune.fall && slip > 0.1
	if a.since++; a.since < wspSlot && !(slides && a.valve != wspVent) {
		return
	}
	var want int
	switch {
	case !a.active && !slides:
		return
	case a.rate > tune.gains:
		want, a.rolls = wspHold, 0
	case slides:
		want, a.rolls, a.pulses = wspVent, 0, 0
	default:
		want = a.refill()
	}

	if want == wspVent && a.valve != wspVent {
		a.vents++
	}
	if a.active = true; a.valve != want || want == wspFill {
		a.valve, a.since = want, 0
	}
	if a.rolls > 400 { // as open as without the unit
		a.active, a.valve = false, wspFill
	}
}

// refill fills in pulses that come the closer the longer the axle rolls.
func (a *wspAxle) refill() int {
	a.rolls += wspSlot
	if a.pulses += min(1, 0.1+0.003*float64(a.rolls)); a.pulses < 1 {
		return wspHold
	}
	a.pulses--
	return wspFill
}

// valves packs the commands of four axles: hold and vent of each in bits 0 to 7, whether
// the unit is at its brake in bits 8 to 11, the counter in bits 60 to 63. A cylinder that
// is vented is closed off as well.
func (s *wsp) valves() can.Frame {
	var g group
	for i, a := range s.axles {
		g.flag(2*i, a.valve != wspFill)
		g.flag(2*i+1, a.valve == wspVent)
		g.flag(8+i, a.active)
	}

	g.raw(60, 4, uint64(s.count))
	return g.frame(idValves)
}
