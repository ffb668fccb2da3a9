package brakes

import (
	"fmt"
	"math"
	"time"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Failure types of a trouble code, SAE J2012-DA: the last byte of its number.
const (
	typeShortToGround = 0x11
	typeShortToSupply = 0x12
	typeOpen          = 0x13
	typeAmplitude     = 0x21 // signal amplitude below minimum
	typeRate          = 0x27 // signal rate of change above threshold
	typeBias          = 0x28 // signal bias level out of range, zero adjustment failure
	typeErratic       = 0x2F // signal erratic
	typePulses        = 0x39 // too few pulses
	typePlausibility  = 0x64 // signal plausibility failure
	typeStuck         = 0x71 // actuator stuck
	typeMounting      = 0x76 // wrong mounting position
)

// Trouble codes of the ESC unit without their failure types, besides wheelCodes: SAE J2012.
const (
	codePump    = 0x402000 // C0020 pump motor
	codeSteer   = 0x405100 // C0051 steering angle sensor
	codeLateral = 0x406100 // C0061 lateral acceleration sensor
	codeYaw     = 0x406300 // C0063 yaw rate sensor
)

// escValveCodes are the codes of the inlet valves of the wheels, C0010 to C001C: they stand for both valves of a wheel.
var escValveCodes = [4]uint32{0x401000, 0x401400, 0x401800, 0x401C00}

// escFrameCodes are the codes of a missing and of an invalid frame: U1100 and U1401 of EscWheels, and so on.
var escFrameCodes = [3][2]uint32{{0xD10000, 0xD40100}, {0xD10100, 0xD40200}, {0xD10200, 0xD40300}}

// Data identifiers of the ESC unit, besides those of the wheels and unit.IdentifierOfTime.
const (
	didYaw     = 0x1041
	didLateral = 0x1042
	didSteer   = 0x1043
	didControl = 0x1044
)

// Bounds of plausible inputs.
const (
	escCompareSpeed  = 8.0   // speed from which the sensors are compared, m/s
	escYawDiffers    = 0.07  // difference of the yaw rates of sensor and rear wheels, rad/s
	escYawAgrees     = 0.04  // difference up to which two yaw rates agree, rad/s
	escAccelDiffers  = 2.0   // difference of the lateral acceleration and that of the yaw rate, m/s2
	escGrip          = 6.0   // lateral acceleration from which the rear wheels slip aside too much to show the yaw rate, m/s2
	escYawJump       = 0.12  // change of the yaw rate in a cycle that no car makes, rad/s
	escAccelJump     = 2.0   // the same of the lateral acceleration, m/s2
	escSteerJump     = 0.15  // the same of the steering wheel: hands turn it by 12 rad/s, rad
	escErratic       = 30    // level of jumps from which a signal is erratic
	escTurnsClearly  = 0.1   // yaw rate from which swapped wheels show, rad/s
	escDoubtTime     = 0.3   // time for which a signal in doubt must agree with the others, s
	escApartTime     = 0.1   // time for which the yaw rate must differ from all others after yaw control: the wheels lag, s
	escStraightYaw   = 0.03  // yaw rate up to which the car goes straight, rad/s
	escStraightAccel = 0.7   // lateral acceleration up to which it does, m/s2
	escStraightTime  = 0.7   // time for which it must, s
	escOffsetTime    = 5.0   // time constant with which the offset of the steering wheel is learned, s
	escMostOffset    = 0.14  // largest offset, rad
	escAhead         = 0.025 // yaw rate by the steering angle in straight travel from which the angle may drift, rad/s
	escAheadTime     = 0.4   // time after which yaw control rests for it, s
	escRollTime      = 0.1   // time without brakes after which the rear wheels show the yaw rate, s
	escQuietTime     = 0.5   // time without yaw control after which the car does not slide, s
	escDirection     = 2.0   // speed from which directions are compared, m/s
	escLocked        = 0.5   // share of the ground speed below which a released wheel should spin up
	escPumpedBar     = 40.0  // pressure by the pump from which a wheel must slip, bar
	escPumpedSlip    = 0.012 // that slip, share of the speed
)

// escTrouble is the diagnosis of the ESC unit.
type escTrouble struct {
	unit.Operation
	fresh     [3]bool    // a frame was taken in this cycle: EscWheels, EscMotion, EscDriver
	cycles    [3]int     // cycles since the last one before
	jumps     [3]int     // levels of the jumps of yaw rate, lateral acceleration and steering angle
	before    [3]float64 // their values in the last cycle
	offset    float64    // angle of the steering wheel while the car goes straight, rad
	bySteer   float64    // yaw rate by the steering angle, rad/s
	doubtful  bool       // the steering angle has jumped, and does not agree with the motion since
	yawDoubt  float64    // time for which the yaw rate must agree with the wheels until yaw control may work, s
	apart     float64    // time for which the yaw rate has differed from wheels, steering angle and lateral acceleration, s
	ahead     float64    // time for which the steering angle shows a turn that the car does not make, s
	agreed    float64    // time for which it agrees again, s
	straight  float64    // time for which the car goes straight under a turned steering wheel, s
	rolling   float64    // time for which the rear wheels roll without brakes, s
	quiet     float64    // time since yaw control has worked, s
	wrongSide bool       // the lateral acceleration is in doubt: it shows no side slip
	swapped   [2]bool    // the wheels of an axle are swapped
	bad       [4]bool    // the speed of the wheel is not known
}

// startDiagnosis gives the unit its fault memory and its diagnosis server.
func (s *esc) startDiagnosis() {
	s.Operation = unit.NewOperation(s.Base, escCodes(), ": yaw control off")
	identifiers := []diagnosis.Identifier{
		{ID: didYaw, Read: func() []byte { return unit.SignedBytes(s.yaw, escYawBit) }},
		{ID: didLateral, Read: func() []byte { return unit.SignedBytes(s.ay, 0.01) }},
		{ID: didSteer, Read: func() []byte { return unit.SignedBytes(s.steer, escSteerBit) }},
		{ID: didControl, Read: func() []byte { return []byte{s.controlState()} }},
	}
	snapshot := []uint16{unit.IdentifierOfTime, didYaw, didLateral, didSteer}
	for i := range s.speed {
		id := uint16(didWheel + i)
		identifiers = append(identifiers, diagnosis.Identifier{ID: id, Read: func() []byte { return unit.SignedBytes(s.speed[i], wheelSpeedBit) }})
		snapshot = append(snapshot, id)
	}
	s.Serve(diagnosis.Config{
		Snapshot: snapshot, Identifiers: identifiers, VIN: "WLS00000000000028",
		Standstill: func() bool { return max(s.speed[0], s.speed[1], s.speed[2], s.speed[3]) < brakeRests },
	})
}

// escCodes lists the trouble codes. With those that limp, yaw control, traction control and hill hold rest until the
// end of the operation cycle.
func escCodes() (list []diagnosis.Code) {
	add := func(number uint32, fail int, limp bool, text string) {
		name := fmt.Sprintf("C%04X", number>>8&0x3FFF)
		if number>>22 == 3 {
			name = fmt.Sprintf("U%04X", number>>8&0x3FFF)
		}
		if number&0xFF != 0 {
			name += fmt.Sprintf("-%02X", number&0xFF)
		}
		list = append(list, diagnosis.Code{Number: number, Text: name + " " + text, Trips: 1, Limp: limp,
			Fail: time.Duration(fail) * time.Millisecond, Pass: time.Second})
	}
	for i, wheel := range absNames {
		code, sensor := wheelCodes[i], "wheel-speed sensor of "+wheel
		add(code, 500, true, sensor)
		add(code|typeShortToGround, 50, true, sensor+" short to ground")
		add(code|typeShortToSupply, 50, true, sensor+" short to supply")
		add(code|typeOpen, 50, true, sensor+" open")
		add(code|typeAmplitude, 100, true, sensor+" air gap")
		add(code|typePulses, 100, false, sensor+" tooth missing")
		add(code|typePlausibility, 200, true, sensor+" direction")
		add(code|typeMounting, 300, true, sensor+" on the wrong side")
		add(escValveCodes[i]|typeStuck, 300, true, "valves of "+wheel+" do not release")
	}
	add(codePump|typeStuck, 150, true, "pump builds no pressure")
	add(codeYaw|typeErratic, 100, true, "yaw rate sensor erratic")
	add(codeYaw|typePlausibility, 300, true, "yaw rate sensor implausible")
	add(codeLateral|typeErratic, 100, true, "lateral acceleration sensor erratic")
	add(codeLateral|typePlausibility, 500, true, "lateral acceleration sensor implausible")
	add(codeSteer|typeRate, 100, true, "steering angle sensor erratic")
	add(codeSteer|typeBias, 500, true, "steering angle sensor off centre")
	add(codeSteer|typePlausibility, 300, true, "steering angle sensor implausible")
	for i, frame := range [3]string{"EscWheels", "EscMotion", "EscDriver"} {
		add(escFrameCodes[i][0], 400, false, "lost communication: "+frame)
		add(escFrameCodes[i][1], 200, false, "invalid data: "+frame)
	}
	return list
}

// controlState returns 0 where yaw control is off, 1 where it is ready, 2 while it works.
func (s *esc) controlState() byte {
	switch {
	case s.tune.enabled == 0 || s.Memory.LimpHome():
		return 0
	case s.active[0] || s.active[1]:
		return 2
	}
	return 1
}

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle. It reports whether yaw
// control may work in this cycle: a signal in doubt suspends it before its code is stored.
func (s *esc) checkInputs(t, dt float64) (trusted bool) {
	passed := unit.Seconds(dt)
	for i := range s.inputs {
		in := &s.inputs[i]
		if i == 0 && s.pins != nil {
			continue
		}
		in.Report(s.Memory, t > unit.StartTime, s.LastCycle, passed)
	}
	if t < 2*escBegin {
		s.before, s.quiet, s.rolling = [3]float64{s.yaw, s.ay, s.steer}, 1, 1
		return true
	}
	s.checkWheels(passed)
	s.checkActuators(passed)
	return s.checkSensors(dt, passed) && !s.Memory.LimpHome()
}

// checkWheels reports the wheel-speed sensors.
func (s *esc) checkWheels(passed time.Duration) {
	quiet := s.master < s.tune.pedal && !s.active[0] && !s.active[1]
	for i, code := range wheelCodes {
		slowest, forward := math.Inf(1), 0
		for j := range s.speed {
			if j != i {
				slowest = min(slowest, s.speed[j])
			}
			if s.pins != nil {
				forward += s.pins.inputs[j].direction()
			}
		}
		tooSlow := slowest >= sensorSpeed && s.speed[i] < sensorShare*slowest
		if s.pins == nil || s.pins.inputs[i].line == unit.LineWorking {
			if quiet && slowest >= sensorSpeed && !s.bad[i] {
				s.Memory.Report(code, tooSlow, passed)
			}
			s.bad[i] = s.Memory.Status(code)&diagnosis.TestFailed != 0
		}
		if s.pins == nil {
			continue
		}
		in := &s.pins.inputs[i]
		s.bad[i] = s.bad[i] || in.line != unit.LineWorking
		s.Memory.Report(code|typeOpen, in.line == unit.LineOpen, passed)
		s.Memory.Report(code|typeShortToGround, in.line == unit.LineShortToGround, passed)
		s.Memory.Report(code|typeShortToSupply, in.line == unit.LineShortToSupply, passed)
		if s.speed[i] > escDirection && !s.bad[i] {
			s.Memory.Report(code|typeAmplitude, in.scattered >= scatteredEdges || in.word&wordWeakField != 0, passed)
			s.Memory.Report(code|typePulses, in.turns >= sameToothTurns, passed)
			s.Memory.Report(code|typePlausibility, in.direction() < 0 && forward > 0, passed)
		}
	}
	if quiet && s.v > escCompareSpeed && math.Abs(s.yaw) > escTurnsClearly {
		s.checkSides(passed)
	}
}

// checkSides finds swapped wheels of an axle: in a turn their difference has the wrong sign, and the other axle agrees
// with the yaw rate.
func (s *esc) checkSides(passed time.Duration) {
	var turns [2]float64 // yaw rate by the wheels of an axle over that of the sensor
	for axle := range turns {
		if s.bad[2*axle] || s.bad[2*axle+1] {
			return
		}
		turns[axle] = (s.speed[2*axle+1] - s.speed[2*axle]) / escTrack / s.yaw
		if s.swapped[axle] {
			turns[axle] = -1 // both wheels have the speed of the slower one
		}
	}
	for axle := range turns {
		wrong := turns[axle] < -0.5 && turns[1-axle] > 0.5
		for _, i := range []int{2 * axle, 2*axle + 1} {
			s.Memory.Report(wheelCodes[i]|typeMounting, wrong, passed)
		}
		s.swapped[axle] = s.Memory.Status(wheelCodes[2*axle]|typeMounting)&diagnosis.TestFailed != 0
	}
}

// checkActuators reports valves that do not release the brake of a wheel, and a pump that builds no pressure.
func (s *esc) checkActuators(passed time.Duration) {
	fastest := 0.0
	for i := range s.speed {
		fastest = max(fastest, s.centre(i))
	}
	for i := range s.speed {
		if s.bad[i] || s.v < escCompareSpeed {
			continue
		}
		ground := s.ground(i)
		if s.slipping[i] {
			s.Memory.Report(escValveCodes[i]|typeStuck, s.outlet[i] > 0.5 && s.speed[i] < escLocked*ground, passed)
		}
		if s.active[circuit(i)] && s.braked[i] > escPumpedBar && s.bar[i] > escPumpedBar && s.master < s.tune.pedal {
			s.Memory.Report(codePump|typeStuck, fastest-s.centre(i) < escPumpedSlip*s.v, passed)
		}
	}
}

// checkSensors compares yaw rate, lateral acceleration and steering angle with each other and with the rear wheels. It
// reports whether all of them may be used.
func (s *esc) checkSensors(dt float64, passed time.Duration) bool {
	limits, values := [3]float64{escYawJump, escAccelJump, escSteerJump}, [3]float64{s.yaw, s.ay, s.steer}
	codes := [3]uint32{codeYaw | typeErratic, codeLateral | typeErratic, codeSteer | typeRate}
	frames := [3]int{1, 1, 2} // of the signals
	for i := range s.cycles {
		s.cycles[i]++
	}
	for i, v := range values {
		if jump := math.Abs(v-s.before[i]) > limits[i]*float64(s.cycles[frames[i]]); jump {
			s.jumps[i] = min(s.jumps[i]+5, 2*escErratic)
			if i == 2 {
				s.doubtful, s.agreed = true, 0
			}
		} else {
			s.jumps[i] = max(s.jumps[i]-1, 0)
		}
		s.Memory.Report(codes[i], s.jumps[i] >= escErratic, passed)
	}
	for i, is := range s.fresh {
		if is {
			s.cycles[i] = 0
		}
	}
	s.before, s.fresh, s.wrongSide = values, [3]bool{}, false
	if s.quiet += dt; s.active[0] || s.active[1] {
		s.quiet = 0
	}
	if s.rolling += dt; !(s.bar[2] < 2 && s.bar[3] < 2 && s.master < s.tune.pedal && !s.bad[2] && !s.bad[3] && !s.swapped[1]) {
		s.rolling = 0
	}
	s.bySteer += min(dt/escReferenceLag, 1) * (s.steeredYaw() - s.bySteer)
	if s.v < escCompareSpeed || s.rolling < escRollTime {
		return s.trusted()
	}
	byWheels := (s.speed[3] - s.speed[2]) / escTrack
	// The lateral acceleration is that of a turn, unless the car slides: then the wheels show too little.
	accelDiffers := math.Abs(s.ay-s.v*byWheels) > escAccelDiffers
	slides := accelDiffers || math.Abs(s.ay) > escGrip
	moves := math.Abs(s.yaw-byWheels) < escYawAgrees // the yaw rate is known
	steerDiffers := math.Abs(s.bySteer-byWheels) > escYawDiffers
	// A car whose tail goes outwards turns more than its lateral acceleration shows: there the sensor may be right.
	s.wrongSide = moves && !steerDiffers && accelDiffers && math.Abs(s.ay) > math.Abs(s.v*byWheels)
	if moves && !steerDiffers && s.quiet > escQuietTime {
		s.Memory.Report(codeLateral|typePlausibility, accelDiffers, passed)
	}
	if s.agreed += dt; steerDiffers {
		s.agreed = 0
	}
	s.doubtful = s.doubtful && s.agreed < escDoubtTime
	straight := moves && math.Abs(s.yaw) < escStraightYaw && math.Abs(s.ay) < escStraightAccel
	if s.straight += dt; !steerDiffers || !straight {
		s.straight = 0
	}
	if s.ahead += dt; !straight || math.Abs(s.bySteer-byWheels) < escAhead {
		s.ahead = 0
	}
	if straight && !steerDiffers && !s.doubtful {
		s.learnOffset(dt, passed)
	}
	if moves && !accelDiffers {
		s.Memory.Report(codeSteer|typePlausibility, steerDiffers && (s.doubtful || s.straight > escStraightTime), passed)
	}
	// In a slide, and while the yaw rate changes fast, the rear wheels show less than the sensor, and so does the steering
	// angle. The sensor is wrong where all others agree.
	if s.apart += dt; slides || steerDiffers || math.Abs(s.yaw-byWheels) <= escYawDiffers {
		s.apart = 0
	}
	switch {
	case s.apart > 0 && (s.quiet > escQuietTime || s.apart > escApartTime):
		s.yawDoubt = escDoubtTime
	case moves:
		s.yawDoubt = max(s.yawDoubt-dt, 0)
	}
	if !slides {
		s.Memory.Report(codeYaw|typePlausibility, s.yawDoubt > 0 && !moves, passed)
	}
	return s.trusted()
}

// trusted reports whether yaw rate and steering angle are good enough for yaw control.
func (s *esc) trusted() bool { return s.yawDoubt == 0 && !s.doubtful && s.ahead < escAheadTime }

// steeredYaw returns the yaw rate of the linear bicycle for the angle of the steering wheel, rad/s.
func (s *esc) steeredYaw() float64 {
	return s.v * (s.steer - s.offset) / escRatio / (escBase + s.tune.stiffness*s.v*s.v)
}

// learnOffset learns the offset of the steering angle sensor while the car goes straight, and reports one that is too
// large: a slow drift would look like a turn that the car does not make.
func (s *esc) learnOffset(dt float64, passed time.Duration) {
	turned := s.yaw * escRatio * (escBase + s.tune.stiffness*s.v*s.v) / s.v // steering wheel for the yaw rate, rad
	s.offset += dt / escOffsetTime * (s.steer - turned - s.offset)
	s.offset = min(max(s.offset, -escMostOffset), escMostOffset)
	s.Memory.Report(codeSteer|typeBias, math.Abs(s.offset) == escMostOffset, passed)
}
