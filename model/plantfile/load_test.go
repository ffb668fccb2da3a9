package plantfile_test

import (
	"os"
	"strings"
	"testing"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/plantfile"
)

func TestTrainPassesTheCheck(t *testing.T) {
	if err := modeltest.Check(modeltest.Train); err != nil {
		t.Fatal(err)
	}
}

func TestByteOrderMarkAndCarriageReturnsAreAccepted(t *testing.T) {
	if err := modeltest.Check("\ufeff" + strings.ReplaceAll(modeltest.Train, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
}

// badCases spoil the train: old is replaced by new, in which «» marks the place that
// the error must name.
var badCases = []struct {
	name, old, new string
	want           string
}{
	{"not YAML", "plant: train\nabout", "plant: [train\n«about»", `YAML: ',' or ']' must be specified`},
	{"not a mapping", modeltest.Train, "«hello»", `plant file: expected keys with values, got "hello"`},
	{"empty file", modeltest.Train, "«»", `the file is empty; it begins with plant: NAME, bench: NAME, scenario: NAME or sweep: NAME`},
	{"tab in the indentation", "  drag: {", "«\t»drag: {", `the line is indented with a tab: indent with blanks`},
	{"tab behind the indentation", "  drag: {", "  «\t»drag: {", `the line is indented with a tab: indent with blanks`},
	{"two documents", "about:", "---\n«about»:", `a second document begins here; a file holds one`},
	{"an alias", "J_wheel: 0.5 kg.m2", "J_wheel: «&»j 0.5", `"&": anchors, aliases, tags, merge keys and ? keys are not supported; write each value where it is needed`},
	{"too many keys", modeltest.Train, "a: {" + strings.Repeat("b: 1, ", 10000-2) + "c«:» 1}", `more than 10000 keys`},
	{"nested too deeply", "J_wheel: 0.5 kg.m2", "J_wheel: " + strings.Repeat("[", 16) + "«[»", `nested too deeply`},
	{"too long", modeltest.Train, "«»" + strings.Repeat("#", 256<<10+1), `the file has 262145 bytes, more than 262144`},
	{"no name", "plant: train\nabout: two wheels and a clutch\n", "«»", `plant file: plant: NAME is missing`},
	{"bad name", "plant: train", "plant: «a b»", `plant: "a b" is not a name (letters, digits, _ and -)`},
	{"unknown section", "about:", "«abuot»:", `plant file: unknown key "abuot" (did you mean about?); known are plant, about, parameters, inputs, start, assemblies, elements, outputs, partition`},
	{"duplicate section", "about: two", "about: one\n«about»: two", `key "about" appears twice, first at line 2, column 1`},
	{"duplicate element", "  wheel: {", "  «motor»: {", `key "motor" appears twice, first at line 10, column 3`},
	{"no elements", modeltest.Train, "«plant»: x", `plant file: elements: is missing; there is nothing to simulate`},
	{"elements empty", modeltest.Train, "plant: x\n«elements»:", `elements: expected keys with values, got nothing`},
	{"no inertia", modeltest.Train, "«»plant: x\nelements: {f: {type: fixed}}", `the plant has no inertia; nothing can move`},

	{"unknown type", "type: inertia, J: 2", "type: «inertai», J: 2", `element "motor": unknown type "inertai" (did you mean inertia?)`},
	{"type that we do not have", "type: inertia, J: 2", "type: «shaft», J: 2", `element "motor": unknown type "shaft": there is none; use spring_damper between inertias for an elastic shaft; elements are joined rigidly where they name the same node, others by a disc or a rod`},
	{"type with its path", "type: inertia, J: 2", "type: «Modelica.Mechanics.Rotational.Components.Inertia», J: 2", `element "motor": unknown type "Modelica.Mechanics.Rotational.Components.Inertia" (did you mean inertia?)`},
	{"type of a part of a name", "type: inertia, J: 2", "type: «staticFriction», J: 2", "element \"motor\": unknown type \"staticFriction\"; alike are mass_with_stop_and_friction, bearing_friction, support_friction; `lockstep help plant` lists the types"},
	{"type like no other", "type: inertia, J: 2", "type: «zzzzzzzzzzzz», J: 2", "element \"motor\": unknown type \"zzzzzzzzzzzz\"; `lockstep help plant` lists the types"},
	{"b of a backlash, beside the flange", "c: 100", "c: 100, «b»: 0.1 rad", `key "b" appears twice, first at line 16, column 42; b is the second flange, and the backlash of elasto_backlash is called backlash`},
	{"b of a backlash, as the flange", "{type: spring_damper, a: frame, b: wheel", "{type: elasto_backlash, a: frame, b: «0.1»", `element "shaft": b: "0.1" is not a name for a node (letters, digits and _); b is the second flange, and the backlash is called backlash`},
	{"flanges of Modelica", "{type: damper, a: frame", "{type: damper, «flange_a»: frame", `element "drag": damper: the flange flange_a is called a`},
	{"no type", "  motor: {type: inertia, ", "  «motor»: {", `element "motor": type is missing; such as inertia, mass, fixed, damper, spring, spring_damper, torque, force, ...`},
	{"unknown key", "mu: 0.1", "«my»: 0.1", `element "grip": clutch: unknown key "my" (did you mean mu?); known are type, a, b, mu, mu_pos, cgeo, peak, fn, f_normalized, fn_max, pressure, area, p0, factor_T, temperature, heat_port`},
	{"element is a number", "{type: fixed}", "«3»", `element "frame": expected keys with values, got "3"`},
	{"bad element name", "frame: {type: fixed}", "«my-frame»: {type: fixed}", `element "my-frame": not a name for an element (letters, digits and _)`},
	{"missing parameter", "  drag: {type: damper, a: frame, b: wheel, d: 0.01}", "  «drag»: {type: damper, a: frame, b: wheel}", `element "drag": damper needs d (damping, N.m.s/rad)`},
	{"missing flange", "  drag: {type: damper, a: frame, b: wheel,", "  «drag»: {type: damper, a: frame,", `element "drag": damper needs b (the name of a node)`},

	{"negative inertia", "J: 2*J_wheel", "J: «-0.2 kg.m2»", `element "motor": J -0.2 kg.m2 is not positive (moment of inertia)`},
	{"zero inertia", "J: 2*J_wheel", "J: «0»", `element "motor": J 0 kg.m2 is not positive (moment of inertia)`},
	{"NaN inertia", "J: 2*J_wheel", "J: «.nan»", `element "motor": J: .nan is not a finite number`},
	{"infinite inertia", "J: 2*J_wheel", "J: «.inf»", `element "motor": J: .inf is not a finite number`},
	{"huge inertia", "J: 2*J_wheel", "J: «1e999»", `element "motor": J: "1e999": 1e999 is not a finite number`},
	{"overflow", "J: 2*J_wheel", "J: «1e300*1e300»", `element "motor": J: "1e300*1e300": +Inf kg.m2 is not a finite number`},
	{"zero ratio", "ratio: -i1", "ratio: «0»", `element "pair": ratio 0 is zero (speed of a over speed of b)`},
	{"negative damping", "d: 0.01}", "d: «-0.01»}", `element "drag": d -0.01 N.m.s/rad is negative (damping)`},
	{"zero stiffness", "c: 100", "c: «0»", `element "shaft": c 0 N.m/rad is not positive (stiffness)`},
	{"negative friction", "mu: 0.1", "mu: «-0.1»", `element "grip": mu -0.1 is negative (coefficient of friction, without mu_pos)`},
	{"peak below one", "mu: 0.1", "mu: 0.1, peak: «0.9»", `element "grip": peak 0.9 is below 1 (static over sliding friction)`},

	{"clutch connected to nothing", "b: wheel, mu", "b: «nowhere», mu", `element "grip": node "nowhere" is connected to nothing else; name an inertia, or give it a gear`},
	{"misspelt node", "b: wheel, d: 0.01", "b: «whel», d: 0.01", `element "drag": node "whel" is connected to nothing else (did you mean wheel?); name an inertia, or give it a gear`},
	{"ground that is no element", "a: frame, b: wheel, d: 0.01", "a: «ground», b: wheel, d: 0.01", `element "drag": node "ground" is no element, so it would move; add the element ground: {type: fixed}`},
	{"element as node", "b: wheel, d: 0.01", "b: «grip», d: 0.01", `element "drag": b: "grip" is of type clutch, not a node; nodes are inertias, fixed, and names of your own`},
	{"number as node", "b: wheel, d: 0.01", "b: «12», d: 0.01", `element "drag": b: "12" is not a name for a node (letters, digits and _)`},
	{"both ends on one node", "a: frame, b: wheel, d: 0.01", "a: wheel, b: «wheel», d: 0.01", `element "drag": a and b are the same node "wheel"`},
	{"clutch without force", "  grip: {type: clutch, a: loose, b: wheel, mu: 0.1, cgeo: 0.5 m, area: 20 cm2, pressure: press}", "  «grip»: {type: clutch, a: loose, b: wheel, mu: 0.1, cgeo: 0.5}", `element "grip": clutch needs either fn (normal force, N) or area and pressure`},
	{"area with fn", "area: 20 cm2, pressure: press", "fn: 10 N, «area»: 20 cm2", `element "grip": area goes with pressure, not with fn`},
	{"fn_max with fn", "area: 20 cm2, pressure: press", "fn: 10 N, «fn_max»: 20 N", `element "grip": fn_max goes with f_normalized`},

	{"unit does not fit", "J: 2*J_wheel", "J: «3 bar»", `element "motor": J: "3 bar": unit bar does not fit, kg.m2 is wanted`},
	{"compound unit does not fit", "J: 2*J_wheel", "J: «J_wheel/2 s»", `element "motor": J: "J_wheel/2 s": unit kg.m2/s does not fit, kg.m2 is wanted`},
	{"percent is no length", "cgeo: 0.5 m", "cgeo: «50 %»", `element "grip": cgeo: "50 %": unit % does not fit, m is wanted`},
	{"frequency is no speed", "120 rpm", "«2 Hz»", `element "motor": w_start: "2 Hz": unit Hz does not fit, rad/s is wanted`},
	{"unknown unit", "J: 2*J_wheel", "J: «3 kgm2»", `element "motor": J: "3 kgm2": "kgm2" is not a known unit; write 3 kg.m2`},
	{"unknown parameter", "J: 2*J_wheel", "J: «2*J_whel»", `element "motor": J: "2*J_whel": "J_whel" is not a known parameter (did you mean J_wheel?)`},
	{"parameter used too early", "J_wheel: 0.5 kg.m2", "J_wheel: «i1»", `parameter "J_wheel": "i1": "i1" is not a known parameter; a parameter may use those above it`},
	{"adding unlike units", "2*J_wheel", "«J_wheel + 1 bar»", `element "motor": J: "J_wheel + 1 bar": units kg.m2 and bar cannot be added`},
	{"adding a bare number", "2*J_wheel", "«J_wheel + 1»", `element "motor": J: "J_wheel + 1": units kg.m2 and 1 cannot be added`},
	{"division by zero", "i1: 75/50", "i1: «75/0»", `parameter "i1": "75/0": division by zero`},
	{"value is a list", "J: 2*J_wheel", "J: «[»1]", `element "motor": J: expected one value, got a list`},
	{"value is missing", "J: 2*J_wheel", "«J»:", `element "motor": J: a value is missing`},

	{"undeclared input", "tau: pedal", "tau: «pedel»", `element "drive": tau: "pedel": "pedel" is not a known parameter (did you mean pedal?)`},
	{"input of another unit", "tau: pedal", "tau: «press»", `element "drive": tau: input "press" is in Pa; N.m is wanted`},
	{"unread input", "  pedal: {", "  «spare»: {unit: 1}\n  pedal: {", `input "spare": nothing reads it; remove it, or name it in an element`},
	{"input without unit", "  pedal: {unit: N.m, ", "  «pedal»: {", `input "pedal": unit is missing; write 1 for a bare number`},
	{"input of unknown unit", "unit: N.m", "unit: «bars»", `input "pedal": unit "bars": "bars" is not a known unit; write bar`},
	{"min above max", "max: 20", "max: «-1»", `input "press": max -1 bar is below min 0 bar`},
	{"default outside", "default: {table: [[0, 0], [1 s, 5]]}", "default: «{»table: [[0, 0], [1 s, 25]]}", `input "press": default 25 bar at 1 s is outside 0 bar to 20 bar`},
	{"default zero outside", "  pedal: {unit: N.m, min: -10,", "  «pedal»: {unit: N.m, min: 1,", `input "pedal": default 0 N.m at 0 s is outside 1 N.m to 10 N.m`},
	{"empty table", "[[0, 0], [1 s, 5]]", "«[»]", `input "press": default: table: empty; at least one row [time, value] is wanted`},
	{"table going back", "[1 s, 5]", "[1 s, 5], «[»0.5 s, 5]", `input "press": default: table: time 0.5 s comes after 1 s; times must not decrease`},
	{"row of three", "[1 s, 5]", "«[»1 s, 5, 6]", `input "press": default: table: row of 3 values; [time, value] is wanted`},
	{"rows without brackets", "[[0, 0], [1 s, 5]]", "«[»0, 0, 1 s, 5]", `input "press": default: table: a list of values, where rows are wanted; write table: [[0, 0], [1 s, 5]]`},
	{"table of one value", "[[0, 0], [1 s, 5]]", "«5»", `input "press": default: table: one value, where rows are wanted; write table: [[0, 5]]`},
	{"decimal comma in a row", "[1 s, 5]", "«[»1 s, 0,5]", `input "press": default: table: row of 3 values; 2 are wanted; decimals follow a point: 0.5`},
	{"decimal comma in a mapping", "J: 2*J_wheel", "J: «0»,2 kg.m2", `J: a comma ends the value; decimals follow a point: 0.2 kg.m2`},
	{"row is a number", "[1 s, 5]", "«1»", `input "press": default: table: row: expected a list, got "1"`},
	{"pressure in metres", "[1 s, 5]", "[1 s, «5 m»]", `input "press": default: table: value: "5 m": unit m does not fit, bar is wanted`},
	{"unknown source", "{table: [", "{«tabel»: [", `input "press": default: unknown key "tabel" (did you mean table?); known are constant, table, step, ramp, sine, cosine, exp_sine, pulse, sawtooth, trapezoid, sum, product, units, held, period, startTime`},
	{"input named like a parameter", "  pedal: {unit", "  «i1»: {unit", `input "i1": a parameter has the same name`},

	{"output of an unknown node", "speed: wheel", "speed: «weel»", `output "w": speed: "weel" is not a node (did you mean wheel?)`},
	{"output of an unknown element", "[grip, shaft]", "[«gripp», shaft]", `output "tau": torque: "gripp" is not an element (did you mean grip?)`},
	{"output of a gear's torque", "[grip, shaft]", "[«pair», shaft]", `output "tau": torque: element "pair" does not touch node "wheel"`},
	{"output on another node", "[grip, shaft], onto: wheel", "[grip, «shaft»], onto: loose", `output "tau": torque: element "shaft" does not touch node "loose"`},
	{"output of two things", "{speed: wheel}", "{speed: wheel, «torque»: grip}", `output "w": speed and torque in one output; make two`},
	{"output of nothing", "{speed: wheel}", "«{»}", `output "w": one of speed, w_rel, phi_rel, torque, signal, angle, position, acceleration, v_rel, s_rel, force, power, energy, work, dissipated, state, sum, pulses is wanted`},
	{"reserved output", "  w: {", "  «lag»: {", `output "lag": every plant has this output already`},
	{"reserved output of a clutch", "  w: {", "  «grip.mode»: {", `output "grip.mode": every plant has this output already`},
	{"output named like an input", "  w: {", "  «pedal»: {", `output "pedal": an input has the same name`},

	{"contradicting gears", "  grip: {", "  «pair2»: {type: ideal_gear, a: motor, b: loose, ratio: 2}\n  grip: {", `element "pair2": together with the other gears it leaves "motor", "loose" no speed but zero; remove it or correct a ratio`},
	{"gear to the frame", "  grip: {", "  «pair2»: {type: ideal_gear, a: loose, b: frame, ratio: 2}\n  grip: {", `element "pair2": together with the other gears it leaves "motor", "loose" no speed but zero; remove it or correct a ratio`},
	{"clutch on a massless node", "  pair: {type: ideal_gear, a: motor, b: loose, ratio: -i1}\n  grip", "  pair: {type: damper, a: motor, b: loose, d: 1}\n  «grip»", `element "grip": it rubs on massless node "loose", whose speed no gear determines; give the node an inertia, or a gear to a node with inertia`},
	{"massless node", "  drag:", "  pair2: {type: ideal_gear, a: «p», b: q, ratio: 2}\n  t: {type: torque, flange: p, tau: 1}\n  t2: {type: torque, flange: q, tau: 1}\n  drag:", `node "p" is massless and nothing determines its speed (it touches pair2, t); give it an inertia, or a gear to a node that has one`},
	{"clutch across a gear", "  grip: {", "  pair2: {type: ideal_gear, a: loose, b: l2, ratio: -1/i1}\n  «lock»: {type: clutch, a: motor, b: l2, mu: 1, cgeo: 1, fn: 1}\n  grip: {", `element "lock": its sides turn together rigidly, it can never slip; remove it`},
	{"start against the gear", "  grip: {", "  rim: {type: inertia, J: 1, w_start: «10»}\n  pair2: {type: ideal_gear, a: motor, b: rim, ratio: 2}\n  grip: {", `element "rim": w_start 10 rad/s contradicts w_start 12.5663706 rad/s of "motor", which makes it 6.28318531 rad/s`},
}

func TestErrorsOfPlantFilesHaveAPosition(t *testing.T) {
	for _, c := range badCases {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, modeltest.Train, c.old, c.new, c.want) })
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(modeltest.Train))
	f.Add([]byte(lorry))
	for _, name := range []string{"powershift", "automatic4", "hybrid", "coupled-clutches", "rail17", "judder", "wsp-car", "testdata/Backlash", "testdata/GenerationOfFMUs"} {
		data, err := os.ReadFile("../plants/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, c := range lorryCases {
		text, _ := modeltest.CutMarks(strings.Replace(lorry, c.old, c.new, 1))
		f.Add([]byte(text))
	}
	for _, c := range badCases {
		text, _ := modeltest.CutMarks(strings.Replace(modeltest.Train, c.old, c.new, 1))
		if len(text) < 4096 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plantfile.Load("f.yaml", data, library.Elements())
		if err == nil {
			_, err = assemble.System(p)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "f.yaml:") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("error %q is not one line with a place", err)
		}
	})
}
