package brakes

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Identifiers of the frames, as in esc.dbc.
const (
	idEscFront  = 0x130
	idEscRear   = 0x131
	idEscPump   = 0x132
	idEscWheels = 0x1B0
	idEscMotion = 0x1B1
	idEscDriver = 0x1B2
)

// Scales of the frames.
const (
	escWheelBit = 0.05   // rad/s, 13 bits signed
	escYawBit   = 0.0005 // rad/s, 14 bits signed
	escAccelBit = 0.02   // m/s2, 12 bits signed
	escBar      = 0.1    // bar, 12 bits
	escSteerBit = 0.001  // rad of the steering wheel, 16 bits signed
	escShare    = 0.005  // valves, pump, throttle, 8 bits
)

// The car as the unit knows it.
const (
	escRadius = 0.3  // wheel radius, m
	escBase   = 2.7  // wheelbase, m
	escTrack  = 1.51 // m
	escRatio  = 16.0 // steering wheel over wheels
	gravity   = 9.81 // m/s2
)

// Limits of the unit.
const (
	escReferenceLag = 0.08 // time constant of the yaw reference, s
	escSlipLeak     = 1.0  // time constant with which the estimated side slip decays, 1/s
	escMinSpeed     = 4.0  // speed below which the yaw rate is not controlled, m/s
	escPressureTime = 0.03 // time constant of a demanded pressure, s
	escTransfer     = 0.07 // share of its load that a wheel gives to the outer one per lateral acceleration, s2/m
	escPumpRate     = 350  // pressure rate that the pump gives a caliper, bar/s
	escStands       = 0.15 // wheel speed below which the car stands, m/s
	escHoldGrade    = 0.3  // longitudinal acceleration at standstill from which the unit holds the car, m/s2
	escHoldRelease  = 0.4  // time in which the held pressure is let go, s
	escRecover      = 0.7  // rate at which the engine gets its torque back, 1/s
	escYawSlip      = 3.5  // slip of a wheel that yaw control brakes, over the target
	escTrust        = 1.0  // rate at which the speed follows the fastest wheel downwards, 1/s
	escSlowTrust    = 0.05 // the same while the slip of all wheels is controlled
	escGradeTime    = 0.3  // time constant with which the slope is learned, s
	escMostGrade    = 3.0  // m/s2
	escRolls        = 6.0  // difference of its acceleration and the car's up to which a wheel without brake rolls, m/s2
	escRollsTime    = 0.06 // time for which it must, s
	escFirstProbe   = 0.3  // time with slip of all wheels until a rear wheel is released, s
	escNextProbe    = 1.2  // time until the next one is, s
	escLongestProbe = 0.45 // time after which a wheel that does not roll is braked again, s
	escProbeSpeed   = 4.0  // speed from which wheels are released, m/s
	escProbeYaw     = 0.02 // yaw-rate error from which the released wheel is the one that lessens it, rad/s
	escSameSpeed    = 0.1  // difference up to which it is as fast as the fastest wheel, m/s
	escStillTime    = 0.3  // time without a turning wheel after which a slow car stands, s
	escStillSpeed   = 3.0  // m/s
	escTurning      = 0.04 // yaw rate to the side with more grip from which the pressure difference falls, rad/s
	escMostSteer    = 1.5  // countersteer beyond which it grows no more, rad
	escBegin        = 0.05 // time from the wake-up in which the car has the speed of its rear wheels, s
	escSmooth       = 2.5  // cycles over which the acceleration of a wheel is smoothed
	escSideReserve  = 2.5  // lateral acceleration by which the reference may exceed the measured one, m/s2
)

// escTuning holds the parameters of the unit.
type escTuning struct {
	stiffness float64 // understeer gradient of the reference, s2/m
	dead      float64 // yaw-rate error that is allowed, rad/s
	yawGain   float64 // pressure per yaw-rate error, bar/(rad/s)
	sideGain  float64 // pressure per side slip beyond sideDead, bar/rad
	sideDead  float64 // allowed side slip, rad
	slip      float64 // target slip, share of the speed
	margin    float64 // slip speed added to the target, m/s
	traction  float64 // slip of the driven wheels from which the engine is reduced
	hold      float64 // longest time of the hill hold after the pedal, s
	pedal     float64 // pressure from which the driver brakes, bar
	enabled   float64 // 0: anti-lock control only
}

// esc is the control unit of a car for anti-lock, yaw-rate and traction control and hill hold. It sleeps until it
// receives EscMotion (0x1B1). From then on it sends the commands of twelve valves, of the pump and of the engine
// (0x130 to 0x132) every 5 ms. AUTOSAR's E2E profile 1A protects all frames. Wheel speeds and valves may be by wire
// (escwire.go): then it sends only the share of the engine, in EscPump (0x132).
//
// The reference of the yaw rate is that of the linear bicycle,
//
//	r = v·delta/(L + K·v²)
//
// limited by the lateral acceleration that the road has shown. Where the car turns more, the unit brakes the front
// wheel outside of the turn; where it turns less, the rear wheel inside. The slip of each wheel is limited at the same
// time. On a road with different grip left and right the wheels of an axle begin at the pressure of the one with less
// grip. The difference grows, slowly at the rear, as long as the car does not turn to the side with more grip.
type esc struct {
	*unit.Base
	escTrouble
	tune   escTuning
	inputs [3]unit.Input // EscWheels, EscMotion, EscDriver
	pins   *escPins      // wheel speeds and valves by wire; nil: all goes over CAN

	speed    [4]float64 // wheels at the rim, m/s
	rate     [4]float64 // their accelerations, m/s2
	still    float64    // time since a wheel turned, s
	yaw      float64    // yaw rate to the left, rad/s
	ax, ay   float64    // accelerations to the front and left, m/s2
	master   float64    // pressure, bar
	steer    float64    // steering wheel to the left, rad
	throttle float64    // 0 to 1

	v         float64    // speed of the car, m/s
	grade     float64    // what the sensor shows of the slope, m/s2; learned from wheels without brakes
	drift     float64    // error of v over that of the acceleration, s: the time since a wheel has shown the speed, less what wheels correct
	rolls     float64    // time for which a rear wheel rolls without its brake, s
	probe     int        // rear wheel released to show the speed, 2 or 3; 0: none
	probed    int        // the last one released
	probeDue  float64    // time until a wheel is released, or braked again, s
	reference float64    // yaw rate, rad/s
	side      float64    // estimated side slip, rad
	braked    [4]float64 // pressure that yaw control demands, bar
	slipping  [4]bool    // the unit limits the slip
	bar       [4]float64 // estimated caliper pressures
	inlet     [4]float64 // valve commands, 0 to 1
	outlet    [4]float64
	spread    [2]float64 // allowed pressure difference of the axles, bar
	active    [2]bool    // the pump builds pressure in the circuit
	spinBar   [2]float64 // pressure that brakes a spinning front wheel, bar
	spun      bool       // the pump does so
	share     float64    // of the driver's throttle
	held      float64    // pressure of the hill hold at the isolation valves, share
	since     float64    // time since the pedal was released in the hold, s
	counts3   [3]int     // cycles with slip, yaw and traction control
	wasActive bool
	begun     bool // the begin of the cycles is in the log
}

func newEsc(s *unit.Base) unit.Law {
	e := &esc{Base: s, share: 1, probed: 3, tune: escTuning{
		stiffness: 0.0016, dead: 0.05, yawGain: 700, sideGain: 1500, sideDead: 0.05, slip: 0.10, margin: 0.3,
		traction: 0.08, hold: 2, pedal: 4, enabled: 1}}
	for i := range e.inputs {
		e.inputs[i] = unit.Input{Lost: escFrameCodes[i][0], Invalid: escFrameCodes[i][1], Timeout: 50 * time.Millisecond}
	}
	e.startDiagnosis()
	return e
}

func (s *esc) Parameters() []unit.Parameter {
	t := &s.tune
	return []unit.Parameter{
		unit.NewParameter("enabled", "", 0, 1, &t.enabled),
		unit.NewParameter("understeer", "s2/m", 0, 0.1, &t.stiffness),
		unit.NewParameter("dead", "rad/s", 0, 1, &t.dead),
		unit.NewParameter("yaw_gain", "bar/(rad/s)", 0, 1e4, &t.yawGain),
		unit.NewParameter("side_gain", "bar/rad", 0, 1e5, &t.sideGain),
		unit.NewParameter("side_dead", "rad", 0, 1, &t.sideDead),
		unit.NewParameter("slip", "", 0, 1, &t.slip),
		unit.NewParameter("margin", "m/s", 0, 10, &t.margin),
		unit.NewParameter("traction", "", 0, 1, &t.traction),
		unit.NewParameter("hold", "s", 0, 60, &t.hold),
		unit.NewParameter("pedal", "bar", 0, 200, &t.pedal),
	}
}

func (s *esc) Summary() string {
	return fmt.Sprintf("; cycles with slip, yaw and traction control: %v", s.counts3) + s.StoredCodes()
}

// Receive handles a frame. A frame with a wrong checksum is not used.
func (s *esc) Receive(f *can.Frame, now time.Time) {
	if s.Server.Deaf(diagnosis.NormalMessages) || !s.CountFrame(f) {
		return
	}
	in := &s.inputs[f.ID-idEscWheels]
	missing, ok := in.Take(f, now)
	s.Counts.Lost += missing
	if !ok {
		s.Counts.Malformed++
		return
	}
	s.fresh[f.ID-idEscWheels] = true
	switch f.ID {
	case idEscWheels:
		for i := range s.speed {
			v := math.Abs(float64(unit.Signed(f, 12+13*i, 13))) * escWheelBit * escRadius
			s.rate[i] += ((v-s.speed[i])/(float64(1+missing)*brakeCycle.Seconds()) - s.rate[i]) / escSmooth
			s.speed[i] = v
		}
	case idEscMotion:
		if s.Wake(now) {
			s.BeginCycle(now)
			s.begun = false
		}
		s.yaw = float64(unit.Signed(f, 12, 14)) * escYawBit
		s.ax, s.ay = float64(unit.Signed(f, 26, 12))*escAccelBit, float64(unit.Signed(f, 38, 12))*escAccelBit
		s.master = float64(unit.Bits(f, 50, 12)) * escBar
	case idEscDriver:
		s.steer = float64(unit.Signed(f, 12, 16)) * escSteerBit
		s.throttle = float64(unit.Bits(f, 28, 8)) * escShare
	}
}

// Step runs one cycle of 5 ms. Without fresh motion or driver frames yaw control rests.
func (s *esc) Step(t, dt float64) []can.Frame {
	seen := s.tune.enabled > 0
	for i := 1; i < len(s.inputs); i++ {
		seen = seen && !s.inputs[i].Late(s.LastCycle)
	}
	if s.pins != nil {
		s.readPins()
	}
	if t < escBegin {
		s.begin(t)
	}
	trusted := s.checkInputs(t, dt)
	s.replaceSpeeds()
	s.estimate(dt)
	seen = seen && trusted
	s.controlYaw(dt, seen)
	s.controlSlip(dt)
	s.controlEngine(dt)
	s.holdHill(dt, seen)
	s.report(t)
	if s.Server.Silent(diagnosis.NormalMessages) {
		return nil
	}
	if s.pins != nil { // the valves are by wire, the share of the engine is not
		return []can.Frame{s.pumpFrame()}
	}
	return []can.Frame{s.valveFrame(idEscFront, 0), s.valveFrame(idEscRear, 2), s.pumpFrame()}
}

// begin takes the speed of the rear wheels as that of the car, until the accelerations of the wheels are known.
func (s *esc) begin(t float64) {
	s.v, s.rate, s.grade = (s.speed[2]+s.speed[3])/2, [4]float64{}, 0
	if t >= escBegin/2 && !s.begun {
		s.begun = true
		s.Logf("%.2f s: wheels at %.1f m/s", t, s.v)
	}
}

// replaceSpeeds gives a wheel without a known speed that of the car, and swapped wheels that of the slower one.
func (s *esc) replaceSpeeds() {
	for i, bad := range s.bad {
		if bad {
			s.speed[i], s.rate[i] = s.ground(i), s.ax-s.grade
		}
	}
	for axle, swapped := range s.swapped {
		if i := 2 * axle; swapped {
			slow := min(s.speed[i], s.speed[i+1])
			s.speed[i], s.speed[i+1] = slow, slow
		}
	}
}

// report logs the begin and the end of yaw control.
func (s *esc) report(t float64) {
	now := s.yawing()
	if now != s.wasActive {
		what := "ends"
		if now {
			what = "begins"
		}
		s.Logf("%.2f s: yaw control %s at %.1f m/s, yaw rate %.2f of %.2f rad/s, side slip %.2f rad", t, what, s.v, s.yaw, s.reference, s.side)
	}
	s.wasActive = now
}

// escFollows is the pressure of a wheel without a known speed over that of the other one, front and rear, at equal loads.
var escFollows = [2]float64{0.85, 0.5}

// escSpread is the rate at which the pressure difference of an axle grows, front and rear, bar/s.
var escSpread = [2]float64{70, 20}

// left is +1 for the wheels on the left side and -1 for those on the right.
var left = [4]float64{1, -1, 1, -1}

// ground returns the speed at which wheel i would roll, m/s.
func (s *esc) ground(i int) float64 { return max(s.v-left[i]*s.yaw*escTrack/2, 0) }

// centre returns the speed of the car as wheel i shows it, m/s: 0 where the speed of the wheel is not known.
func (s *esc) centre(i int) float64 {
	if s.bad[i] {
		return 0
	}
	return s.speed[i] + left[i]*s.yaw*escTrack/2
}

// estimate advances the speed of the car by its acceleration, and corrects it by the wheels: by those that are not driven
// while nothing brakes, otherwise by the fastest one. While the slip of all wheels is controlled, it counts little, unless
// a rear wheel rolls without its brake: with a wrong speed all brakes would stay released, or all wheels lock. A front
// wheel does not show the speed without its brake: the engine drags it.
func (s *esc) estimate(dt float64) {
	at, fastest, free := s.centre, 0.0, true
	for i := range s.speed {
		fastest = max(fastest, at(i))
		free = free && (s.bar[i] < 1 || s.spun)
	}
	v := s.v + (s.ax-s.grade)*dt
	s.drift += dt
	shown, trust := fastest, 0.0 // speed that the wheels show, m/s, and how much of it counts in this cycle
	switch rear := (at(2) + at(3)) / 2; {
	case free && s.master < s.tune.pedal:
		s.learn(min(dt/escGradeTime, 1) * (s.ax - (s.rate[2]+s.rate[3])/2 - s.grade))
		if s.bad[2] || s.bad[3] {
			rear = max(at(2), at(3))
		}
		if !s.bad[2] || !s.bad[3] {
			shown, trust = rear, min(20*dt, 1)
		}
	case s.allSlip() && s.rolls > escRollsTime: // it shows what the acceleration was wrong by
		s.learn((v - fastest) / max(s.drift, escGradeTime))
		trust, s.probe, s.probeDue = 1, 0, escNextProbe
	case fastest > v && s.probe == 0:
		if at(0) == fastest || at(1) == fastest { // a driven wheel may spin
			shown = min(fastest, max(at(2), at(3))+1)
		}
		if shown > v {
			trust = min(10*dt, 1)
		}
	case !s.allSlip():
		trust = escTrust * dt
	default: // no wheel shows the speed
		trust = escSlowTrust * dt
	}
	s.v = max(v+trust*(shown-v), 0)
	s.drift -= trust * s.drift
	if s.rolls += dt; !s.rearRolls(fastest) {
		s.rolls = 0
	}
	if fastest > 0.1 {
		s.still = 0
	} else if s.still += dt; s.still > escStillTime && s.v < escStillSpeed { // locked wheels of a fast car stay unnoticed
		s.v = 0
	}
}

// allSlip reports whether the unit limits the slip of all wheels.
func (s *esc) allSlip() bool { return s.slipping == [4]bool{true, true, true, true} }

// rearRolls reports whether the faster rear wheel rolls without its brake: no wheel is faster than it, m/s.
func (s *esc) rearRolls(fastest float64) bool {
	i := 2
	if s.centre(3) > s.centre(2) {
		i = 3
	}
	return s.bar[i] < 2 && math.Abs(s.rate[i]-s.ax+s.grade) < escRolls && s.centre(i) > escLocked*s.v && s.centre(i) > fastest-escSameSpeed
}

// learn corrects what the sensor shows of the slope, m/s2.
func (s *esc) learn(change float64) {
	s.grade = min(max(s.grade+change, -escMostGrade), escMostGrade)
}

// controlYaw sets the pressures that turn the car towards its reference.
func (s *esc) controlYaw(dt float64, seen bool) {
	wanted := s.steeredYaw()
	if most := min(math.Abs(s.ay)+escSideReserve, gravity) / max(s.v, 1); math.Abs(wanted) > most {
		wanted = math.Copysign(most, wanted)
	}
	s.reference += min(dt/escReferenceLag, 1) * (wanted - s.reference)
	if s.side -= dt * escSlipLeak * s.side; !s.wrongSide {
		s.side += dt * (s.ay/max(s.v, 1) - s.yaw)
	}
	s.braked = [4]float64{}
	s.active = [2]bool{}
	if !seen || s.v < escMinSpeed {
		if s.v < escMinSpeed {
			s.side = 0
		}
		return
	}
	excess := s.yaw - s.reference
	over := outside(excess, s.tune.dead) * s.tune.yawGain
	if slide := outside(-s.side, s.tune.sideDead) * s.tune.sideGain; slide*s.yaw > 0 { // the tail goes outwards
		over += slide
	}
	if over*s.yaw >= 0 || over*s.reference >= 0 && over*excess > 0 && math.Abs(s.yaw) > math.Abs(s.reference) {
		// It turns too much: the outer front wheel, right in a left turn, and a part at the rear.
		i := 1
		if over < 0 {
			i = 0
		}
		s.demand(i, math.Abs(over), 150)
		s.demand(i+2, 0.3*(math.Abs(over)-60), 40)
		return
	}
	// It turns too little: the inner rear wheel.
	i := 2
	if over > 0 {
		i = 3
	}
	s.demand(i, 0.5*math.Abs(over), 70)
}

// outside returns the part of x beyond a dead zone.
func outside(x, dead float64) float64 { return x - min(max(x, -dead), dead) }

// demand asks for a pressure at wheel i, at most most, bar, and lets the pump build it where the driver does not.
func (s *esc) demand(i int, bar, most float64) {
	if bar < 3 {
		return
	}
	s.braked[i] = max(s.braked[i], min(bar, most))
	if s.braked[i] > s.master {
		s.active[circuit(i)] = true
	}
}

// circuit returns the brake circuit of wheel i: 0 for front left and rear right.
func circuit(i int) int {
	if i == 0 || i == 3 {
		return 0
	}
	return 1
}

// controlSlip sets the inlet and outlet valves.
func (s *esc) controlSlip(dt float64) {
	s.brakeSpin(dt)
	braking := s.master > s.tune.pedal
	var rate [4]float64
	for i := range rate {
		rate[i] = s.slipRate(i, braking)
	}
	s.balance(rate[:2], 0, dt)
	if s.chooseProbe(dt); s.probe == 0 {
		s.balance(rate[2:], 2, dt)
	} else {
		rate[s.probe], rate[s.probe^1] = -1200, min(rate[s.probe^1], 0)
	}
	for i := range rate {
		if other := i ^ 1; s.bad[i] { // it follows the pressure of the other wheel of its axle, by their loads
			outer := -left[i] * min(max(escTransfer*s.ay, -0.6), 0.6)
			rate[i] = min(max((escFollows[i/2]*s.bar[other]*(1+outer)/(1-outer)-s.bar[i])/escPressureTime, -1200), 600)
			s.slipping[i] = s.slipping[other] || braking && outer < -0.1
		}
	}
	for i := range rate {
		pumped := s.active[circuit(i)]
		wanted := s.master
		if pumped {
			wanted = s.braked[i]
			if braking {
				wanted = max(wanted, s.master)
			}
		}
		if s.slipping[i] && (s.bar[i] > wanted-1 && rate[i] > 0 || s.v < 1.5 || wanted < 1) {
			s.slipping[i] = false
		}
		want := (wanted - s.bar[i]) / escPressureTime
		if s.slipping[i] {
			s.counts3[0]++
			want = min(want, rate[i])
		}
		s.setValves(i, want, pumped, dt)
	}
	if s.yawing() {
		s.counts3[1]++
	}
}

// chooseProbe releases a rear wheel now and then while all wheels slip. No other wheel shows the speed of the car then, and
// with the acceleration alone the wheels lock, or their brakes rest, on a road that begins to rise or to fall.
func (s *esc) chooseProbe(dt float64) {
	if !s.allSlip() || s.master <= s.tune.pedal || s.active[0] || s.active[1] || s.bad[2] && s.bad[3] || s.swapped[1] || s.v < escProbeSpeed {
		s.probe, s.probeDue = 0, escFirstProbe
		return
	}
	switch s.probeDue -= dt; {
	case s.probeDue > 0:
	case s.probe != 0:
		s.probe, s.probeDue = 0, escNextProbe
	case s.leastSlip() > 0.75*s.slipTarget(s.v): // otherwise the fastest wheel is near the speed of the car
		s.probe = 5 - s.probed
		if excess := s.yaw - s.reference; excess > escProbeYaw {
			s.probe = 2 // then the brakes turn the car to the right
		} else if excess < -escProbeYaw {
			s.probe = 3
		}
		if s.bad[s.probe] {
			s.probe ^= 1
		}
		s.probed, s.probeDue = s.probe, escLongestProbe
	}
}

// leastSlip returns the slip speed of the fastest wheel, m/s.
func (s *esc) leastSlip() float64 {
	return s.v - max(s.centre(0), s.centre(1), s.centre(2), s.centre(3))
}

// slipTarget returns the slip speed at a speed of the car that is wanted under the brakes, m/s.
func (s *esc) slipTarget(v float64) float64 { return s.tune.slip*v + s.tune.margin }

// slipRate returns the pressure rate that keeps the slip of wheel i at its target, bar/s. It starts slip control.
func (s *esc) slipRate(i int, braking bool) float64 {
	ground := s.ground(i)
	target := s.slipTarget(ground)
	if s.braked[i] > 0 && s.active[circuit(i)] { // at a large slip angle only a large slip turns the force of the tyre
		target *= escYawSlip
	}
	slip, faster := ground-s.speed[i], s.ax-s.rate[i]
	if (braking || s.bar[i] > 2) && ground > 1.5 && slip+0.02*faster > target {
		s.slipping[i] = true
	}
	gain := 1.0
	if i >= 2 {
		gain = 3
	}
	return min(max(gain*(80*(target-slip)-8*faster), -1200), 600)
}

// balance limits the pressure difference of an axle, from wheel first on, while slip control works there. At the rear the
// wheel with less grip sets both. In front the difference grows as long as the yaw rate stays near its reference.
func (s *esc) balance(rate []float64, first int, dt float64) {
	spread := &s.spread[first/2]
	if s.active[0] || s.active[1] || !s.slipping[first] && !s.slipping[first+1] || s.master <= s.tune.pedal {
		*spread = 0
		return
	}
	low, high := 0, 1
	if s.bar[first+1] < s.bar[first] || s.slipping[first+1] && !s.slipping[first] {
		low, high = 1, 0
	}
	// The difference turns the car to the side with more grip; the driver steers against it.
	side := left[high]
	turning := max(side*s.yaw-max(side*s.reference, 0), 0)
	growth := escSpread[first/2] * min(max(1-turning/escTurning, -1), 1)
	if math.Abs(s.steer) > escMostSteer {
		growth = min(growth, 0)
	}
	*spread = min(max(*spread+growth*dt, 5), 150)
	s.slipping[first+high] = true
	rate[high] = min(rate[high], max(rate[low], 0)+(s.bar[first+low]+*spread-s.bar[first+high])/0.05)
}

// setValves integrates the estimated pressure over the last dt, s, and sets the commands for a pressure rate, bar/s.
func (s *esc) setValves(i int, rate float64, pumped bool, dt float64) {
	in := absBuild * math.Sqrt(max(s.master-s.bar[i], 0.5))
	if pumped {
		in = max(escPumpRate, in)
	}
	out := absDump * math.Sqrt(max(s.bar[i], 0.5))
	switch {
	case s.held > 0:
	case s.inlet[i] == 0 && s.outlet[i] == 0 && !pumped: // as the driver wants
		s.bar[i] += min(max(s.master-s.bar[i], -out*dt), in*dt)
	default:
		s.bar[i] = max(0, s.bar[i]+((1-s.inlet[i])*in-s.outlet[i]*out)*dt)
		if !pumped && s.bar[i] > s.master { // through the check valve
			s.bar[i] = s.master
		}
	}
	switch {
	case !pumped && !s.slipping[i]:
		s.inlet[i], s.outlet[i] = 0, 0
	case rate > 0:
		s.inlet[i], s.outlet[i] = 1-min(1, rate/in), 0
	default:
		s.inlet[i], s.outlet[i] = 1, min(1, -rate/out)
		if pumped && s.braked[i] == 0 && s.master < s.tune.pedal { // the estimate may be too low
			s.outlet[i] = 1
		}
	}
}

// controlEngine reduces the torque where the driven wheels spin, and while the car is unstable.
func (s *esc) controlEngine(dt float64) {
	spin := s.engineSpin() - s.tune.traction*s.v - 0.5
	if s.tune.enabled > 0 && !s.Memory.LimpHome() && (spin > 0 && s.master < s.tune.pedal || s.yawing()) {
		s.share -= dt * (2*max(spin, 0) + 1)
		s.counts3[2]++
	} else {
		s.share += dt * escRecover
	}
	s.share = min(max(s.share, 0.02), 1)
}

// holdHill keeps the pressure of the driver while the car stands on a slope, for a while after the pedal.
func (s *esc) holdHill(dt float64, seen bool) {
	fastest := 0.0
	for _, v := range s.speed {
		fastest = max(fastest, v)
	}
	switch {
	case !seen || s.tune.hold == 0 || fastest > 3*escStands:
		s.held, s.since = 0, 0
	case s.master > s.tune.pedal:
		s.since = 0
		if s.held = 0; fastest < escStands && math.Abs(s.ax) > escHoldGrade {
			s.held = 1
		}
	case s.held > 0:
		s.since += dt
		if s.since > s.tune.hold || s.throttle > 0.1 {
			s.held = max(s.held-dt/escHoldRelease, 0)
		}
	}
}

// valveFrame packs the commands of two wheels from wheel first on: inlet and outlet of each in 8 bits from bit 12 on,
// and whether slip control works in bits 44 and 45.
func (s *esc) valveFrame(id uint32, first int) can.Frame {
	var g unit.Payload
	for i := range 2 {
		g.SetBits(12+16*i, 8, uint64(math.RoundToEven(s.inlet[first+i]/escShare)))
		g.SetBits(20+16*i, 8, uint64(math.RoundToEven(s.outlet[first+i]/escShare)))
		g.SetBit(44+i, s.slipping[first+i])
	}
	return s.Protect(g, id)
}

// pumpOutputs returns the commands of the isolation and suction valves of the circuits and of the pump, 0 to 1.
func (s *esc) pumpOutputs() (isolation, suction [2]float64, pump float64) {
	for i, on := range s.active {
		isolation[i] = s.held
		if on {
			isolation[i], suction[i], pump = 1, 1, 1
		}
	}
	for _, is := range s.slipping {
		if is {
			pump = 1
		}
	}
	return isolation, suction, pump
}

// pumpFrame packs the isolation and suction valves, the pump and the share of the engine.
func (s *esc) pumpFrame() can.Frame {
	var g unit.Payload
	isolation, suction, pump := s.pumpOutputs()
	for i := range isolation {
		g.SetBits(12+8*i, 8, uint64(math.RoundToEven(isolation[i]/escShare)))
		g.SetBits(28+8*i, 8, uint64(math.RoundToEven(suction[i]/escShare)))
	}
	g.SetBits(44, 8, uint64(math.RoundToEven(pump/escShare)))
	g.SetBits(52, 8, uint64(math.RoundToEven(s.share/escShare)))
	g.SetBit(60, s.slipping[0] || s.slipping[1] || s.slipping[2] || s.slipping[3])
	g.SetBit(61, s.yawing())
	g.SetBit(62, s.share < 1 || s.spun)
	g.SetBit(63, s.held > 0)
	return s.Protect(g, idEscPump)
}
