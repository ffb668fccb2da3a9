package model

import (
	"strings"
	"testing"
)

// cart is a small sound plant of bodies.
const cart = `plant: cart
elements:
  ground: {type: fixed}
  car: {type: body, m: 10, J: 4, x_start: 0, y_start: 0.6, nodes: {front: [1, 0], rear: [-1, 0]}}
  wheel: {type: body, m: 1, J: 0.1, x_start: 1, y_start: 0.2}
  bogie: {type: body, m: 1, dof: [x]}
  guide: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}
  link: {type: line, a: car.rear, b: wheel}
  strut: {type: spring_damper, a: ground, b: link, c: 100, d: 1}
outputs: {v: {speed: car.x}}
`

func TestCartIsSound(t *testing.T) {
	if err := loadAssemble(cart); err != nil {
		t.Fatal(err)
	}
}

// tram is a small sound plant of a wheel on a rail.
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
	{"law that is none", "law: gyebroszki", "law: «gyebroski»", `element "contact": law: "gyebroski" is none of curtius_kniffler, gyebroszki, polach, did you mean "gyebroszki"?`},
	{"key of another law", "v_star: 1", "v_star: 1, «k_A»: 1", `element "contact": k_A goes with law: polach`},
	{"contact without an axle", "  contact: {type: rail_contact, a: wheel, b: axle,", "  «contact»: {type: rail_contact, a: wheel,", `element "contact": rail_contact needs b (the name of a node)`},
	{"contact without a load", ", fn: {sum: [80 kN, back.f, {product: [press, brake.share]}]}}\n  other", "}\n  other", `10:3: model: element "contact": rail_contact needs fn (normal force, its load, N, or the name of an input)`},
	{"contact that is lifted for ever", "polach, fn: 80 kN", "polach, fn: «-1 kN»", `element "other": fn -1000 N is never positive; a wheel without load transmits nothing`},
	{"contact of a turning wheel without a radius", "  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5,", "  «contact»: {type: rail_contact, a: wheel, b: axle,", `element "contact": rail_contact needs radius (rolling, of the wheel, m)`},
	{"radius of a rim", "a: rim, b: axle,", "a: rim, b: axle, «radius»: 1,", `element "other": radius goes with a wheel that turns; "rim" moves with its rim`},
	{"friction of zero", "mu0: 0.2, A: 0.5, v_star", "mu0: «0», A: 0.5, v_star", `element "contact": mu0 0 is outside 0 to 1, 0 not included`},
	{"friction above 1", "mu0: 0.2, A: 0.5, v_star", "mu0: «1.1», A: 0.5, v_star", `element "contact": mu0 1.1 is outside 0 to 1, 0 not included`},
	{"friction that is no number", "mu0: 0.2, A: 0.5, v_star", "mu0: «.nan», A: 0.5, v_star", `element "contact": mu0: .nan is not a finite number`},
	{"asymptote above 1", "A: 0.5, v_star", "A: «1.5», v_star", `element "contact": A 1.5 is outside 0 to 1, 0 not included`},
	{"slip of zero", "v_star: 1", "v_star: «0»", `element "contact": slip over which friction falls v_star 0 m/s is not positive`},
	{"negative threshold", "v_star: 1", "v_star: 1, T_sgn: «-0.05»", `element "contact": T_sgn -0.05 m/s is negative`},
	{"static friction of a slope", "v_star: 1", "v_star: 1, T_sgn: 0.05, «peak»: 1.1", `element "contact": peak goes without T_sgn; a slope has no static friction`},
	{"reduction factors upside down", "b_ellipse: 5 mm", "b_ellipse: 5 mm, k_A: 0.3, k_S: «0.5»", `element "other": k_S 0.5 is above k_A 0.3; slip takes more than adhesion then`},
	{"reduction factor above 1", "b_ellipse: 5 mm", "b_ellipse: 5 mm, k_A: «1.2»", `element "other": k_A 1.2 is outside 0 to 1, 0 not included`},
	{"contact of no size", "b_ellipse: 5 mm", "b_ellipse: «0»", `element "other": half axis of the contact across the rail b_ellipse 0 m is not positive`},
	{"way with a negative factor", "b_ellipse: 5 mm", "b_ellipse: 5 mm, way: «[»[0, 1], [10, -1]]", `element "other": way: factor -1 in row 2 is negative`},
	{"way that goes back", "b_ellipse: 5 mm", "b_ellipse: 5 mm, way: [[0, 1], «[»0, 0.5]]", `element "other": way: 0 m comes after 0 m; the first column must increase`},
	{"way without adhesion", "b_ellipse: 5 mm", "b_ellipse: 5 mm, way: «[»[0, 0], [10, 0]]", `element "other": way: no factor is positive; such a track holds nothing`},
	{"track that holds nothing", "b_ellipse: 5 mm", "b_ellipse: 5 mm, friction: «-1»", `element "other": friction -1 is never positive; such a track holds nothing`},
	{"contact that jams", "  contact: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 0.5, v_star: 1, fn: {sum: [80 kN, back.f,", "  «contact»: {type: rail_contact, a: wheel, b: axle, radius: 0.5, law: gyebroszki, mu0: 0.2, A: 0.5, v_star: 1, peak: 1.25, fn: {sum: [80 kN, {product: [-4, contact.f]},", `element "contact": its normal force grows by -4 for each 1 that it exerts, and that by up to 0.25 for each 1 of normal force; from a product of 1 on it jams, here it is 1`},
	{"brake that jams", "  brake: {type: brake, flange: wheel, mu: 1, cgeo: 1, fn: press}", "  «brake»: {type: brake, flange: wheel, mu_pos: [[0, 1], [10, 0.5]], cgeo: 1, fn: {sum: [press, {product: [1, brake.tau]}]}}", `element "brake": its normal force grows by 1 for each 1 that it exerts, and that by up to 1 for each 1 of normal force; from a product of 1 on it jams, here it is 1`},
	{"slope that follows itself", "80 kN, mu0: 0.2, A: 0.5, C", "{sum: [80 kN, other.f]}, mu0: 0.2, A: 0.5, C", `11:3: model: other.grip, other.f depend on each other without a state between; give one of them a lag`},
	{"range of zero", "  back:", "  slip: {type: speed_sensor, flange: axle, range: «0»}\n  back:", `element "slip": range 0 m/s is not positive`},
	{"force of no element", "back.f", "«bak.f»", `element "contact": fn: sum: "bak.f": "bak.f" is not a known parameter`},
	{"torque of what moves", "[80 kN, back.f", "[80 kN, «back.tau»", `element "contact": fn: sum: signal "back.tau" is in N.m; N is wanted`},
	{"force of what turns", "[80 kN, back.f", "[80 kN, «brake.f»", `"brake.f": element "brake" exerts N.m, not N`},
	{"force of a tie", "[80 kN, back.f", "[80 kN, «tread.f»", `"tread.f": element "tread" is of type ideal_rolling_wheel and has no torque or force of its own`},
	{"share of a damper", "brake.share", "«back.share»", `"back.share": element "back" is of type damper and has no capacity; name a clutch or brake`},
}

func TestTramIsSound(t *testing.T) {
	if err := loadAssemble(tram); err != nil {
		t.Fatal(err)
	}
}

func TestBadContactsAreNamedByPlace(t *testing.T) {
	for _, c := range tramCases {
		t.Run(c.name, func(t *testing.T) { refused(t, tram, c.old, c.new, c.want) })
	}
}

// refused checks the error of a plant with one change; its place is marked, or written out.
func refused(t *testing.T, plant, old, new, want string) {
	t.Helper()
	if !strings.Contains(plant, old) {
		t.Fatalf("the plant has no %q", old)
	}
	text, at := marked(strings.Replace(plant, old, new, 1))
	if at != "" {
		want = at + ": model: " + want
	}
	if err := loadAssemble(text); err == nil || err.Error() != "t.yaml:"+want {
		t.Errorf("got  %v\nwant t.yaml:%s", err, want)
	}
}

func TestBadBodiesAreNamedByPlace(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"body without mass", "  car: {type: body, m: 10, J: 4,", "  «car»: {type: body, J: 4,", `element "car": body needs m (mass, kg)`},
		{"body without moment of inertia", "  car: {type: body, m: 10, J: 4,", "  «car»: {type: body, m: 10,", `element "car": body needs J (moment of inertia, kg.m2)`},
		{"body of zero mass", "m: 10, J: 4", "m: «0», J: 4", `element "car": mass m 0 kg is not positive`},
		{"body of NaN inertia", "m: 10, J: 4", "m: 10, J: «.nan»", `element "car": J: .nan is not a finite number`},
		{"freedom that is none", "dof: [x]", "dof: [«phy»]", `element "bogie": dof: "phy" is none of x, y and phi, did you mean "phi"?`},
		{"speed of what is fixed", "dof: [x]", "dof: [x], «v_y_start»: 1", `element "bogie": v_y_start: it does not move along y; add that to dof`},
		{"weight of what is fixed", "dof: [x]", "dof: [x], «g»: 9.81", `element "bogie": g: it does not move along y; add that to dof`},
		{"point of three coordinates", "front: [1, 0]", "front: «[»1, 0, 0]", `element "car": nodes: front: 3 values; [x, y] from the centre of the body are wanted`},
		{"point in the wrong unit", "front: [1, 0]", "front: [«1 kg», 0]", `element "car": nodes: front: "1 kg": unit kg does not fit, m is wanted`},
		{"point named like a coordinate", "front: [1, 0]", "«x»: [1, 0]", `element "car": nodes: "x" is not a name for a node (letters, digits and _; not x, y, phi)`},
		{"point of no body", "a: car.rear, b: wheel}", "a: «car.reer», b: wheel}", `element "link": a: "car.reer" is no body and no node of one, did you mean "car.rear"?`},
		{"flange of no point", "a: ground, b: link", "a: ground, b: «car.frond.x»", `element "strut": b: "car.frond.x" is not a node, did you mean "car.front.x"?`},
		{"body as a flange", "a: ground, b: link", "a: ground, b: «car»", `element "strut": b: "car" is of type body, not a node; its flanges are car.x, car.y, car.phi, and those of its nodes`},
		{"line in one body", "a: car.rear, b: wheel}", "a: car.rear, b: «car.front»}", `element "link": a and b are on the same body`},
		{"line to a body without a place", "  link: {type: line, a: car.rear, b: wheel}", "  «link»: {type: line, a: car.rear, b: bogie}", `element "link": the place of "bogie" is not known; give its body x_start and y_start`},
		{"line of no length", "  link: {type: line, a: car.rear, b: wheel}", "  «link»: {type: line, a: car.rear, b: stop}\n  stop: {type: body, dof: [], x_start: -1, y_start: 0.6}", `element "link": car.rear and stop are at the same place; give angle`},
		{"joint without an axis", "  guide: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}", "  «guide»: {type: translational_joint, a: car.front, b: wheel}", `element "guide": translational_joint needs angle (of its axis, from x to y)`},
		{"joint beside its axis", "  guide: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}", "  «guide»: {type: translational_joint, a: car.rear, b: wheel, angle: 90 deg}", `element "guide": "wheel" is -2 m beside the axis through "car.rear"; correct angle (-11.3099325 deg leads through both), or where they start`},
		{"joint that over-constrains", "  link:", "  «again»: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}\n  link:", `element "again": it over-constrains: the motion that it takes is taken already; remove it, or the other joint`},
		{"joint between what does not move", "  link:", "  «again»: {type: translational_joint, a: bogie, b: stop, angle: 0}\n  stop: {type: body, dof: []}\n  link:", `element "again": it over-constrains: the motion that it takes is taken already; remove it, or the other joint`},
		{"joint that leaves no motion", "  link:", "  «again»: {type: translational_joint, a: stop, b: bogie, angle: 90 deg}\n  stop: {type: body, dof: []}\n  link:", `element "again": it over-constrains: it leaves "bogie.x" no speed but zero; remove it, or put more into dof`},
		{"freedom that appears twice", "dof: [x]", "dof: [x, «x»]", `element "bogie": dof: x appears twice`},
		{"spring from a place to a displacement", "  link:", "  «pull»: {type: spring, a: car.front.x, b: truck.end.x, c: 1}\n  truck: {type: body, m: 1, J: 1, nodes: {end: [2, 0]}}\n  link:", `element "pull": where "truck.end.x" is in the plane is not known, but "car.front.x" is at 1 m; give x_start and y_start to both bodies or to none`},
		{"line from a place to a displacement", "  link:", "  «pull»: {type: line, a: car.front, b: truck.end, angle: 0}\n  truck: {type: body, m: 1, J: 1, nodes: {end: [2, 0]}}\n  link:", `element "pull": the place of "truck.end" is not known; give its body x_start and y_start`},
		{"locked joint whose rotation is held", "  link:", "  box: {type: translational_joint, a: base, b: slide, angle: 0, rotation: locked}\n  «again»: {type: translational_joint, a: slide, b: base, angle: 0}\n  base: {type: body, dof: [], x_start: 0, y_start: 0}\n  slide: {type: body, m: 1, J: 1, x_start: 2, y_start: 0}\n  link:", `element "again": it over-constrains: the motion that it takes is taken already; remove it, or the other joint`},
		{"joints that hold all of a body", "  link:", "  box: {type: translational_joint, a: base, b: slide, angle: 0, rotation: locked}\n  «stand»: {type: translational_joint, a: base, b: slide.top, angle: 90 deg}\n  base: {type: body, dof: [], x_start: 2, y_start: 0}\n  slide: {type: body, m: 1, J: 1, x_start: 2, y_start: 0, nodes: {top: [0, 1]}}\n  link:", `element "stand": it over-constrains: it leaves "slide.x", "slide.y", "slide.phi" no speed but zero; remove it, or put more into dof`},
		{"joint of a rotation that is no word", "angle: 90 deg", "angle: 90 deg, rotation: «yes»", `element "guide": rotation: "yes" is neither free nor locked`},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, cart, c.old, c.new, c.want) })
	}
}
