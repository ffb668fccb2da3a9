package brakes

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Identifiers of the frames, as in abs.dbc.
const (
	idAbsFront    = 0x120
	idAbsRear     = 0x121
	idWheelSpeeds = 0x1A0
	idChassis     = 0x1A1
	idPulsesFront = 0x1A3
)

// absWiring describes the frames and sensors of the car.
var absWiring = brakeWiring{idWheelSpeeds, idChassis, idPulsesFront, "wheels", absRadius, 48, 2, absBar}

const (
	absRadius = 0.3   // wheel radius, m
	wheelBit  = 0.01  // wheel speed, rad/s per bit, 15 bits signed
	absBar    = 0.1   // master pressure, bar per bit, 12 bits
	absShare  = 0.001 // valve command per bit, 10 bits
	absBuild  = 110.0 // pressure rate through the open inlet at a difference of 1 bar, bar/s
	absDump   = 150.0 // pressure rate through the open outlet at 1 bar, bar/s

	absMaxDecel   = 12.0 // largest deceleration of a car, m/s2
	absSampleTime = 0.1  // interval of speed samples while all wheels roll, s

	absMinPause    = 0.5  // shortest pause between two releases of a rear wheel, s
	absPauseFactor = 4.0  // pause over the length of the last release
	absMaxPause    = 1.0  // longest pause, s
	absFirstPause  = 0.25 // pause after the first release, s
	absMaxRelease  = 0.25 // longest release, s
	absSpinUp      = 10.0 // acceleration relative to the car of a wheel that spins up, m/s2
	absRolling     = 3.0  // relative acceleration below which a spun-up wheel rolls again, m/s2

	absBalanceTime   = 0.05 // time constant of balancing the brakes of an axle, s
	absMinDifference = 10.0 // pressure difference always allowed between the brakes of an axle, bar
)

// absTuning holds the parameters of the unit.
type absTuning struct {
	slip     float64 // target slip, share of the speed of the car
	margin   float64 // target slip speed at rest, m/s, added to slip
	ahead    float64 // prediction time for the start of control, s
	follow   float64 // gain of the front brakes, bar/s per m/s of slip speed below the target
	damp     float64 // damping, bar per m/s: pressure rate per rate of the slip speed
	rearGain float64 // gain of the rear brakes over the front: a rear brake has a third of the torque
	step     float64 // largest rate of pressure increase, bar/s
	drop     float64 // largest rate of pressure decrease, bar/s
	pedal    float64 // master pressure above which the driver brakes, bar
	crawl    float64 // speed below which the wheels may lock, m/s
}

// absSpread is the rate at which the allowed pressure difference of an axle grows, front and rear,
// bar/s.
var absSpread = [2]float64{200, 50}

// absNames are the wheels in the order of the frames.
var absNames = [4]string{"FL", "FR", "RL", "RR"}

// absWheel is the state of the valves of a wheel.
type absWheel struct {
	bar           float64 // estimated caliper pressure, bar
	active        bool    // the unit controls the slip
	cycles        int     // cycles in control
	inlet, outlet float64 // valve commands, 0 to 1; the inlet is closed at 1
}

// abs is the anti-lock control unit of a car. It sleeps until it receives WheelSpeeds (0x1A0). From
// then on it sends the valve commands (0x120, 0x121) every 5 ms. After a second without WheelSpeeds
// it sleeps again. It measures the wheel speeds and the pressure of the master cylinder; it has no
// sensors for acceleration and caliper pressure.
//
// While the driver brakes, the unit controls the slip of each wheel that exceeds its target, by the
// rate of its brake pressure. The reference speed falls with the last measured deceleration, and is
// never below the fastest wheel.
//
// When all wheels slip, no wheel shows the speed of the car. The unit then briefly releases one
// rear wheel at a time as a speed reference: the wheel spins up until it rolls.
//
// Each front wheel has its own control. The rear wheels share the pressure of the one with less
// grip. On a road with different grip left and right, the allowed pressure difference of an axle
// grows slowly, so that the driver can steer against it.
type abs struct {
	brake
	tune   absTuning
	wheels [4]absWheel
	spread [2]float64 // allowed pressure difference of the brakes, front and rear axle, bar

	car      float64   // reference speed, m/s
	decel    float64   // measured deceleration, m/s2
	maxDecel float64   // fall of the reference speed, m/s2
	samples  [2]sample // speeds at times when a wheel rolled, the latest last

	released     int     // released rear wheel, 2 or 3; 0: none
	lastReleased int     // rear wheel released last, 2 or 3
	lastTry      float64 // time of the last release, s
	pause        float64 // pause until the next release, s
	speedKnown   bool    // a release has shown the speed in this stop
	spinsUp      bool    // the released wheel has spun up
}

// sample is a known speed of the car.
type sample struct{ at, v float64 } // time, s, and speed, m/s

func newAbs(s *unit.Base) unit.Law {
	a := &abs{brake: newBrake(s, &absWiring), lastReleased: 2, tune: absTuning{
		slip: 0.12, margin: 0.05, ahead: 0.02, follow: 80, damp: 8, rearGain: 3,
		step: 600, drop: 1200, pedal: 5, crawl: 1.5,
	}}
	a.startDiagnosis(absNames, "WLS00000000000015")
	return a
}

func (s *abs) Parameters() []unit.Parameter {
	t := &s.tune
	return []unit.Parameter{
		unit.NewParameter("slip", "", 0, 1, &t.slip),
		unit.NewParameter("margin", "m/s", 0, 10, &t.margin),
		unit.NewParameter("ahead", "s", 0, 1, &t.ahead),
		unit.NewParameter("follow", "bar/s/(m/s)", 0, 1e4, &t.follow),
		unit.NewParameter("damp", "bar/(m/s)", 0, 1e3, &t.damp),
		unit.NewParameter("rear_gain", "", 0, 100, &t.rearGain),
		unit.NewParameter("step", "bar/s", 1, 1e5, &t.step),
		unit.NewParameter("drop", "bar/s", 1, 1e5, &t.drop),
		unit.NewParameter("pedal", "bar", 0, 200, &t.pedal),
		unit.NewParameter("crawl", "m/s", 0, 100, &t.crawl),
	}
}

func (s *abs) Summary() string {
	var list [4]int
	for i, w := range s.wheels {
		list[i] = w.cycles
	}
	return fmt.Sprintf("; %d stops, cycles in control of %v: %v", s.stops, absNames, list) + s.StoredCodes()
}

func (s *abs) Receive(f *can.Frame, now time.Time) { s.receiveFrame(f, now) }

// step runs one cycle of 5 ms.
func (s *abs) Step(t, dt float64) []can.Frame {
	s.checkInputs(t, dt, s.demand > s.tune.pedal)
	s.control(t, dt)
	if s.Server.Silent(diagnosis.NormalMessages) {
		return nil
	}
	return []can.Frame{
		valves(idAbsFront, s.wheels[:2], s.isActive(), s.Counter),
		valves(idAbsRear, s.wheels[2:], s.isActive(), s.Counter),
	}
}

// isActive reports whether the unit controls a wheel.
func (s *abs) isActive() bool {
	return slices.ContainsFunc(s.wheels[:], func(w absWheel) bool { return w.active })
}

// control sets the valves for the next dt, s.
func (s *abs) control(t, dt float64) {
	braking := s.demand > s.tune.pedal
	s.estimateSpeed(braking)
	s.releaseRearWheel(braking)
	var rate [4]float64 // wanted pressure rates, bar/s
	for i := range s.wheels {
		rate[i] = s.pressureRate(i, braking)
	}
	s.balanceAxle(rate[:2], 0, dt)
	s.balanceAxle(rate[2:], 2, dt)
	for i := range s.wheels {
		w := &s.wheels[i]
		if w.active && (!braking || s.car < s.tune.crawl || w.bar > s.demand-1 && rate[i] > 0) {
			w.active = false
		}
		w.setValves(rate[i], s.demand, dt)
	}

	s.trackStops(t, s.car, s.isActive(), !braking || s.car < s.tune.crawl)
}

// estimateSpeed sets the reference speed of the car. While no wheel is in control, it is the speed of
// the fastest wheel, limited to absMaxDecel, and the samples give the deceleration.
func (s *abs) estimateSpeed(braking bool) {
	passed := s.values.now - s.at
	s.at = s.values.now
	rolls := !braking || !s.isActive()
	if rolls {
		s.maxDecel, s.speedKnown, s.released, s.lastTry, s.pause = absMaxDecel, false, 0, s.at, 0
	}
	if s.car = max(s.fastest(), s.car-s.maxDecel*passed); !braking {
		s.car = s.fastest()
	}
	if now := (sample{s.at, s.car}); rolls && now.at-s.samples[1].at > absSampleTime {
		s.samples = [2]sample{s.samples[1], now}
	}
	if before := s.samples[0]; rolls {
		s.decel = min(max((before.v-s.car)/(s.at-before.at+brakeCycle.Seconds()), 0), absMaxDecel)
	}
}

// releaseRearWheel releases a rear wheel until it rolls, as a speed reference.
func (s *abs) releaseRearWheel(braking bool) {
	if !braking || !s.isActive() {
		s.released = 0
		return
	}

	if s.released == 0 {
		if s.at-s.lastTry > s.pause {
			s.lastReleased = 5 - s.lastReleased
			if other := 5 - s.lastReleased; s.wheels[other].bar < s.wheels[s.lastReleased].bar/2 {
				s.lastReleased = other
			}
			s.released, s.spinsUp, s.lastTry = s.lastReleased, false, s.at
			s.wheels[s.released].active = true
		}

		return
	}

	accel := s.wheel[s.released].rate + s.decel // relative to the car, m/s2
	s.spinsUp = s.spinsUp || accel > absSpinUp
	if s.at-s.lastTry > absMaxRelease || s.spinsUp && accel < absRolling {
		s.updateSpeed(sample{s.at, s.wheel[s.released].v})
	}
}

// updateSpeed sets the speed of the car from a wheel that rolls; from the second release of a stop
// on, also the deceleration.
func (s *abs) updateSpeed(now sample) {
	s.car = max(now.v, s.fastest())
	s.pause = min(max(absMinPause, absPauseFactor*(s.at-s.lastTry)), absMaxPause)
	if before := s.samples[1]; s.speedKnown {
		s.maxDecel = min(max((before.v-now.v)/(now.at-before.at), 0.3), absMaxDecel)
		s.decel = s.maxDecel
	} else {
		s.speedKnown, s.pause = true, absFirstPause
	}

	s.samples[1] = now
	s.released, s.lastTry = 0, s.at
}

// pressureRate returns the wanted pressure rate of wheel i, bar/s. It starts the control of a wheel
// that is about to exceed its target slip.
func (s *abs) pressureRate(i int, braking bool) float64 {
	w, want := &s.wheel[i], s.tune.slip*s.car+s.tune.margin
	slip, faster := s.car-w.v, -s.decel-w.rate // m/s and m/s2
	if braking && s.car > s.tune.crawl && slip+s.tune.ahead*faster > want {
		s.wheels[i].active = true
	}
	gain := 1.0
	if i >= 2 {
		gain = s.tune.rearGain
	}
	rate := gain * (s.tune.follow*(want-slip) - s.tune.damp*(s.tune.slip*s.decel+faster))
	return min(max(rate, -s.tune.drop), s.tune.step)
}

// balanceAxle limits the pressure difference of the brakes of an axle, from wheel first on: the wheel
// with more grip gets the pressure of the other one and a slowly growing difference. The rear wheels
// enter control together. While a rear wheel is released, the other one gets no more pressure.
func (s *abs) balanceAxle(rate []float64, first int, dt float64) {
	pair, spread := s.wheels[first:first+2], &s.spread[first/2]
	if !pair[0].active && !pair[1].active {
		*spread = 0
		return
	}

	if first == 2 {
		pair[0].active, pair[1].active = true, true
	}
	if s.released != 0 && first == 2 {
		released := s.released - 2
		if rate[released] = 0; !s.spinsUp {
			rate[released] = -s.tune.drop
		}
		rate[1-released] = min(rate[1-released], 0)
		return
	}

	*spread = min(*spread+absSpread[first/2]*dt, math.Abs(pair[0].bar-pair[1].bar)+absMinDifference)
	worse := 0
	if rate[1] < rate[0] {
		worse = 1
	}
	better := 1 - worse
	rate[better] = min(rate[better], max(rate[worse], 0)+(pair[worse].bar+*spread-pair[better].bar)/absBalanceTime)
}

// setValves integrates the estimated pressure over the last dt, s, and sets the commands for the
// wanted pressure rate, bar/s; pedal is the master pressure, bar.
func (w *absWheel) setValves(rate, pedal, dt float64) {
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
	case rate > 0:
		w.inlet, w.outlet = 1-min(1, rate/in), 0
	default:
		w.inlet, w.outlet = 1, min(1, -rate/out)
	}

	w.cycles++
}

// rates returns the pressure rates with the inlet open and with the outlet open, bar/s.
func (w *absWheel) rates(pedal float64) (in, out float64) {
	return absBuild * math.Sqrt(max(pedal-w.bar, 0.5)), absDump * math.Sqrt(max(w.bar, 0.5))
}

// valves packs the commands of two wheels: inlet and outlet of each in 10 bits from bit 0
// on, the pump in bit 40, whether the wheel is in control in bits 41 and 42, the counter in bits
// 60 to 63.
func valves(id uint32, pair []absWheel, pump bool, counter uint8) can.Frame {
	var g unit.Payload
	for i, w := range pair {
		g.SetBits(20*i, 10, uint64(math.RoundToEven(w.inlet/absShare)))
		g.SetBits(20*i+10, 10, uint64(math.RoundToEven(w.outlet/absShare)))
		g.SetBit(41+i, w.active)
	}

	g.SetBit(40, pump)
	g.SetBits(60, 4, uint64(counter))
	return g.Frame(id)
}
