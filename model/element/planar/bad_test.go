package planar_test

import (
	"testing"

	"lockstep/model/modeltest"
)

// cart is a small valid plant of bodies.
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

func TestCartPassesTheCheck(t *testing.T) {
	if err := modeltest.Check(cart); err != nil {
		t.Fatal(err)
	}
}

func TestErrorsOfBodiesHaveAPosition(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"body without mass", "  car: {type: body, m: 10, J: 4,", "  «car»: {type: body, J: 4,", `element "car": body needs m (mass, kg)`},
		{"body without moment of inertia", "  car: {type: body, m: 10, J: 4,", "  «car»: {type: body, m: 10,", `element "car": body needs J (moment of inertia, kg.m2)`},
		{"body of zero mass", "m: 10, J: 4", "m: «0», J: 4", `element "car": m 0 kg is not positive (mass)`},
		{"body of NaN inertia", "m: 10, J: 4", "m: 10, J: «.nan»", `element "car": J: .nan is not a finite number`},
		{"freedom that is none", "dof: [x]", "dof: [«phy»]", `element "bogie": dof: "phy" is none of x, y and phi (did you mean phi?)`},
		{"speed of what is fixed", "dof: [x]", "dof: [x], «v_y_start»: 1", `element "bogie": v_y_start: it does not move along y; add that to dof`},
		{"weight of what is fixed", "dof: [x]", "dof: [x], «g»: 9.81", `element "bogie": g: it does not move along y; add that to dof`},
		{"point of three coordinates", "front: [1, 0]", "front: «[»1, 0, 0]", `element "car": nodes: front: 3 values; [x, y] from the centre of the body are wanted`},
		{"point in the wrong unit", "front: [1, 0]", "front: [«1 kg», 0]", `element "car": nodes: front: "1 kg": unit kg does not fit, m is wanted`},
		{"point named like a coordinate", "front: [1, 0]", "«x»: [1, 0]", `element "car": nodes: "x" is not a name for a node (letters, digits and _; not x, y, phi)`},
		{"point of no body", "a: car.rear, b: wheel}", "a: «car.reer», b: wheel}", `element "link": a: "car.reer" is no body and no node of one (did you mean car.rear?)`},
		{"flange of no point", "a: ground, b: link", "a: ground, b: «car.frond.x»", `element "strut": b: "car.frond.x" is not a node (did you mean car.front.x?)`},
		{"body as a flange", "a: ground, b: link", "a: ground, b: «car»", `element "strut": b: "car" is of type body, not a node; its flanges are car.x, car.y, car.phi, and those of its nodes`},
		{"line in one body", "a: car.rear, b: wheel}", "a: car.rear, b: «car.front»}", `element "link": a and b are on the same body`},
		{"line to a body without a place", "  link: {type: line, a: car.rear, b: wheel}", "  «link»: {type: line, a: car.rear, b: bogie}", `element "link": the place of "bogie" is not known; give its body x_start and y_start`},
		{"line of no length", "  link: {type: line, a: car.rear, b: wheel}", "  «link»: {type: line, a: car.rear, b: stop}\n  stop: {type: body, dof: [], x_start: -1, y_start: 0.6}", `element "link": car.rear and stop are at the same place; give angle`},
		{"joint without an axis", "  guide: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}", "  «guide»: {type: translational_joint, a: car.front, b: wheel}", `element "guide": translational_joint needs angle (direction of the axis, from x to y, rad)`},
		{"joint beside its axis", "  guide: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}", "  «guide»: {type: translational_joint, a: car.rear, b: wheel, angle: 90 deg}", `element "guide": "wheel" is -2 m beside the axis through "car.rear"; correct angle (-11.3099325 deg leads through both), or where they start`},
		{"joint that over-constrains", "  link:", "  «again»: {type: translational_joint, a: car.front, b: wheel, angle: 90 deg}\n  link:", `element "again": it over-constrains: another joint already removes this motion; remove it, or the other joint`},
		{"joint between what does not move", "  link:", "  «again»: {type: translational_joint, a: bogie, b: stop, angle: 0}\n  stop: {type: body, dof: []}\n  link:", `element "again": it over-constrains: another joint already removes this motion; remove it, or the other joint`},
		{"joint that leaves no motion", "  link:", "  «again»: {type: translational_joint, a: stop, b: bogie, angle: 90 deg}\n  stop: {type: body, dof: []}\n  link:", `element "again": it over-constrains: it leaves "bogie.x" no speed but zero; remove it, or put more into dof`},
		{"freedom that appears twice", "dof: [x]", "dof: [x, «x»]", `element "bogie": dof: x appears twice`},
		{"spring from a place to a displacement", "  link:", "  «pull»: {type: spring, a: car.front.x, b: truck.end.x, c: 1}\n  truck: {type: body, m: 1, J: 1, nodes: {end: [2, 0]}}\n  link:", `element "pull": where "truck.end.x" is in the plane is not known, but "car.front.x" is at 1 m; give x_start and y_start to both bodies or to none`},
		{"line from a place to a displacement", "  link:", "  «pull»: {type: line, a: car.front, b: truck.end, angle: 0}\n  truck: {type: body, m: 1, J: 1, nodes: {end: [2, 0]}}\n  link:", `element "pull": the place of "truck.end" is not known; give its body x_start and y_start`},
		{"locked joint whose rotation is held", "  link:", "  box: {type: translational_joint, a: base, b: slide, angle: 0, rotation: locked}\n  «again»: {type: translational_joint, a: slide, b: base, angle: 0}\n  base: {type: body, dof: [], x_start: 0, y_start: 0}\n  slide: {type: body, m: 1, J: 1, x_start: 2, y_start: 0}\n  link:", `element "again": it over-constrains: another joint already removes this motion; remove it, or the other joint`},
		{"joints that hold all of a body", "  link:", "  box: {type: translational_joint, a: base, b: slide, angle: 0, rotation: locked}\n  «stand»: {type: translational_joint, a: base, b: slide.top, angle: 90 deg}\n  base: {type: body, dof: [], x_start: 2, y_start: 0}\n  slide: {type: body, m: 1, J: 1, x_start: 2, y_start: 0, nodes: {top: [0, 1]}}\n  link:", `element "stand": it over-constrains: it leaves "slide.x", "slide.y", "slide.phi" no speed but zero; remove it, or put more into dof`},
		{"joint of a rotation that is no word", "angle: 90 deg", "angle: 90 deg, rotation: «yes»", `element "guide": rotation: "yes" is none of free, locked`},
	} {
		t.Run(c.name, func(t *testing.T) { modeltest.Refuse(t, cart, c.old, c.new, c.want) })
	}
}
