package brakes

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Identifiers of the frames, as in wsp.dbc.
const (
	idValves     = 0x128
	idAxleSpeeds = 0x1A8
	idDemand     = 0x1A9
	idBogie1     = 0x1AB
)

// wspWiring describes the frames and sensors of the rail vehicle.
var wspWiring = brakeWiring{idAxleSpeeds, idDemand, idBogie1, "axles", wspRadius, 80, 4, wspBar}

const (
	wspRadius      = 0.46 // wheel radius, m
	wspBar         = 0.01 // demanded pressure, bar per bit, 12 bits
	wspMinPressure = 0.3  // demanded pressure above which the train brakes, bar
	wspValveCycles = 4    // shortest time between two changes of a valve, cycles
	wspMaxSteady   = 30   // cycles after which a vented axle of constant speed counts as rolling
	wspHistory     = 30   // longest time to detect a sliding axle, cycles
)

// wspTuning holds the parameters of the unit.
type wspTuning struct {
	slip   float64 // slip beyond which an axle slides, share of the speed of the train
	margin float64 // slip speed at rest, m/s, added to slip
	fall   float64 // largest deceleration of a rolling wheel, m/s2
	train  float64 // largest deceleration of the train, m/s2
	gains  float64 // acceleration from which on an axle spins up, m/s2
	crawl  float64 // speed below which the wheels may lock, m/s
}

// Commands to the valves of an axle.
const (
	wspFill = iota // the cylinder follows the demanded pressure
	wspHold
	wspVent
)

// wspAxle is the state of an axle and of its valves.
type wspAxle struct {
	*sensor
	active   bool    // the unit controls its brake
	valve    int     // valve command
	since    int     // time since the last change of the valve, cycles
	steady   int     // time vented at constant speed, cycles
	rolls    int     // time since the axle rolls again, cycles
	pulses   float64 // filling pulses due
	releases int     // number of releases
}

// wsp is the wheel slide protection of a rail vehicle with four axles. It sleeps until it receives
// AxleSpeeds (0x1A8). From then on it sends the valve commands (0x128) every 5 ms. After a second
// without AxleSpeeds it sleeps again. It has no pressure sensors.
//
// While the brake demands pressure, the reference speed of the train is the speed of the fastest axle,
// and falls no faster than a train can. An axle slides if it is slower by the slip limit or slows down
// faster than a rolling wheel. The unit vents its cylinder until the axle spins up, holds the pressure
// until it rolls, and fills the cylinder again in pulses.
//
// All axles may slide at once with the deceleration of a train. Each axle that rolls again therefore
// gives the deceleration of the train on this rail, and limits the fall of the reference speed. An axle
// that is vented and keeps its speed shows that it rolls.
type wsp struct {
	brake
	tune     wspTuning
	axles    [4]wspAxle
	train    float64                 // reference speed of the train, m/s
	maxDecel float64                 // fall of the reference speed, m/s2
	knownT   float64                 // time at which an axle was last known to roll, s
	knownV   float64                 // its speed then, m/s
	past     [2 * wspHistory]float64 // reference speed in the previous cycles, m/s
}

func newWsp(base *unit.Base) unit.Law {
	s := &wsp{
		brake: newBrake(base, &wspWiring),
		tune:  wspTuning{slip: 0.02, margin: 0.3, fall: 3.5, train: 2.6, gains: 0.5, crawl: 2},
	}
	for i := range s.axles {
		s.axles[i].sensor = &s.wheel[i]
	}
	s.startDiagnosis([4]string{"axle 1", "axle 2", "axle 3", "axle 4"}, "WLS00000000000016")
	return s
}

func (s *wsp) Parameters() []unit.Parameter {
	t := &s.tune
	return []unit.Parameter{
		unit.NewParameter("slip", "", 0, 1, &t.slip),
		unit.NewParameter("margin", "m/s", 0, 10, &t.margin),
		unit.NewParameter("fall", "m/s2", 0.1, 100, &t.fall),
		unit.NewParameter("train", "m/s2", 0.5, 100, &t.train),
		unit.NewParameter("gains", "m/s2", 0, 100, &t.gains),
		unit.NewParameter("crawl", "m/s", 0, 100, &t.crawl),
	}
}

func (s *wsp) Summary() string {
	var list [4]int
	for i, a := range s.axles {
		list[i] = a.releases
	}
	return fmt.Sprintf("; %d stops, axles 1 to 4 released %v times", s.stops, list) + s.StoredCodes()
}

// receive handles a received frame.
func (s *wsp) Receive(f *can.Frame, now time.Time) {
	if !s.receiveFrame(f, now) {
		return
	}
	s.train = s.fastest()
	s.knownT, s.knownV, s.maxDecel = 0, s.train, s.tune.train
	for i := range s.past {
		s.past[i] = s.train
	}
}

// step runs one cycle of 5 ms.
func (s *wsp) Step(t, dt float64) []can.Frame {
	s.checkInputs(t, dt, s.demand > wspMinPressure)
	s.control(t, dt)
	if s.Server.Silent(diagnosis.NormalMessages) {
		return nil
	}
	return []can.Frame{s.valves()}
}

// control sets the valves for the next dt, s.
func (s *wsp) control(t, dt float64) {
	braking := s.demand > wspMinPressure
	if s.train = max(s.fastest(), s.train-s.maxDecel*dt); !braking {
		s.train, s.maxDecel = s.fastest(), s.tune.train
		s.knownT, s.knownV = t, s.train
	}

	needed := false
	for i := range s.axles {
		a := &s.axles[i]
		if !braking || s.train < s.tune.crawl {
			a.active, a.valve, a.steady = false, wspFill, 0
			continue
		}

		a.step(&s.tune, s.train)
		s.updateDecel(a, t)
		needed = needed || a.active
	}

	oldest := &s.past[s.Counts.Cycles%(2*wspHistory)]
	if s.trackStops(t, s.train, needed, !braking || s.train < s.tune.crawl) {
		s.setDecel((*oldest - s.past[(s.Counts.Cycles+wspHistory)%(2*wspHistory)]) / (wspHistory * brakeCycle.Seconds()))
	}
	*oldest = s.train
}

// setDecel limits the fall of the reference speed to a little more than a measured deceleration, m/s2.
func (s *wsp) setDecel(decel float64) { s.maxDecel = min(max(0.3+1.3*decel, 0.5), s.tune.train) }

// updateDecel measures the deceleration of the train with an axle that rolls.
func (s *wsp) updateDecel(a *wspAxle, t float64) {
	if a.valve == wspVent && math.Abs(a.rate) < s.tune.gains {
		a.steady++
	} else {
		a.steady = 0
	}

	switch {
	case a.steady >= wspMaxSteady:
		s.train, s.maxDecel = s.fastest(), min(2*s.maxDecel, s.tune.train)
		a.steady = 0
	case a.active && a.rolls == wspValveCycles && t-s.knownT > 1:
		s.setDecel((s.knownV - a.v) / (t - s.knownT))
		s.knownT, s.knownV = t, a.v
	}
}

// step runs one cycle of an axle; train is the reference speed, m/s.
func (a *wspAxle) step(tune *wspTuning, train float64) {
	slip, most := train-a.v, tune.margin+tune.slip*train
	slides := slip > most || a.rate < -tune.fall && slip > 0.1
	if a.since++; a.since < wspValveCycles && !(slides && a.valve != wspVent) {
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
		a.releases++
	}
	if a.active = true; a.valve != want || want == wspFill {
		a.valve, a.since = want, 0
	}
	if a.rolls > 400 { // filled as without the unit
		a.active, a.valve = false, wspFill
	}
}

// refill fills the cylinder in pulses, at shorter intervals the longer the axle rolls.
func (a *wspAxle) refill() int {
	a.rolls += wspValveCycles
	if a.pulses += min(1, 0.1+0.003*float64(a.rolls)); a.pulses < 1 {
		return wspHold
	}
	a.pulses--
	return wspFill
}

// valves packs the commands of four axles: hold and vent of each in bits 0 to 7, whether the unit
// controls its brake in bits 8 to 11, the counter in bits 60 to 63. A vented cylinder is also closed off
// from its supply.
func (s *wsp) valves() can.Frame {
	var g unit.Payload
	for i, a := range s.axles {
		g.SetBit(2*i, a.valve != wspFill)
		g.SetBit(2*i+1, a.valve == wspVent)
		g.SetBit(8+i, a.active)
	}

	g.SetBits(60, 4, uint64(s.Counter))
	return g.Frame(idValves)
}
