// Package brakes owns the control units of brakes: anti-lock and ESC of a car, and the wheel slide protection of a train.
// It shares no code with the target.
//
// Reading order: brakes.go (list of the units), brake.go (sensors, and the common part of abs.go and wsp.go; their
// diagnosis: braketrouble.go), esc.go with esctraction.go and esctrouble.go (its diagnosis), escwire.go and capture.go
// (its wheel speeds and valves by wire).
package brakes

import "lockstep/rt/ecu/unit"

// Types lists the control units of brakes.
func Types() []unit.Type {
	return []unit.Type{
		{Name: "abs", Period: brakeCycle, Identifiers: absWiring.identifiers(), WakeFrame: "WheelSpeeds (0x1A0)", New: newAbs},
		{Name: "esc", Period: brakeCycle, Identifiers: []uint32{idEscWheels, idEscMotion, idEscDriver}, WakeFrame: "EscMotion (0x1B1)", New: newEsc},
		{Name: "wsp", Period: brakeCycle, Identifiers: wspWiring.identifiers(), WakeFrame: "AxleSpeeds (0x1A8)", New: newWsp},
	}
}
