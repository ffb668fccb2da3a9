// Package unit owns what every virtual control unit has: its sleep and its cycles, its parameters, the bits of its
// frames, the supervision of its inputs, its fault memory and its part in the network.
//
// A unit is a Law, what it does, on a Base, the common part. Run connects it to a bus and the clock of the host; the
// caller of a Stepped gives it the instants. The package shares no code with the target, like all of rt/ecu.
//
// Reading order: unit.go (Type, Law), base.go (sleep, cycles, counts), stepped.go and run.go (calls of the law),
// settings.go (parameters), packing.go (bits, counters and checksums of frames), input.go (late and invalid frames),
// operation.go (fault memory and diagnosis), ignition.go (ignition, after-run and network management).
package unit

import (
	"time"

	"github.com/brutella/can"
)

// Law is the control law of a unit. It has no clock; the times of frames and cycles never decrease.
type Law interface {
	// Receive handles a frame with one of the identifiers of the type.
	Receive(f *can.Frame, now time.Time)
	// Step runs one cycle, t after the wake-up and dt after the previous cycle, s, and returns the frames to send.
	Step(t, dt float64) []can.Frame
	// Summary returns the text after the counts in the last line of the unit.
	Summary() string
	// Parameters returns the parameters, to be set before the first frame.
	Parameters() []Parameter
}

// Networked is the law of a unit that takes part in the network management.
type Networked interface {
	// Network runs a cycle of the network management, asleep or not, and returns the frames to send.
	Network(now time.Time) []can.Frame
}

// Wired is the law of a unit that takes wheel speeds by wire, and has valves by wire.
type Wired interface {
	// Connect connects the wires; without it the unit works over CAN.
	Connect()
	// Edge takes an edge of a wheel-speed sensor with the data word of the AK protocol, before the cycle that follows
	// it. The times of the edges of a wheel never decrease; a frame since may have a later one.
	Edge(wheel int, at time.Time, word uint16)
	// SetLine sets the state of the line of a wheel-speed sensor.
	SetLine(wheel int, state Line)
	// Duties returns the duties of the outputs, 0 to 1, in the order of the channels.
	Duties() []float64
}

// Type is a type of control unit.
type Type struct {
	Name        string
	Period      time.Duration // period of its cycles
	Identifiers []uint32      // identifiers that the unit receives
	WakeFrame   string        // frame that wakes the unit, "Speeds (0x200)"
	New         func(*Base) Law
}

// Line is the state of the line of a wheel-speed sensor, as the input circuit of the unit sees it by its current.
type Line uint8

// States of a line, with the numbers of io/wire.
const (
	LineWorking Line = iota
	LineOpen
	LineShortToGround
	LineShortToSupply
)
