package plantfile_test

import (
	"slices"
	"strings"
	"testing"

	"lockstep/model/modeltest"
)

// patterned is a plant with an assembly that is used twice, and a mass.
const patterned = `plant: t
inputs:
  p: {unit: bar, max: 20, min: 0}
assemblies:
  end:
    flanges: [axle]
    elements:
      rim: {type: inertia, J: 1}
      shaft: {type: spring_damper, a: axle, b: rim, c: 100, d: 1}
      brake: {type: brake, flange: rim, fn: 3}
elements:
  hub: {type: inertia, J: 1, w_start: 3}
  ground: {type: fixed}
  left: {type: end, axle: hub}
  right: {type: end, axle: hub}
  sled: {type: mass, m: 1}
  mount: {type: spring, a: floor, b: sled, c: 5}
  floor: {type: fixed, s0: 0}
  hold: {type: clutch, a: ground, b: hub, area: 1 cm2, pressure: p}
outputs:
`

// Each pattern makes the outputs that single entries would make.
func TestPatternsMakeOutputs(t *testing.T) {
	for pattern, want := range map[string]string{
		`"*.w": all`:                           "hub.w left.rim.w right.rim.w",
		`"*.v": all`:                           "sled.v",
		`"left.*.w": all`:                      "left.rim.w",
		`"*.tau": all`:                         "hub.tau left.rim.tau left.shaft.tau right.rim.tau right.shaft.tau",
		`"*.f": all`:                           "sled.f mount.f",
		`"*.s_rel": all`:                       "sled.s_rel mount.s_rel",
		`"*.lossPower": all`:                   "hold.lossPower left.brake.lossPower left.shaft.lossPower right.brake.lossPower right.shaft.lossPower",
		`"left.*.lossPower": all`:              "left.brake.lossPower left.shaft.lossPower",
		`"*.twist": all`:                       "left.shaft.twist right.shaft.twist mount.twist",
		`"n_*": {speed: "*", unit: rpm}`:       "n_hub n_left.rim n_right.rim",
		`"v_*": {speed: "*", unit: km/h}`:      "v_sled",
		`"*_turn": {phi_rel: "*.shaft"}`:       "left_turn right_turn",
		`"P.*": {power: "*"}`:                  "P.hub P.left.rim P.left.shaft P.left.brake P.right.rim P.right.shaft P.right.brake P.sled P.mount P.hold",
		"hub.w: {speed: sled}\n  \"*.w\": all": "hub.w left.rim.w right.rim.w",
	} {
		sys := modeltest.System(t, patterned+"  "+pattern+"\n")
		var names []string
		for _, o := range sys.Outputs {
			names = append(names, o.Name)
		}
		if list := strings.Fields(want); !slices.Equal(names, list) {
			t.Errorf("%s makes %q, want %q", pattern, names, list)
		}
	}
}

func TestPatternsThatMatchNothingAreRefused(t *testing.T) {
	for _, c := range [][2]string{
		{`«"*.x"»: all`, `output "*.x": nothing that state can read matches "*.x"; there is left.shaft.twist, right.shaft.twist, mount.twist`},
		{`«"wheel*.w"»: all`, `output "wheel*.w": nothing that speed can read matches "wheel*"; there is hub, left.rim, right.rim`},
		{`"*.w": «some»`, `output "*.w": a pattern is NAMES.VARIABLE: all, such as "*.w": all, or has an entry, such as {speed: "*"}`},
		{`"n*": {speed: «hub»}`, `output "n*": speed: a pattern needs one * in the name of the output and one in "hub"`},
		{`«"n*"»: {speed: "*", unit: bar}`, `output "n*": nothing that speed can read matches "*"; there is hub, left.rim, right.rim`},
		{`"n*": {«sped»: "*"}`, `output "n*": unknown key "sped" (did you mean speed?); known are speed, w_rel, phi_rel, torque, signal, angle, position, acceleration, v_rel, s_rel, force, power, energy, work, dissipated, state, onto, factor, offset, per, unit, min, max`},
	} {
		modeltest.Refuse(t, patterned+"  w: {speed: hub}\n", "  w: {speed: hub}", "  "+c[0], c[1])
	}
}
