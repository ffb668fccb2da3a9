package gearbox

import (
	"math"

	"lockstep/rt/ecu/diagnosis"
)

// Routines of the units with an automatic gearbox.
const (
	routineShifts   = 0x0201 // sets the number of shifts to 0
	routineClutches = 0x0203 // check of the clutches

	checkBrake  = 10.0       // brake pressure that holds the car, bar
	checkEngine = 300 * rpm  // speed of a running engine, rad/s
	checkTime   = 1.5        // time in a gear, and in neutral after it, s
	checkStill  = 10.0 * rpm // speed of the input shaft that an engaged gear holds, rad/s
)

// States of the check of the clutches.
const (
	checkPassed = iota
	checkRunning
	checkAborted
	checkFailed
)

// control is what a tester has taken over.
type control struct {
	gear    int     // forward gear that the tester sets; 0: none
	state   int     // of the check of the clutches
	at      int     // gear of the check, 1 to reverse
	next    float64 // time of its next step, s
	engaged uint16  // gears found engaged: bit 0 is first gear, the highest bit reverse
}

// active reports whether the unit does not choose the gear itself.
func (c *control) active() bool { return c.gear != 0 || c.state == checkRunning }

// controlGear sets the gear in D; nil gives the choice back to the unit.
func (s *automatic) controlGear(value []byte) byte {
	switch {
	case value == nil:
		s.control.gear = 0
	case !s.isForward(int(value[0])):
		return diagnosis.RequestOutOfRange
	case s.lever != leverD || !s.Awake:
		return diagnosis.ConditionsNotCorrect
	default:
		s.control.gear = int(value[0])
	}
	return 0
}

// routines returns the routines of the unit.
func (s *automatic) routines() []diagnosis.Routine {
	status := func() ([]byte, byte) {
		data := []byte{byte(s.control.state)}
		for bit := 0; bit < s.reverse(); bit += 8 {
			data = append(data, byte(s.control.engaged>>bit))
		}
		return data, 0
	}
	return []diagnosis.Routine{
		{ID: routineShifts, Secure: true, Start: func([]byte) ([]byte, byte) {
			s.shifts = 0
			return []byte{0}, 0
		}},
		{ID: routineClutches, Results: status,
			Start: func([]byte) ([]byte, byte) {
				if !s.mayCheck() {
					return nil, diagnosis.ConditionsNotCorrect
				}
				s.control = control{state: checkRunning}
				return []byte{checkRunning}, 0
			},
			Stop: func() ([]byte, byte) {
				s.abortCheck()
				return status()
			}},
	}
}

// mayCheck reports whether the clutches can be checked: the car stands on its brake in P or N, the engine runs.
func (s *automatic) mayCheck() bool {
	return s.Awake && !s.IsOff() && math.Abs(s.out) < standstill && s.brake >= checkBrake && s.engine > checkEngine &&
		(s.lever == leverP || s.lever == leverN)
}

// abortCheck ends the check of the clutches.
func (s *automatic) abortCheck() {
	if s.control.state == checkRunning {
		s.control.state = checkAborted
	}
}

// checkClutches engages one gear after the other while the car stands, with neutral between them. A gear whose
// clutches hold stops the input shaft.
func (s *automatic) checkClutches(t float64) {
	c := &s.control
	switch {
	case !s.mayCheck():
		s.abortCheck()
		return
	case t < c.next || s.busy():
		return
	}
	c.next = t + checkTime
	if s.gear != neutral {
		if math.Abs(s.in) < checkStill {
			c.engaged |= 1 << (s.gear - 1)
		}
		s.shift(t, neutral)
		return
	}
	if c.at < s.reverse() {
		c.at++
		s.shift(t, c.at)
		return
	}
	c.state = checkFailed
	if c.engaged == 1<<s.reverse()-1 {
		c.state = checkPassed
	}
	s.Logf("%.2f s: clutches checked, gears engaged %0*b", t, s.reverse(), c.engaged)
}
