package contact_test

import (
	"testing"

	"lockstep/model/modeltest"
)

// tram is a small valid plant of a wheel on a rail.
const tram = `plant: tram
inputs: {press: {unit: N, min: 0, max: 1000}}
elements:
  axle: {type: mass, m: 8000, v_start: 10}
  rim: {type: mass, m: 200, v_start: 10}
  wheel: {type: inertia, J: 50}
  tread: {type: ideal_rolling_wheel, a: wheel, b: rim, radius: 0.5}
  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: press}
  back: {type: damper, a: axle, b: rim, d: 1}
  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 0.5, v_star: 1, fn: {sum: [80 kN, back.f, {product: [press, brake.share]}]}}
  other: {type: rail_contact, a: rim, b: axle, law: polach, fn: 80 kN, mu0: 0.2, A: 0.5, C: 1e9, a_ellipse: 5 mm, b_ellipse: 5 mm}
outputs: {f: {force: contact}}
`

var tramCases = []struct{ name, old, new, want string }{
	{"contact without a law", "  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 0.5, v_star: 1", "  «contact»: {type: rail_contact, a: wheel, b: axle, radius: 0.5", `element "contact": rail_contact needs law (curtius_kniffler, gyebroszki, polach)`},
	{"law that is none", "law: gyebroszki", "law: «gyebroski»", `element "contact": law: "gyebroski" is none of curtius_kniffler, gyebroszki, polach (did you mean gyebroszki?)`},
	{"key of another law", "v_star: 1", "v_star: 1, «k_A»: 1", `element "contact": k_A goes with law: polach`},
	{"contact without an axle", "  contact: {type: rail_contact, a: wheel, b: axle,", "  «contact»: {type: rail_contact, a: wheel,", `element "contact": rail_contact needs b (the name of a node)`},
	{"contact without a load", ", fn: {sum: [80 kN, back.f, {product: [press, brake.share]}]}}\n  other", "}\n  other", `10:3: model: element "contact": rail_contact needs fn (normal force, N, or the name of an input)`},
	{"contact that is lifted for ever", "polach, fn: 80 kN", "polach, fn: «-1 kN»", `element "other": fn -1000 N is never positive; a rail_contact transmits nothing then`},
	{"contact of a turning wheel without a radius", "  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5,", "  «contact»: {type: rail_contact, a: wheel, b: axle,", `element "contact": rail_contact needs radius (rolling radius of the wheel, m)`},
	{"radius of a rim", "a: rim, b: axle,", "a: rim, b: axle, «radius»: 1,", `element "other": radius goes with a wheel that turns; "rim" moves with its rim`},
	{"friction of zero", "mu0: 0.2, A: 0.5, v_star", "mu0: «0», A: 0.5, v_star", `element "contact": mu0 0 is outside 0 to 1, 0 not included (friction at zero slip)`},
	{"friction above 1", "mu0: 0.2, A: 0.5, v_star", "mu0: «1.1», A: 0.5, v_star", `element "contact": mu0 1.1 is outside 0 to 1, 0 not included (friction at zero slip)`},
	{"friction that is no number", "mu0: 0.2, A: 0.5, v_star", "mu0: «.nan», A: 0.5, v_star", `element "contact": mu0: .nan is not a finite number`},
	{"asymptote above 1", "A: 0.5, v_star", "A: «1.5», v_star", `element "contact": A 1.5 is outside 0 to 1, 0 not included (friction at high slip over mu0)`},
	{"slip of zero", "v_star: 1", "v_star: «0»", `element "contact": v_star 0 m/s is not positive (slip over which friction falls)`},
	{"negative threshold", "v_star: 1", "v_star: 1, T_sgn: «-0.05»", `element "contact": T_sgn -0.05 m/s is negative (slip up to which the force is a slope; 0: friction element)`},
	{"static friction of a slope", "v_star: 1", "v_star: 1, T_sgn: 0.05, «peak»: 1.1", `element "contact": peak goes without T_sgn; a slope has no static friction`},
	{"reduction factors upside down", "b_ellipse: 5 mm", "b_ellipse: 5 mm, k_A: 0.3, k_S: «0.5»", `element "other": k_S 0.5 is above k_A 0.3; slip takes more than adhesion then`},
	{"reduction factor above 1", "b_ellipse: 5 mm", "b_ellipse: 5 mm, k_A: «1.2»", `element "other": k_A 1.2 is outside 0 to 1, 0 not included (reduction of adhesion)`},
	{"contact of no size", "b_ellipse: 5 mm", "b_ellipse: «0»", `element "other": b_ellipse 0 m is not positive (half axis of the contact across the rail)`},
	{"way with a negative factor", "b_ellipse: 5 mm", "b_ellipse: 5 mm, way: [[0, 1], [10, «-1»]]", `element "other": way -1 is negative ([position, condition of the track])`},
	{"way that goes back", "b_ellipse: 5 mm", "b_ellipse: 5 mm, way: [[0, 1], «[»0, 0.5]]", `element "other": way: 0 m comes after 0 m; the first column must increase`},
	{"way without adhesion", "b_ellipse: 5 mm", "b_ellipse: 5 mm, way: «[»[0, 0], [10, 0]]", `element "other": way: no factor is positive; such a track holds nothing`},
	{"track that holds nothing", "b_ellipse: 5 mm", "b_ellipse: 5 mm, friction: «-1»", `element "other": friction -1 is never positive; a rail_contact transmits nothing then`},
	{"contact that jams", "  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 0.5, v_star: 1, fn: {sum: [80 kN, back.f,", "  «contact»: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 0.5, v_star: 1, peak: 1.25, fn: {sum: [80 kN, {product: [-4, contact.f]},", `element "contact": its normal force grows by -4 for each 1 that it exerts, and that by up to 0.25 for each 1 of normal force; from a product of 1 on it jams, here it is 1`},
	{"brake that jams", "  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: press}", "  «brake»: {type: brake, flange: wheel, mu_pos: [[0, 1], [10, 0.5]], cgeo: 1, fn: {sum: [press, {product: [1, brake.tau]}]}}", `element "brake": its normal force grows by 1 for each 1 that it exerts, and that by up to 1 for each 1 of normal force; from a product of 1 on it jams, here it is 1`},
	{"slope that follows itself", "80 kN, mu0: 0.2, A: 0.5, C", "{sum: [80 kN, other.f]}, mu0: 0.2, A: 0.5, C", `11:3: model: other.grip, other.f depend on each other without a state between; give one of them a lag`},
	{"range of zero", "  back:", "  slip: {type: speed_sensor, flange: axle, range: «0»}\n  back:", `element "slip": range 0 m/s is not positive (largest absolute value expected)`},
	{"force of no element", "back.f", "«bak.f»", `element "contact": fn: sum: "bak.f": "bak.f" is not a known parameter`},
	{"torque of what moves", "[80 kN, back.f", "[80 kN, «back.tau»", `element "contact": fn: sum: signal "back.tau" is in N.m; N is wanted`},
	{"force of what turns", "[80 kN, back.f", "[80 kN, «brake.f»", `"brake.f": element "brake" exerts N.m, not N`},
	{"force of a tie", "[80 kN, back.f", "[80 kN, «tread.f»", `"tread.f": element "tread" is of type ideal_rolling_wheel and has no torque or force of its own`},
	{"share of a damper", "brake.share", "«back.share»", `"back.share": element "back" is of type damper and has no capacity; name a clutch or brake`},
}

func TestTramPassesTheCheck(t *testing.T) {
	if err := modeltest.Check(tram); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsOfContactsHaveAPosition(t *testing.T) {
	for _, c := range tramCases {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, tram, c.old, c.new, c.want) })
	}
}
