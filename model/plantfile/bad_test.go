package plantfile_test

import (
	"testing"

	"lockstep/model/modeltest"
)

// lorry is a small sound plant of the elements that the train lacks.
const lorry = `plant: lorry
parameters: {J: 1}
inputs:
  pedal: {unit: "%", min: 0, max: 100}
  i: {unit: mA, min: 0, max: 1000, delay: 5 ms}
assemblies:
  end:
    parameters: {d: 1 N.m.s/rad, J:}
    flanges: [axle]
    signals: [p]
    elements:
      rim: {type: inertia, J: J}
      drag: {type: damper, a: axle, b: rim, d: d}
      hold: {type: brake, flange: rim, mu: 0.4, cgeo: 1, area: 10 cm2, pressure: p}
elements:
  crank: {type: inertia, J: 0.2, w_start: 800 rpm}
  engine: {type: engine, flange: crank, throttle: pedal, full_load: [[0 rpm, 100], [6000 rpm, 150]], drag: [[0, -20], [600, -20]], idle_speed: 750 rpm, idle_gain: 2, idle_torque: 50}
  converter: {type: torque_converter, impeller: crank, turbine: turbine, lambda: [[0, 0.003], [0.8, 0.002]], ratio: [[0, 2], [0.9, 1]]}
  turbine: {type: inertia, J: 0.1}
  valve: {type: hydraulic_actuator, current: i, pressure_map: [[0 mA, 0 bar], [1000 mA, 20 bar]], lag: 20 ms}
  oneway: {type: one_way_clutch, a: turbine, b: ring, mu_pos: [[0, 0.1], [100, 0.12]], cgeo: 1 m, area: 10 cm2, pressure: valve}
  ring: {type: inertia, J: J}
  set: {type: ideal_planetary, sun: turbine, carrier: out, ring: ring, ratio: 2}
  out: {type: inertia, J: 0.1}
  left: {type: end, axle: out, p: 3 bar, J: 0.5}
  play: {type: elasto_backlash, a: out, b: axle, c: 1e4, d: 10, backlash: 1 deg}
  axle: {type: inertia, J: 1}
  car: {type: vehicle, flange: axle, m: 2 t, R: 0.4 m, A: 4 m2, Cd: 0.5, Cr: 0.01, inclination: 2 %}
  trailer: {type: mass, m: 1 t}
  hitch: {type: elasto_gap, a: car, b: trailer, c: 1e5, d: 1e3}
  rub: {type: support_friction, flange: trailer, f_pos: [[0, 100], [10, 150]]}
  worm: {type: lossy_gear, a: crank, b: wheel, ratio: 20, lossTable: [[0, 0.9, 0.8, 0.1, 0.2], [100, 0.8, 0.7, 1, 2]]}
  wheel: {type: inertia, J: 1}
  fan: {type: quadratic_speed_dependent_torque, flange: crank, tau_nominal: -3, w_nominal: 300}
  test: {type: inertia, J: 1}
  bent: {type: affine_spring, a: test, b: wheel, c: [0.05, 1, 2], borders: [0.05, 0.1], offsets: [0, -0.0475, -0.1475], hysteresis: [0, 1, 2]}
  oil: {type: affine_damper, a: test, b: wheel, d: [1, 2], borders: [3], symmetric: false}
  stops: {type: clearance, a: test, b: wheel, phi_min: -1 deg, phi_max: 2 deg, restitution: 0.5}
  tyre: {type: tyre, a: wheel, b: trailer, radius: 0.3, fn: 4000, B: 10, C: 1.9, D: [[2000, 1.1], [4000, 0.9]], E: 0.97, relaxation: 0.3}
  tread: {type: tyre, a: test, b: wheel, fn: 4000, mu: 1}
  rub2: {type: deflection_damper, a: test, b: wheel, d_delta: 1}
  push: {type: torque, flange: test, tau: {sum: [1, {sine: {amplitude: 2 N.m, f: 3 Hz}}]}}
outputs:
  v: {speed: car, min: -10 km/h}
  rim: {speed: left.rim}
  p: {signal: valve}
  sensor: {pulses: wheel, teeth: 48, runout: 0.1}
  worm: {torque: [worm, engine], onto: crank}
`

func TestLorryPassesTheCheck(t *testing.T) {
	if err := modeltest.Check(lorry); err != nil {
		t.Fatal(err)
	}
}

var lorryCases = []struct {
	name, old, new string
	want           string
}{
	{"spring between turning and moving", "hitch: {type: elasto_gap, a: car, b: trailer, c: 1e5, d: 1e3}", "«hitch»: {type: spring, a: axle, b: trailer, c: 1e5}", `element "hitch": node "axle" is rotational by element "axle"; spring wants a translational one`},
	{"gear on a mass", "  fan:", "  «bad»: {type: ideal_gear, a: trailer, b: crank, ratio: 2}\n  fan:", `element "bad": node "trailer" is translational by element "trailer"; ideal_gear wants a rotational one`},
	{"force on an inertia", "  fan:", "  «bad»: {type: force, flange: crank, f: 1}\n  fan:", `element "bad": node "crank" is rotational by element "crank"; force wants a translational one`},
	{"radius of a brake on a mass", "  fan:", "  bad: {type: brake, flange: trailer, mu: 1, cgeo: «1 m», fn: 1}\n  fan:", `element "bad": cgeo: "1 m": unit m does not fit, 1 is wanted`},
	{"angle of a mass", "{signal: valve}", "{«angle»: trailer}", `output "p": angle: it moves and does not turn; position is wanted`},
	{"position of an inertia", "{signal: valve}", "{«position»: crank}", `output "p": position: it turns and does not move; angle is wanted`},
	{"rotational parameter", "  fan:", "  bad: {type: spring, a: car, b: trailer, c: 1, «phi_rel0»: 1}\n  fan:", `element "bad": it is translational; s_rel0 is wanted`},
	{"negative mass", "m: 1 t", "m: «-1 t»", `element "trailer": m -1000 kg is not positive (mass)`},
	{"NaN mass", "m: 1 t", "m: «.nan»", `element "trailer": m: .nan is not a finite number`},
	{"infinite stiffness", "c: 1e5, d: 1e3", "c: «.inf», d: 1e3", `element "hitch": c: .inf is not a finite number`},
	{"unit of a mass", "m: 1 t", "m: «1 bar»", `element "trailer": m: "1 bar": unit bar does not fit, kg is wanted`},
	{"negative tooth ratio", "ratio: 2}", "ratio: «-2»}", `element "set": ratio -2 is not positive (teeth of the ring over teeth of the sun)`},
	{"unknown planets", "ratio: 2}", "ratio: 2, planets: «triple»}", `element "set": planets: "triple" is none of single, double`},
	{"friction table not increasing", "[100, 0.12]", "«[»0, 0.12]", `element "oneway": mu_pos: 0 rad/s comes after 0 rad/s; the first column must increase`},
	{"friction table without standstill", "mu_pos: [[0, 0.1]", "mu_pos: «[»[1, 0.1]", `element "oneway": mu_pos: the first row is at slip 1; 0 is wanted`},
	{"friction table below zero", "mu_pos: [[0, 0.1], [100, 0.12]]", "mu_pos: [[0, 0.1], [100, «-0.12»]]", `element "oneway": mu_pos -0.12 is negative ([slip, coefficient], from slip 0 on)`},
	{"mu twice", "mu_pos: [[0, 0.1], [100, 0.12]]", "mu_pos: [[0, 0.1]], «mu»: 0.1", `element "oneway": mu and mu_pos; one of them is wanted`},
	{"row too long", "[100, 0.12]", "«[»100, 0.12, 3]", `element "oneway": mu_pos: row of 3 values; 2 are wanted`},
	{"engine without table", "full_load: [[0 rpm, 100], [6000 rpm, 150]]", "lag: 0.1", `17:3: model: element "engine": engine needs either map or full_load`},
	{"engine with two tables", "drag: [[0, -20], [600, -20]]", "map: {w: [0, 1], throttle: [0, 1], tau: [[0, 0], [1, 1]]}", `17:3: model: element "engine": engine needs either map or full_load`},
	{"engine map of the wrong size", "full_load: [[0 rpm, 100], [6000 rpm, 150]], drag: [[0, -20], [600, -20]]", "map: {w: [0, 1], throttle: [0, 1], tau: [[0, 0], «[»1]]}", `element "engine": map: tau: row of 1 values; one for each of the 2 values of throttle is wanted`},
	{"engine map going back", "full_load: [[0 rpm, 100], [6000 rpm, 150]], drag: [[0, -20], [600, -20]]", "map: {w: [0 rpm, «-1 rpm»], throttle: [0, 1], tau: [[0, 0], [1, 1]]}", `element "engine": map: w: -0.104719755 rad/s comes after 0 rad/s; it must increase`},
	{"override without a mode", "idle_speed: 750 rpm, idle_gain: 2, idle_torque: 50", "«override»: 1", `element "engine": override and override_mode go together`},
	{"share of nothing", "{signal: valve}", "{signal: valve, per: «0 bar»}", `output "p": per is 0 Pa; the output is a share of it, which is at least 1e-06 Pa`},
	{"drag that nothing reads", "throttle: pedal, full_load: [[0 rpm, 100], [6000 rpm, 150]], drag", "full_load: [[0 rpm, 100], [6000 rpm, 150]], «drag»", `element "engine": drag goes with throttle, on or limit_speed`},
	{"override without a throttle", "throttle: pedal, full_load", "«override»: 1, override_mode: 2, full_load", `element "engine": override goes with throttle`},
	{"start torque without a lag", "idle_speed: 750 rpm, idle_gain: 2, idle_torque: 50", "«tau_start»: 50", `element "engine": tau_start goes with lag above 0`},
	{"range of no limiter", "idle_speed: 750 rpm, idle_gain: 2, idle_torque: 50", "«limit_range»: 50 rpm", `element "engine": limit_range goes with limit_speed`},
	{"wind without air", "A: 4 m2, Cd: 0.5", "«wind»: 3", `element "car": wind goes with A and Cd`},
	{"area without a drag coefficient", "A: 4 m2, Cd: 0.5", "«A»: 4 m2", `element "car": A and Cd go together`},
	{"cooling of nothing", "  fan:", "  e: {type: eddy_current_torque, flange: crank, tau_nominal: 1, w_nominal: 1, «G»: 2}\n  fan:", `element "e": G goes with C; without it the temperature stays at T_start`},
	{"decay of nothing", "  fan:", "  e: {type: bearing_friction, flange: crank, tau_Coulomb: 1, «fexp»: 2}\n  fan:", `element "e": fexp goes with tau_Stribeck`},
	{"filter of an exact source", "  fan:", "  e: {type: speed, flange: crank, w_ref: 1, exact: true, «f_crit»: 2}\n  fan:", `element "e": f_crit goes with exact: false`},
	{"damping of a stiff tread", "E: 0.97, relaxation: 0.3", "E: 0.97, relaxation: 0, «damping»: 0.01", `element "tyre": damping has no effect with the other keys of this tyre; leave it out (damping of the tread, with relaxation)`},
	{"idle gain alone", "idle_speed: 750 rpm, idle_gain: 2, idle_torque: 50", "«idle_gain»: 2", `element "engine": idle_gain goes with idle_speed`},
	{"negative lag", "lag: 20 ms", "lag: «-20 ms»", `element "valve": lag -0.02 s is negative (time constant of the valve)`},
	{"converter without table", "lambda: [[0, 0.003], [0.8, 0.002]], ", "", `18:3: model: element "converter": torque_converter needs either lambda (N.m.s2) or K (rad/s over the root of N.m)`},
	{"converter of one row", "lambda: [[0, 0.003], [0.8, 0.002]]", "lambda: [[0, 0.003]]", `18:3: model: element "converter": lambda or K has one row; give at least two`},
	{"fill data without a volume", "lag: 20 ms", "«flow»: 1", `element "valve": flow goes with fill_volume`},
	{"kiss below fill", "lag: 20 ms", "fill_volume: 1 cm3, fill_pressure: 2 bar, kiss_pressure: «1 bar», stiffness: 1e11, flow: 1e-4", `element "valve": kiss_pressure 100000 Pa is below fill_pressure 200000 Pa`},
	{"actuator without current", "current: i, ", "", `20:3: model: element "valve": hydraulic_actuator needs current (current of the solenoid, A, or the name of an input)`},
	{"delay too long", "delay: 5 ms", "delay: «5 s»", `input "i": delay 5 s is outside 0 to 1 s`},
	{"delay negative", "delay: 5 ms", "delay: «-5 ms»", `input "i": delay -0.005 s is outside 0 to 1 s`},
	{"sine without frequency", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{sine: «{»amplitude: 2 N.m}}", `element "push": tau: sum: sine: f is missing`},
	{"sine of a wrong unit", "amplitude: 2 N.m", "amplitude: «2 bar»", `element "push": tau: sum: sine: amplitude: "2 bar": unit bar does not fit, N.m is wanted`},
	{"frequency in seconds", "f: 3 Hz", "f: «3 s»", `element "push": tau: sum: sine: f: "3 s": unit s does not fit, Hz is wanted`},
	{"unknown source parameter", "f: 3 Hz", "«freq»: 3 Hz", `element "push": tau: sum: sine: unknown key "freq"; known are amplitude, f, phase, offset, startTime`},
	{"two sources in one", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{sine: {amplitude: 2 N.m, f: 3 Hz}, «step»: {height: 1}}", `element "push": tau: sum: sine and step in one value; write a sum`},
	{"pulse longer than its period", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{trapezoid: «{»amplitude: 1, rising: 1, width: 1, falling: 1, period: 2}}", `element "push": tau: sum: trapezoid: a period of 2 s does not hold its pulse of 3 s`},
	{"damping that grows", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{exp_sine: {amplitude: 2 N.m, f: 3 Hz, damping: «-1»}}", `element "push": tau: sum: exp_sine: damping -1 1/s is negative`},
	{"half a sawtooth", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{sawtooth: «{»amplitude: 1, period: 1, nperiod: 1.5}}", `element "push": tau: sum: sawtooth: nperiod 1.5 is not a whole number up to 1000; -1 is for ever`},
	{"sawtooth without a period", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{sawtooth: «{»amplitude: 1, period: 0 s}}", `element "push": tau: sum: sawtooth: a period of 0 s does not hold its pulse of 0 s`},
	{"half a pulse", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{pulse: «{»amplitude: 1, width: 50, period: 1, nperiod: 1.5}}", `element "push": tau: sum: pulse: nperiod 1.5 is not a whole number up to 1000; -1 is for ever`},
	{"ramp backwards", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{ramp: «{»height: 1, duration: -1 s}}", `element "push": tau: sum: ramp: duration -1 s is negative`},
	{"period too short", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{table: [[0, 1], [2, 1]], period: «1 s»}", `element "push": tau: sum: table: period 1 s does not hold the table, 0 s to 2 s`},
	{"held maybe", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{table: [[0, 1], [2, 1]], held: «perhaps»}", `element "push": tau: sum: table: held: "perhaps" is neither true nor false`},
	{"held sine", "{sine: {amplitude: 2 N.m, f: 3 Hz}}", "{sine: {amplitude: 2 N.m, f: 3 Hz}, «held»: true}", `element "push": tau: sum: sine: held goes with table`},
	{"empty sum", "{sum: [1, {sine: {amplitude: 2 N.m, f: 3 Hz}}]}", "{sum: «[»]}", `element "push": tau: sum: empty; values to add are wanted`},
	{"second factor with a unit", "{sum: [1, {sine: {amplitude: 2 N.m, f: 3 Hz}}]}", "{product: [1, «2 N.m»]}", `element "push": tau: product: "2 N.m": unit N.m does not fit, 1 is wanted`},
	{"signal of another unit", "{sum: [1, {sine: {amplitude: 2 N.m, f: 3 Hz}}]}", "«valve»", `element "push": tau: signal "valve" is in Pa; N.m is wanted`},
	{"sine outside the range", "pedal: {unit: \"%\", min: 0, max: 100}", "pedal: {unit: \"%\", min: 0, max: 100, default: «{»sine: {amplitude: 60, f: 1 Hz, offset: 50}}}", `input "pedal": default reaches -10 % to 110 %, outside 0 % to 100 %`},
	{"assembly unknown flange key", "left: {type: end, axle: out,", "left: {type: end, «axel»: out,", `element "left": assembly "end": unknown key "axel" (did you mean axle?); known are type, axle, p, d, J`},
	{"assembly without flange", "  left: {type: end, axle: out, ", "  «left»: {type: end, ", `element "left": assembly "end" needs axle (the name of a node)`},
	{"assembly without parameter", "  left: {type: end, axle: out, p: 3 bar, J: 0.5}", "  «left»: {type: end, axle: out, p: 3 bar}", `element "left": assembly "end" needs parameter J`},
	{"assembly without signal", "  left: {type: end, axle: out, p: 3 bar, J: 0.5}", "  «left»: {type: end, axle: out, J: 0.5}", `element "left": assembly "end" needs p (a value over time)`},
	{"assembly parameter of another unit", "J: 0.5}", "J: 0.5, d: «3 bar»}", `element "left": d: unit bar does not fit, the assembly has N.m.s/rad`},
	{"assembly signal of another unit", "p: 3 bar, J", "p: «3 m», J", `element "left": p: "3 m": unit m does not fit, Pa is wanted`},
	{"error inside an assembly", "drag: {type: damper, a: axle, b: rim, d: d}", "drag: {type: damper, a: axle, b: rim, d: «dd»}", `element "left.drag" of assembly "end": d: "dd": "dd" is not a known parameter (did you mean d?)`},
	{"bad value through a parameter", "p: 3 bar, J: 0.5}", "p: 3 bar, J: -1}", `12:31: model: element "left.rim" of assembly "end": J -1 kg.m2 is not positive (moment of inertia)`},
	{"assembly in itself", "      drag: {", "      again: {type: «end», axle: axle, p: p}\n      drag: {", `element "left.again" of assembly "end": assembly "end" contains itself`},
	{"assembly named like a type", "  end:", "  «mass»:", `assembly "mass": an element type has the same name`},
	{"assembly without elements", "    elements:\n      rim: {type: inertia, J: J}\n      drag: {type: damper, a: axle, b: rim, d: d}\n      hold: {type: brake, flange: rim, mu: 0.4, cgeo: 1, area: 10 cm2, pressure: p}\n", "", `7:3: model: assembly "end": it has no elements`},
	{"a name taken in an assembly", "signals: [p]", "signals: [«d»]", `assembly "end": "d" is taken, or not a name (letters, digits and _)`},
	{"a sub-assembly as node", "a: out, b: axle, c: 1e4", "a: «left», b: axle, c: 1e4", `element "play": a: "left" is a sub-assembly, not a node; a node in it is left.NAME`},
	{"an unknown node in a sub-assembly", "a: out, b: axle, c: 1e4", "a: «left.rimm», b: axle, c: 1e4", `element "play": a: "left.rimm" is not a node (did you mean left.rim?)`},
	{"a signal nobody gives", "pressure: valve}", "pressure: «value»}", `element "oneway": pressure: "value": "value" is not a known parameter (did you mean valve?)`},
	{"laws in a circle", "current: i, pressure_map: [[0 mA, 0 bar], [1000 mA, 20 bar]], lag: 20 ms", "current: {sum: [i, {product: [1e-6 A/Pa, valve]}]}, pressure_map: [[0 mA, 0 bar], [1000 mA, 20 bar]]", `20:3: model: valve, valve.p_map depend on each other without a state between; give one of them a lag`},
	{"speed source that jumps", "  fan:", "  drive: {type: speed, flange: test, w_ref: {step: {height: 1}}, exact: «true»}\n  fan:", `element "drive": exact: the source jumps, which takes an infinite torque; use f_crit`},
	{"speed source of an input", "  fan:", "  drive: {type: speed, flange: test, w_ref: {product: [1 rad/s, pedal]}, exact: «true»}\n  fan:", `element "drive": exact wants a source that is known in advance; "drive.w_ref" is not, use f_crit`},
	{"speed source of a position", "  fan:", "  drive: {type: speed, flange: test, «v_ref»: 1}\n  fan:", `element "drive": it is rotational; w_ref is wanted`},
	{"two speed sources on one node", "  fan:", "  drive: {type: speed, flange: test, w_ref: 1}\n  «drive2»: {type: speed, flange: test, w_ref: 1}\n  fan:", `element "drive2": the speed it gives contradicts the gears and the other speed sources`},
	{"exact perhaps", "  fan:", "  drive: {type: speed, flange: test, w_ref: 1, exact: «maybe»}\n  fan:", `element "drive": exact: "maybe" is none of true, false`},
	{"clutch between driven nodes", "  fan:", "  drive: {type: speed, flange: test, w_ref: 1}\n  «grip»: {type: brake, flange: test, mu: 1, cgeo: 1, fn: 1}\n  fan:", `element "grip": the speeds of both its sides are prescribed; remove it`},
	{"power of a gear", "{signal: valve}", "{power: «set»}", `output "p": power: type ideal_planetary has no power to read`},
	{"torque of a gear without node", "{signal: valve}", "{torque: «set»}", `output "p": torque: type ideal_planetary has no torque to read; with onto: NODE beside it, it is what "set" exerts on that node`},
	{"torque that needs itself", "  fan:", "  «cut»: {type: torque_sensor, a: crank, b: more}\n  more: {type: inertia, J: 1}\n  back: {type: torque, flange: more, tau: cut}\n  fan:", `cut depends on itself without a state between; give it a lag`},
	{"loss table going back", "  fan:", "  bad: {type: lossy_gear, a: crank, b: more, ratio: 2, lossTable: [[0, 1, 1, 0, 0], «[»0, 1, 1, 0, 0]]}\n  more: {type: inertia, J: 1}\n  fan:", `element "bad": lossTable: 0 rad/s comes after 0 rad/s; the first column must increase`},
	{"efficiency zero", "  fan:", "  bad: {type: lossy_gear, a: crank, b: more, ratio: 2, lossTable: «[»[0, 0, 1, 0, 0]]}\n  more: {type: inertia, J: 1}\n  fan:", `element "bad": lossTable: eta_mf1 0 in row 1 is outside 1e-06 to 1`},
	{"efficiency above one", "  fan:", "  bad: {type: lossy_gear, a: crank, b: more, ratio: 2, lossTable: «[»[0, 0.9, 1.1, 0, 0]]}\n  more: {type: inertia, J: 1}\n  fan:", `element "bad": lossTable: eta_mf2 1.1 in row 1 is not 0 and outside 1e-06 to 1`},
	{"negative bearing torque", "  fan:", "  bad: {type: lossy_gear, a: crank, b: more, ratio: 2, lossTable: «[»[0, 0.9, 0.9, -1, 0]]}\n  more: {type: inertia, J: 1}\n  fan:", `element "bad": lossTable: tau_bf -1, 0 N.m in row 1 is negative`},
	{"bearing torques of a gear without mesh losses", "  fan:", "  bad: {type: lossy_gear, a: crank, b: more, ratio: 2, lossTable: «[»[0, 1, 1, 1, 2]]}\n  more: {type: inertia, J: 1}\n  fan:", `element "bad": lossTable: tau_bf1 1 and tau_bf2 2 N.m in row 1 differ, but no efficiency does; without mesh losses the bearings take the same either way`},
	{"worm without an inertia", "  fan:", "  free: {type: torque, flange: light, tau: 1}\n  «bad»: {type: lossy_gear, a: light, b: more, ratio: 2, lossTable: [[0, 0.4, 0, 0, 0]]}\n  more: {type: inertia, J: 1}\n  fan:", `element "bad": eta_mf2 is 0, but there is no inertia on its flange a to hold still`},
	{"lossy gear between strong friction", "  fan:", "  small: {type: inertia, J: 0.01}\n  grip: {type: clutch, a: crank, b: small, mu: 1, cgeo: 1, fn: 1}\n  «bad»: {type: lossy_gear, a: small, b: more, ratio: 1, lossTable: [[0, 0.9, 0.01, 0, 0]]}\n  more: {type: inertia, J: 10}\n  fan:", `element "bad": its losses depend too strongly on other friction elements (gain 1.8, limit 0.75); use larger efficiencies, or put a spring between`},
	{"spring without borders", "  bent: {type: affine_spring, a: test, b: wheel, c: [0.05, 1, 2], borders: [0.05, 0.1], offsets: [0, -0.0475, -0.1475]", "  «bent»: {type: affine_spring, a: test, b: wheel, c: [0.05, 1, 2]", `element "bent": affine_spring needs borders (limits between the regions, increasing, rad)`},
	{"borders that do not increase", "borders: [0.05, 0.1]", "borders: «[0.1, 0.05]»", `element "bent": borders: 0.05 rad comes after 0.1 rad; they must increase`},
	{"border twice", "borders: [0.05, 0.1]", "borders: «[0.1, 0.1]»", `element "bent": borders: 0.1 rad comes after 0.1 rad; they must increase`},
	{"negative border", "borders: [0.05, 0.1]", "borders: «[-0.05, 0.1]»", `element "bent": borders: -0.05 rad is not positive; they are those of |phi_rel|, or write symmetric: false`},
	{"border that is no number", "borders: [0.05, 0.1]", "borders: [«x», 0.1]", `element "bent": borders: "x": "x" is not a known parameter`},
	{"border in N", "borders: [0.05, 0.1]", "borders: [«0.05 N», 0.1]", `element "bent": borders: "0.05 N": unit N does not fit, rad is wanted`},
	{"one slope too few", "c: [0.05, 1, 2]", "c: «[0.05, 1]»", `element "bent": c has 2 values; 2 borders make 3 regions`},
	{"offset that jumps (table 2 of the thesis)", "offsets: [0, -0.0475, -0.1475]", "offsets: «[0, -0.047, -0.147]»", `element "bent": offsets: -0.047 N.m jumps by 0.0005 N.m at the border 0.05 rad; -0.0475 N.m is continuous, and what is computed where offsets is left out`},
	{"offset of a damper that jumps", "d: [1, 2], borders: [3]", "d: [1, 2], offsets: «[0, -2]», borders: [3]", `element "oil": offsets: -2 N.m jumps by 1 N.m at the border 3 rad/s; -3 N.m is continuous, and what is computed where offsets is left out`},
	{"restitution that is no number", "restitution: 0.5", "restitution: «.nan»", `element "stops": restitution: .nan is not a finite number`},
	{"offset at zero", "offsets: [0, -0.0475, -0.1475]", "offsets: «[1, 0.9525, 0.8525]»", `element "bent": offsets: 1 N.m at phi_rel = 0 is a jump; friction beside the spring gives one`},
	{"one offset too many", "offsets: [0, -0.0475, -0.1475]", "offsets: «[0, 1, 2, 3]»", `element "bent": offsets has 4 values; 2 borders make 3 regions`},
	{"negative hysteresis", "hysteresis: [0, 1, 2]", "hysteresis: «-1»", `element "bent": hysteresis -1 N.m is negative (width of the loop, a number or one of each region)`},
	{"hysteresis of both sides", "hysteresis: [0, 1, 2]", "hysteresis: «[2, 1, 0, 1, 2]»", `element "bent": hysteresis has 5 values; one is wanted, or one for each region`},
	{"damping of other regions", "hysteresis: [0, 1, 2]", "d: «[1, 2]»", `element "bent": d has 2 values; one is wanted, or one for each region`},
	{"damping that drives", "hysteresis: [0, 1, 2]", "d: [0, «-1», 2]", `element "bent": d -1 N.m.s/rad is negative (damping, a number or one of each region)`},
	{"hysteresis of other regions", "hysteresis: [0, 1, 2]", "hysteresis: «[1, 2]»", `element "bent": hysteresis has 2 values; one is wanted, or one for each region`},
	{"damper without slopes", "  oil: {type: affine_damper, a: test, b: wheel, d: [1, 2]", "  «oil»: {type: affine_damper, a: test, b: wheel", `element "oil": affine_damper needs d (damping of each region, N.m.s/rad)`},
	{"spring whose ends are rigid", "a: test, b: wheel, c: [0.05", "a: wheel, b: «wheel», c: [0.05", `element "bent": a and b are the same node "wheel"`},
	{"damper on a massless node", "  oil: {type: affine_damper, a: test", "  more: {type: damper, a: bare, b: test, d: 1}\n  «oil»: {type: affine_damper, a: bare", `element "oil": its deflection or slip follows from the torques on a massless node; give that node an inertia`},
	{"negative damping of the deflection", "d_delta: 1", "d_delta: «-1»", `element "rub2": d_delta -1 N.m.s/rad2 is negative (damping per deflection)`},
	{"clearance without ends", "  stops: {type: clearance, a: test, b: wheel, phi_min: -1 deg, phi_max: 2 deg", "  «stops»: {type: clearance, a: test, b: wheel", `element "stops": clearance needs phi_min or phi_max (the ends of its play, rad)`},
	{"clearance without play", "phi_max: 2 deg", "phi_max: «-1 deg»", `element "stops": phi_max -0.0174532925 rad is not above phi_min -0.0174532925 rad; there is no play`},
	{"restitution above 1", "restitution: 0.5", "restitution: «1.1»", `element "stops": restitution 1.1 is outside 0 to 1 (0: plastic impact, 1: elastic)`},
	{"k_s below 1", "restitution: 0.5", "k_s: «0.9»", `element "stops": k_s 0.9 is below 1 (force on the pushing body over that on the other)`},
	{"restitution below 0", "restitution: 0.5", "restitution: «-0.1»", `element "stops": restitution -0.1 is outside 0 to 1 (0: plastic impact, 1: elastic)`},
	{"clearance that moves where it turns", "phi_max: 2 deg", "«s_max»: 2", `element "stops": it is rotational; phi_max is wanted`},
	{"gap closed at the start", "  stops: {", "  «stops»: {phi_rel_start: -1 deg, ", `element "stops.min": at the start it is closed; start it inside its play`},
	{"gap overlapping at the start", "  stops: {", "  «stops»: {phi_rel_start: 0.1 rad, ", `element "stops.max": at the start it is overlapping by 0.065093415 rad; start it inside its play`},
	{"tyre without load", "  tyre: {type: tyre, a: wheel, b: trailer, radius: 0.3, fn: 4000,", "  «tyre»: {type: tyre, a: wheel, b: trailer, radius: 0.3,", `element "tyre": tyre needs fn (normal force, N, or the name of an input)`},
	{"tyre that is lifted", "radius: 0.3, fn: 4000", "radius: 0.3, fn: «0»", `element "tyre": fn 0 N is never positive; a tyre transmits nothing then`},
	{"tyre on a road without friction", "radius: 0.3, fn: 4000", "radius: 0.3, fn: 4000, friction: «-1»", `element "tyre": friction -1 is never positive; a tyre transmits nothing then`},
	{"tyre with a sum that lifts it", "radius: 0.3, fn: 4000", "radius: 0.3, fn: «{sum: [1, -5]}»", `element "tyre": fn -4 N is never positive; a tyre transmits nothing then`},
	{"tyre with a product that lifts it", "radius: 0.3, fn: 4000", "radius: 0.3, fn: «{product: [{table: [[0, -2], [1, -1]]}, 3, {sine: {amplitude: 1, f: 1, offset: 2}}]}»", `element "tyre": fn -3 N is never positive; a tyre transmits nothing then`},
	{"tyre with a radius of zero", "radius: 0.3, fn: 4000", "radius: «0», fn: 4000", `element "tyre": radius 0 m is not positive (effective radius of the wheel)`},
	{"tyre with both laws", "fn: 4000, B: 10", "fn: 4000, mu: 1, «B»: 10", `element "tyre": B and mu: a tyre is Coulomb friction (mu, peak) or the magic formula (B, C, D, E)`},
	{"tyre without a stiffness factor", "  tyre: {type: tyre, a: wheel, b: trailer, radius: 0.3, fn: 4000, B: 10,", "  «tyre»: {type: tyre, a: wheel, b: trailer, radius: 0.3, fn: 4000,", `element "tyre": tyre needs B (of the magic formula), or mu`},
	{"tyre without a peak", "D: [[2000, 1.1], [4000, 0.9]]", "D: «0»", `element "tyre": D 0 is not positive (peak factor, largest force over fn; [fn, D])`},
	{"tyre of loads that fall", "D: [[2000, 1.1], [4000, 0.9]]", "D: [[4000, 1.1], «[2000, 0.9]»]", `element "tyre": D: 2000 N comes after 4000 N; the first column must increase`},
	{"tyre without a radius", "  tyre: {type: tyre, a: wheel, b: trailer, radius: 0.3,", "  «tyre»: {type: tyre, a: wheel, b: trailer,", `element "tyre": tyre needs radius (effective radius of the wheel, m)`},
	{"tyre of a turning vehicle with a radius", "b: wheel, fn: 4000, mu: 1", "b: wheel, «radius»: 1, fn: 4000, mu: 1", `element "tread": radius goes with a vehicle that moves; "wheel" turns with the wheel`},
	{"tyre with a negative friction", "fn: 4000, mu: 1", "fn: 4000, mu: «-1»", `element "tread": mu -1 is not positive (coefficient of Coulomb friction)`},
	{"damping without relaxation", "E: 0.97, relaxation: 0.3", "E: 0.97, «damping»: 0.01", `element "tyre": damping goes with relaxation`},
	{"v_low with relaxation", "relaxation: 0.3", "relaxation: 0.3, «v_low»: 1", `element "tyre": v_low goes without relaxation`},
	{"negative relaxation", "relaxation: 0.3", "relaxation: «-0.3»", `element "tyre": relaxation -0.3 m is negative (relaxation length; 0: none)`},
	{"unknown state", "{signal: valve}", "{state: «valve.p_valf»}", `output "p": state: "valve.p_valf" is not a state (did you mean valve.p_valve?)`},
	{"unknown signal", "{signal: valve}", "{signal: «valv»}", `output "p": signal: "valv" is not an input (did you mean valve?)`},
	{"torque of a mass", "{signal: valve}", "{«torque»: hitch}", `output "p": torque: it moves and does not turn; force is wanted`},
	{"output range upside down", "min: -10 km/h", "min: 10 m/s, max: «1 m/s»", `output "v": max 1 m/s is below min 10 m/s`},
	{"output range without a unit", "min: -10 km/h", "min: «10»", `output "v": min: 10 needs a unit: 10 m/s?`},
	{"output unit that does not fit", "{signal: valve}", "{signal: valve, unit: «m»}", `output "p": unit "m" (m) does not fit "Pa" (kg/m/s2)`},
	{"unknown output unit", "{signal: valve}", "{signal: valve, unit: «barr»}", `output "p": unit "barr": "barr" is not a known unit`},
	{"share of a number without a unit", "{signal: valve}", "{signal: valve, per: «2»}", `output "p": per: 2 needs a unit: 2 Pa?`},
	{"unit of pulses", "runout: 0.1", "«unit»: rpm", `output "sensor": pulses: unit does not go with pulses; they are counted`},
	{"pulses of a mass", "{pulses: wheel", "{pulses: «trailer»", `output "sensor": pulses: "trailer" moves and does not turn; name a node that turns`},
	{"pulses of no node", "{pulses: wheel", "{pulses: «whee»", `output "sensor": pulses: "whee" is not a node (did you mean wheel?)`},
	{"pulses without teeth", "{pulses: wheel, teeth: 48, runout: 0.1}", "{«pulses»: wheel}", `output "sensor": pulses: teeth, the edges of a turn, are wanted`},
	{"half a tooth", "teeth: 48", "teeth: «47.5»", `output "sensor": pulses: teeth 47.5 is not a whole number from 1 to 100000`},
	{"no tooth", "teeth: 48", "teeth: «0»", `output "sensor": pulses: teeth 0 is not a whole number from 1 to 100000`},
	{"too many teeth", "teeth: 48", "teeth: «1e30»", `output "sensor": pulses: teeth 1e+30 is not a whole number from 1 to 100000`},
	{"teeth in degrees", "teeth: 48", "teeth: «48 bar»", `output "sensor": pulses: teeth: "48 bar": unit bar does not fit, 1 is wanted`},
	{"runout beyond a half", "runout: 0.1", "runout: «0.6»", `output "sensor": pulses: runout 0.6 is outside 0 to 0.5 of a pitch`},
	{"bare offset", "{signal: valve}", "{signal: valve, offset: «3»}", `output "p": offset: 3 needs a unit: 3 Pa?`},
	{"bare offset of an output in rpm", "{signal: valve}", "{speed: crank, unit: rpm, offset: «3»}", `output "p": offset: 3 needs a unit: 3 rpm?`},
	{"offset of another unit", "{signal: valve}", "{signal: valve, offset: «3 N»}", `output "p": offset: "3 N": unit N does not fit, Pa is wanted`},
	{"sum of two units", "{signal: valve}", "{sum: [{speed: crank}, «{»speed: car}]}", `output "p": sum: term 2 is in m/s, the first term in rad/s; a sum needs one unit`},
	{"sum of nothing", "{signal: valve}", "{sum: «[»]}", `output "p": sum: the list is empty; write terms such as {speed: NODE, factor: -1}`},
	{"sum of numbers", "{signal: valve}", "{sum: [«1 bar», 2 bar]}", `output "p": sum: term 1: expected keys with values, got "1 bar"`},
	{"term without a quantity", "{signal: valve}", "{sum: [«{»factor: 2}]}", `output "p": sum: term 1: one of speed, w_rel, phi_rel, torque, signal, angle, position, acceleration, v_rel, s_rel, force, power, energy, work, dissipated, state is wanted`},
	{"term with a range", "{signal: valve}", "{sum: [{speed: crank, «min»: 0}]}", `output "p": sum: term 1: unknown key "min"; known are speed, w_rel, phi_rel, torque, signal, angle, position, acceleration, v_rel, s_rel, force, power, energy, work, dissipated, state, onto, factor, offset`},
	{"scaled pulses", "runout: 0.1", "«factor»: 2", `output "sensor": pulses: factor does not go with pulses; they are counted`},
	{"teeth of a speed", "{signal: valve}", "{signal: valve, «teeth»: 3}", `output "p": teeth goes with pulses`},
	{"age that is taken", "worm: {torque: [worm, engine], onto: crank}", "«sensor.age»: {speed: crank}", `output "sensor.age": "sensor.age" is an output of pulses, too; rename one`},
	{"age taken before", "  p: {signal: valve}\n  sensor", "  sensor.age: {signal: valve}\n  «sensor»", `output "sensor": pulses: "sensor.age" is an output of pulses, too; rename one`},
	{"massless node on springs with a torque", "  fan:", "  s1: {type: spring, a: test, b: «n», c: 1}\n  t1: {type: torque, flange: n, tau: 1}\n  fan:", `node "n" is massless, hangs on springs alone, and a torque acts on it; give it an inertia, or a damper`},
	{"massless nodes that nothing holds", "  fan:", "  f1: {type: torque, flange: «n1», tau: 1}\n  g1: {type: ideal_gear, a: n1, b: n2, ratio: 2}\n  g2: {type: ideal_gear, a: n2, b: n3, ratio: 2}\n  f2: {type: torque, flange: n3, tau: 1}\n  fan:", `node "n1" is massless and nothing determines its speed (it touches f1, g1); give it an inertia, or a gear to a node that has one`},
}

func TestErrorsOfElementsHaveAPosition(t *testing.T) {
	for _, c := range lorryCases {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, lorry, c.old, c.new, c.want) })
	}
}
