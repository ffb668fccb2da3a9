package ecu

import (
	"math"
	"time"

	"github.com/brutella/can"
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
	mostMissing = 3          // frames missing by the counter
	shaftRange  = 7500 * rpm // largest speed of a shaft, rad/s
	frozenTime  = 0.1        // time without a change of one speed in which the other one moves by frozenMove, s
	frozenMove  = 3          // rad/s

	frozenChanges = 5 // changes of the other speed in that time

	fixed = 0.5 // time after a shift from which its ratio must hold, s

	wrongRatio, wrongSlip = 0.1, 10.0 // deviation of the input speed in gear: share, and at least, rad/s
	smallRatio, smallSlip = 0.03, 3.0 // the same for slip
	coldest, hottest      = -40, 180  // range of the oil's sensor without its ends, degC
)

// input supervises the frames of one message to the unit.
type input struct {
	lost, invalid uint32        // trouble codes; 0: none
	timeout       time.Duration // time without a frame after which it is missing
	counter       rollingCounter
	seen          time.Time // last frame; zero: none yet
	good, bad     int       // frames since the last cycle
	wrong         bool      // the last frame is bad
}

// late reports whether frames are missing.
func (i *input) late(now time.Time) bool { return now.Sub(i.seen) > i.timeout }

// take counts a frame and returns the number of frames missing before it; ok is false if its checksum is wrong.
func (i *input) take(f *can.Frame, now time.Time) (missing int64, ok bool) {
	i.seen, i.wrong = now, true
	if f.Length != 8 || crc1A(f) != f.Data[0] {
		i.bad++
		return 0, false
	}
	if missing = i.counter.countMissingOf15(f.Data[1] & 15); missing > mostMissing {
		i.bad++
	} else {
		i.good++
		i.wrong = false
	}
	return missing, true
}

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
	if s.isOff() {
		return
	}
	passed := time.Duration(math.Round(dt * 1e9))
	started := s.lastCycle.Sub(s.cycleStart).Seconds() > fixed
	inputs := []*input{&s.shafts, &s.pedals}
	if s.eight != nil {
		inputs = append(inputs, &s.eight.input)
		s.eight.checkLockUp(s, passed)
	}
	for _, i := range inputs {
		if started {
			s.memory.Report(i.lost, i.late(s.lastCycle), passed)
		}
		if i.bad > 0 || i.good > 0 {
			s.memory.Report(i.invalid, i.bad > 0, passed)
		}
		i.good, i.bad = 0, 0
	}
	if !s.pedals.seen.IsZero() {
		s.memory.Report(codeLever, s.rawLever > leverD, passed)
	}
	if !s.oils.seen.IsZero() {
		s.memory.Report(codeOilSensor, s.oils.late(s.lastCycle) || s.oils.wrong || !s.oilInRange(), passed)
		s.memory.Report(codeOverTemperature, s.limps, passed)
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
	s.memory.Report(codeInputSpeed, in, passed)
	s.memory.Report(codeOutputSpeed, out, passed)
	if in || out {
		return // the ratio means nothing
	}
	wrong := slip > max(wrongSlip, wrongRatio*speed)
	s.memory.Report(codeRatio, wrong, passed)
	if !wrong {
		s.memory.Report(codeSlip, !small, passed)
	}
}

// oilInRange reports whether the temperature of the oil is one that a sensor in order can send.
func (s *automatic) oilInRange() bool { return s.rawOil > coldest && s.rawOil < hottest }
