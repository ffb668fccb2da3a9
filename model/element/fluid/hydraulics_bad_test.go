package fluid_test

import (
	"testing"

	"lockstep/model/modeltest"
)

// brakes is a small valid plant of wheel brakes.
const brakes = `plant: brakes
inputs:
  pedal: {unit: bar, min: 0, max: 200}
  valve: {unit: "%", min: 0, max: 100, delay: 3 ms}
elements:
  wheel: {type: inertia, J: 1}
  front: {type: wheel_brake_circuit, master: pedal, inlet: valve, outlet: 0, drain: store, A_inlet: 0.2 mm2, A_outlet: 0.3 mm2, A_check: 1 mm2, p_check: 0.1 bar, stiffness: 70 bar/cm3, V0: 0.2 cm3}
  rear: {type: wheel_brake_circuit, master: pedal, A_inlet: 0.2 mm2, A_outlet: 0.3 mm2, p_V: [[0, 0], [1 cm3, 60 bar]]}
  store: {type: low_pressure_accumulator, p_V: [[0, 0], [0.1 cm3, 2 bar], [3 cm3, 6 bar]], pump: 1, flow: 3 cm3/s}
  disc: {type: brake, flange: wheel, mu: 0.4, cgeo: 0.3 m, area: 20 cm2, pressure: front}
outputs:
  p: {signal: rear}
`

func TestBrakesPassTheCheck(t *testing.T) {
	if err := modeltest.Check(brakes); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsOfBrakesHaveAPosition(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"no pressure comes in", "  rear: {type: wheel_brake_circuit, master: pedal, ", "  «rear»: {type: wheel_brake_circuit, ", `element "rear": wheel_brake_circuit needs master (pressure of the master cylinder or of a brake_line, Pa, or the name of an input)`},
		{"no inlet valve", "  rear: {type: wheel_brake_circuit, master: pedal, A_inlet: 0.2 mm2, ", "  «rear»: {type: wheel_brake_circuit, master: pedal, ", `element "rear": wheel_brake_circuit needs A_inlet (cross-section of the inlet valve, m2)`},
		{"outlet valve of no size", "A_outlet: 0.3 mm2, p_V", "A_outlet: «0», p_V", `element "rear": A_outlet 0 m2 is not positive (cross-section of the outlet valve)`},
		{"negative check valve", "A_check: 1 mm2", "A_check: «-1 mm2»", `element "front": A_check -1e-06 m2 is negative (cross-section of the check valve; 0: none)`},
		{"cracking pressure of no valve", "A_check: 1 mm2, p_check", "«p_check»", `element "front": p_check goes with A_check`},
		{"area in cm", "A_inlet: 0.2 mm2, A_outlet: 0.3 mm2, p_V", "A_inlet: «0.2 mm», A_outlet: 0.3 mm2, p_V", `element "rear": A_inlet: "0.2 mm": unit mm does not fit, m2 is wanted`},
		{"no caliper", "  rear: {type: wheel_brake_circuit, master: pedal, A_inlet: 0.2 mm2, A_outlet: 0.3 mm2, p_V: [[0, 0], [1 cm3, 60 bar]]}", "  «rear»: {type: wheel_brake_circuit, master: pedal, A_inlet: 0.2 mm2, A_outlet: 0.3 mm2}", `element "rear": wheel_brake_circuit needs stiffness (of the caliper, Pa/m3), or p_V (rows of volume and pressure)`},
		{"caliper twice", "p_V: [[0, 0], [1 cm3, 60 bar]]", "p_V: [[0, 0], [1 cm3, 60 bar]], «stiffness»: 1e12", `element "rear": stiffness and p_V; the table has all of the curve`},
		{"caliper of one row", "[[0, 0], [1 cm3, 60 bar]]", "«[»[0, 0]]", `element "rear": p_V has one row; give at least two`},
		{"caliper that softens", "[[0, 0], [1 cm3, 60 bar]]", "«[»[0, 0], [1 cm3, -60 bar]]", `element "rear": p_V: pressure -6000000 Pa in row 2 is below the 0 Pa before; it must not fall with the volume`},
		{"caliper over pressure", "[[0, 0], [1 cm3, 60 bar]]", "[[0, 0], [«60 bar», 1 cm3]]", `element "rear": p_V: "60 bar": unit bar does not fit, m3 is wanted`},
		{"stiffness of zero", "stiffness: 70 bar/cm3", "stiffness: «0»", `element "front": stiffness 0 Pa/m3 is not positive (stiffness of the caliper)`},
		{"negative gap", "V0: 0.2 cm3", "V0: «-1 cm3»", `element "front": V0 -1e-06 m3 is negative (volume up to contact of the pads, with stiffness)`},
		{"valve beyond open", "min: 0, max: 100, delay", "min: 0, max: 120, delay", `7:60: model: element "front": inlet goes from 0 to 1.2; a share of 0 to 1 is wanted`},
		{"pump that runs backwards", "pump: 1", "pump: «-1»", `element "store": pump goes from -1 to -1; a share of 0 to 1 is wanted`},
		{"pump without flow", "pump: 1, flow: 3 cm3/s", "«pump»: 1", `element "store": pump and flow go together`},
		{"pump of no flow", "flow: 3 cm3/s", "flow: «0»", `element "store": flow 0 m3/s is not positive (flow of the pump at full drive)`},
		{"accumulator without a curve", "  store: {type: low_pressure_accumulator, p_V: [[0, 0], [0.1 cm3, 2 bar], [3 cm3, 6 bar]], ", "  «store»: {type: low_pressure_accumulator, ", `element "store": low_pressure_accumulator needs p_V (rows [volume, pressure], not falling; m3, Pa)`},
		{"accumulator that is not there", "drain: store", "drain: «stor»", `element "front": drain: "stor": "stor" is not a known parameter (did you mean store?)`},
		{"drain that is a valve", "drain: store", "drain: «valve»", `element "front": drain: input "valve" is in 1; Pa is wanted`},
		{"drain that is the caliper", "drain: store", "drain: «front»", `element "front": it drains into itself; name a low_pressure_accumulator, or a pressure`},
		{"laminar for ever", "p_V: [[0, 0], [1 cm3, 60 bar]]", "p_V: [[0, 0], [1 cm3, 60 bar]], p_transition: «0»", `element "rear": p_transition 0 Pa is not positive (difference below which flows are laminar)`},
		{"unknown key", "V0: 0.2 cm3", "«Vo»: 0.2 cm3", `element "front": wheel_brake_circuit: unknown key "Vo" (did you mean V0?); known are type, master, inlet, outlet, drain, A_inlet, A_outlet, A_check, p_check, C_d, rho, p_transition, stiffness, V0, p_V, V_start`},
	} {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, brakes, c.old, c.new, c.want) })
	}
}
