package fluid_test

import (
	"testing"

	"lockstep/model/modeltest"
)

// coach is a small valid plant with an air brake on a slope.
const coach = `plant: coach
inputs:
  demand: {unit: bar, min: 0, max: 6}
  valve: {unit: "1", min: 0, max: 1, delay: 20 ms}
elements:
  car: {type: mass, m: 1000}
  wheel: {type: inertia, J: 1}
  cylinder: {type: brake_cylinder, demand: demand, hold: valve, vent: 0, T_fill: 0.4 s, T_vent: 0.2 s, T_release: 0.5 s, p_start: 1 bar}
  disc: {type: brake, flange: wheel, mu: 0.4, cgeo: 0.3 m, area: 20 cm2, pressure: cylinder}
  rise: {type: position_table, flange: car, table: [[0, 0], [100 m, 0.02]]}
  gravity: {type: force, flange: car, f: {product: [-9810 N, rise]}}
outputs:
  p: {signal: cylinder}
`

func TestCoachPassesTheCheck(t *testing.T) {
	if err := modeltest.Check(coach); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsOfAirBrakesAndTracksHaveAPosition(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nobody asks", "  cylinder: {type: brake_cylinder, demand: demand, ", "  «cylinder»: {type: brake_cylinder, ", `element "cylinder": brake_cylinder needs demand (pressure that the brake asks for, Pa, or the name of an input)`},
		{"no time to fill", "  cylinder: {type: brake_cylinder, demand: demand, hold: valve, vent: 0, T_fill: 0.4 s, ", "  «cylinder»: {type: brake_cylinder, demand: demand, hold: valve, vent: 0, ", `element "cylinder": brake_cylinder needs T_fill (time constant of filling, s)`},
		{"fills at once", "T_fill: 0.4 s", "T_fill: «0 s»", `element "cylinder": T_fill 0 s is not positive (time constant of filling)`},
		{"vents in a pressure", "T_vent: 0.2 s", "T_vent: «0.2 bar»", `element "cylinder": T_vent: "0.2 bar": unit bar does not fit, s is wanted`},
		{"releases backwards", "T_release: 0.5 s", "T_release: «-1 s»", `element "cylinder": T_release -1 s is not positive (time constant of releasing)`},
		{"vacuum", "p_start: 1 bar", "p_start: «-1 bar»", `element "cylinder": p_start -100000 Pa is negative (pressure at the start)`},
		{"valve more than open", "vent: 0,", "vent: «2»,", `element "cylinder": vent goes from 2 to 2; a share of 0 to 1 is wanted`},
		{"valve that is a pressure", "hold: valve", "hold: «demand»", `element "cylinder": hold: input "demand" is in Pa; 1 is wanted`},
		{"unknown key", "T_release", "«T_relase»", `element "cylinder": brake_cylinder: unknown key "T_relase" (did you mean T_release?); known are type, demand, hold, vent, T_fill, T_release, T_vent, p_start`},
		{"track without a table", "  rise: {type: position_table, flange: car, table: [[0, 0], [100 m, 0.02]]}", "  «rise»: {type: position_table, flange: car}", `element "rise": position_table needs table (rows [position, value]; m, 1)`},
		{"track of a wheel", "  rise: {type: position_table, flange: car,", "  «rise»: {type: position_table, flange: wheel,", `element "rise": node "wheel" is rotational by element "wheel"; position_table wants a translational one`},
		{"track that goes back", "[100 m, 0.02]", "«[»-100 m, 0.02]", `element "rise": table: -100 m comes after 0 m; the first column must increase`},
		{"track over time", "[100 m, 0.02]", "[«100 s», 0.02]", `element "rise": table: "100 s": unit s does not fit, m is wanted`},
		{"track without rows", "[[0, 0], [100 m, 0.02]]", "«[]»", `element "rise": table: empty; rows are wanted`},
	} {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, coach, c.old, c.new, c.want) })
	}
}
