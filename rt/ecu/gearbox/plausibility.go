package gearbox

import (
	"math"
	"time"

	"lockstep/rt/ecu/unit"
)

// Trouble codes of the unit, SAE J2012, failure type 00.
const (
	codeOverTemperature = 0x021800 // P0218
	codeLever           = 0x070500 // P0705
	codeOilSensor       = 0x071000 // P0710
	codeInputSpeed      = 0x071500 // P0715
	codeOutputSpeed     = 0x072000 // P0720
	codeRatio           = 0x073000 // P0730
	codeSlip            = 0x089400 // P0894
	codePedalsLost      = 0xC10000 // U0100
	codePedalsInvalid   = 0xC40100 // U0401
	codeShaftsLost      = 0xD10000 // U1100, of the maker
	codeShaftsInvalid   = 0xD40100 // U1401, of the maker
)

// Bounds of plausible inputs.
const (
	shaftRange = 7500 * rpm // largest speed of a shaft, rad/s
	frozenTime = 0.1        // time without a change of one speed in which the other one moves by frozenMove, s
	frozenMove = 3          // rad/s

	frozenChanges = 5 // changes of the other speed in that time

	fixed = 0.5 // time after a shift from which its ratio must hold, s

	wrongRatio, wrongSlip = 0.1, 10.0 // deviation of the input speed in gear: share, and at least, rad/s
	smallRatio, smallSlip = 0.03, 3.0 // the same for slip
	coldest, hottest      = -40, 180  // range of the oil's sensor without its ends, degC
)

// frozen finds a speed that does not change while the other one keeps changing. A single step of the other one
// says nothing: both may have been constant.
type frozen struct {
	value, other float64 // at the last change
	since        float64 // time of it, s
	last         float64 // other speed of the previous check
	changes      int     // changes of the other speed since then
}

// check reports whether the speed is frozen at t.
func (z *frozen) check(value, other, t float64) bool {
	if value != z.value {
		*z = frozen{value: value, other: other, since: t, last: other}
	}
	if other != z.last {
		z.last = other
		z.changes++
	}
	return t-z.since >= frozenTime && z.changes >= frozenChanges && math.Abs(other-z.other) > frozenMove
}

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle. No test runs while the
// ignition is off: then missing frames are right.
func (s *automatic) checkInputs(t, dt float64) {
	if s.IsOff() {
		return
	}
	passed := unit.Seconds(dt)
	started := s.InCycle().Seconds() > unit.StartTime
	inputs := []*unit.Input{&s.shafts, &s.pedals}
	if s.eight != nil {
		inputs = append(inputs, &s.eight.Input)
		s.eight.checkLockUp(s, passed)
	}
	for _, i := range inputs {
		i.Report(s.Memory, started, s.LastCycle, passed)
	}
	if s.pedals.Seen() {
		s.Memory.Report(codeLever, s.rawLever > leverD, passed)
	}
	if s.oils.Seen() {
		s.Memory.Report(codeOilSensor, s.oils.Late(s.LastCycle) || s.oils.Wrong() || !s.oilInRange(), passed)
		s.Memory.Report(codeOverTemperature, s.limps, passed)
	}
	if s.fresh {
		s.checkSpeeds(t, passed)
	}
}

// checkSpeeds reports the plausibility of the shaft speeds. In a gear they must have its ratio, from a while after
// the shift on. In a gear that drives by a freewheel the input shaft may be slower: the car coasts or brakes.
func (s *automatic) checkSpeeds(t float64, passed time.Duration) {
	slip, speed := math.Abs(s.slip()), math.Abs(s.ratios[s.gear]*s.out)
	if s.gear == s.freewheel && s.gear != neutral {
		slip = max(0, s.slip())
	}
	small := slip <= max(smallSlip, smallRatio*speed)
	in, out := s.frozenIn.check(s.in, s.out, t), s.frozenOut.check(s.out, s.in, t)
	if s.gear == neutral || s.busy() || s.control.active() || t < s.engaged+fixed || small && (in || out) {
		s.frozenIn, s.frozenOut = frozen{}, frozen{}
		return
	}
	in, out = in || math.Abs(s.in) > shaftRange, out || math.Abs(s.out) > shaftRange
	s.Memory.Report(codeInputSpeed, in, passed)
	s.Memory.Report(codeOutputSpeed, out, passed)
	if in || out {
		return // the ratio means nothing
	}
	wrong := slip > max(wrongSlip, wrongRatio*speed)
	s.Memory.Report(codeRatio, wrong, passed)
	if !wrong {
		s.Memory.Report(codeSlip, !small, passed)
	}
}

// oilInRange reports whether the temperature of the oil is one that a sensor in order can send.
func (s *automatic) oilInRange() bool { return s.rawOil > coldest && s.rawOil < hottest }
