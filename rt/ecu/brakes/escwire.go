package brakes

import (
	"time"

	"lockstep/rt/ecu/unit"
)

// escTeeth is the number of teeth of a tone wheel of the car.
const escTeeth = 48

// escPins are the wheel-speed sensors of the ESC unit by wire. The speeds come from the edges as in a unit that gets
// the count and the age of its edges over CAN.
type escPins struct {
	sensors
	inputs [4]capture
}

func (s *esc) Connect() {
	s.pins = &escPins{sensors: newSensors(escRadius, escTeeth, escSmooth)}
}

func (s *esc) Edge(wheel int, at time.Time, word uint16) {
	if wheel < len(s.pins.inputs) {
		s.pins.inputs[wheel].take(seconds(at), word, escTeeth)
	}
}

func (s *esc) SetLine(wheel int, state unit.Line) {
	if wheel < len(s.pins.inputs) {
		s.pins.inputs[wheel].line = state
	}
}

// seconds is an instant as the time since the start, s.
func seconds(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }

// readPins takes the speeds and accelerations of the wheels from their edges.
func (s *esc) readPins() {
	now := seconds(s.LastCycle)
	for i := range s.pins.inputs {
		c, w := &s.pins.inputs[i], &s.pins.wheel[i]
		w.updateFromEdges(c.n, c.age(now), now, s.pins.pitch, s.pins.smooth)
		s.speed[i], s.rate[i] = w.v, w.rate
	}
}

// Duties returns the outputs of the unit: inlet and outlet of the four wheels, pump, isolation and suction valves of
// the two circuits.
func (s *esc) Duties() []float64 {
	isolation, suction, pump := s.pumpOutputs()
	var list []float64
	for i := range s.inlet {
		list = append(list, s.inlet[i], s.outlet[i])
	}
	return append(list, pump, isolation[0], isolation[1], suction[0], suction[1])
}
