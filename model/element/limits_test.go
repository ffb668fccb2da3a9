package element_test

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/model/element"
	"lockstep/model/library"
	"lockstep/model/modeltest"
	"lockstep/model/units"
)

// TestEveryParameterHasSizes requires sizes for the unit of each number of each element type, in both
// domains, and a range that is not empty.
func TestEveryParameterHasSizes(t *testing.T) {
	known := map[units.Dim]bool{}
	for _, s := range units.AllSizes {
		d := units.Want(s.Unit).Dim
		if known[d] || !(s.Least > 0 && s.Least < 1 && s.Most > 1 && s.Most <= 1e21) {
			t.Errorf("%s: sizes %g to %g, or a dimension listed twice", s.Unit, s.Least, s.Most)
		}
		known[d] = true
	}
	for _, k := range library.Elements() {
		for _, p := range k.Parameters {
			for _, unit := range p.Units() {
				for one := range strings.SplitSeq(unit, "|") {
					if p.Form != element.AsWord && !known[units.Want(one).Dim] {
						t.Errorf("%s: %s: no sizes for %q", k.Name, p.Key, one)
					}
				}
			}
		}
	}
}

// TestNumbersBeyondTheSizesAreRefused sets parameters beyond each end of their range: the error
// names the element, the key, the value with its unit and the range.
func TestNumbersBeyondTheSizesAreRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"J: 2*J_wheel", "J: «1e13 kg.m2»", `element "motor": J 1e+13 kg.m2 is outside 1e-12 to 1e12 kg.m2 (moment of inertia)`},
		{"J: 2*J_wheel", "J: «5e-324»", `element "motor": J 4.94065646e-324 kg.m2 is outside 1e-12 to 1e12 kg.m2 (moment of inertia)`},
		{"ratio: -i1", "ratio: «1e308»", `element "pair": ratio 1e+308 is outside ±1e-6 to ±1e6 (speed of a over speed of b)`},
		{"ratio: -i1", "ratio: «-1e-7»", `element "pair": ratio -1e-07 is outside ±1e-6 to ±1e6 (speed of a over speed of b)`},
		{"cgeo: 0.5 m", "cgeo: «1e15 m»", `element "grip": cgeo 1e+15 m is outside 0 to 1e6 m (friction surfaces times mean radius)`},
		{"mu: 0.1", "mu: «11»", `element "grip": mu 11 is outside 0 to 10 (coefficient of friction, without mu_pos)`},
		{"c: 100", "c: «1e300»", `element "shaft": c 1e+300 N.m/rad is outside 1e-12 to 1e15 N.m/rad (stiffness)`},
		{"d: 0.01}", "d: «1e13»}", `element "drag": d 1e+13 N.m.s/rad is outside 0 to 1e12 N.m.s/rad (damping)`},
		{"max: 20", "max: «1e300»", `input "press": max: 1e+300 bar is outside -1000000 to 1000000 bar`},
		{"[1 s, 5]", "[1 s, «1e7»]", `input "press": default: table: value: 10000000 bar is outside -1000000 to 1000000 bar`},
		{"[1 s, 5]", "[«1e300 s», 5]", `input "press": default: table: time: 1e+300 s is outside -1e+09 to 1e+09 s`},
		{"{table: [[0, 0], [1 s, 5]]}", "{pulse: «{»amplitude: 1, width: 50 %, period: 1e-300 s}}",
			`input "press": default: pulse: a period of 1e-300 s does not hold its pulse of 5e-301 s`},
		{"mu: 0.1", "mu_pos: [[0, 0.1], «[»1e-300, 0.2]]", `element "grip": mu_pos: 1e-300 rad/s is only 1e-300 rad/s after 0 rad/s; ` +
			`at least 1e-09 rad/s lie between two values`},
		{"tau: pedal", "tau: «{»product: [1e10 N.m, 1e10]}", `element "drive": tau goes from 1e+20 N.m to 1e+20 N.m; -1e15 to 1e15 N.m is wanted (torque on the flange)`},
		{"{speed: wheel}", "{speed: wheel, offset: «1e300 rad/s»}", `output "w": offset: 1e+300 rad/s is outside -10000000 to 10000000 rad/s`},
		{"{speed: wheel}", "{speed: wheel, factor: «-1e13»}", `output "w": factor: -1e+13 is outside -1e+12 to 1e+12`},
		{"J: 2*J_wheel", "J: «1 kg.km12/mm12.km12/mm12»", `element "motor": J: "1 kg.km12/mm12.km12/mm12": "kg.km12/mm12" is not a known unit; ` +
			"`lockstep help numbers-and-units` lists the units"},
	} {
		t.Run(fmt.Sprint(c.new), func(t *testing.T) { modeltest.Refuse(t, modeltest.Train, c.old, c.new, c.want) })
	}
}

// TestAChainOfGearsHasABoundedRatio has gears that are in range one by one.
func TestAChainOfGearsHasABoundedRatio(t *testing.T) {
	for _, ratio := range []string{"1e3", "1e6", "1e-6"} {
		text := "plant: p\nelements:\n  n0: {type: inertia, J: 1}\n"
		for i := range 60 {
			text += fmt.Sprintf("  n%d: {type: inertia, J: 1}\n  g%d: {type: ideal_gear, a: n%d, b: n%d, ratio: %s}\n", i+1, i, i, i+1, ratio)
		}
		err := modeltest.Check(text)
		if err == nil || !strings.Contains(err.Error(), `element "g`) || !strings.Contains(err.Error(), "correct a ratio") {
			t.Errorf("ratio %s: %v", ratio, err)
		}
	}
}
