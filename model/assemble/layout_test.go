package assemble_test

import (
	"reflect"
	"testing"

	"lockstep/model/assemble"
	"lockstep/model/library"
	"lockstep/model/plantfile"
)

func TestLayoutListsTheRoleOfEveryNode(t *testing.T) {
	p, err := plantfile.Load("t.yaml", []byte(`plant: t
elements:
  ground: {type: fixed}
  body: {type: inertia, J: 1}
  other: {type: inertia, J: 1}
  same: {type: inertia, J: 2}
  rigid: {type: ideal_gear, a: other, b: same, ratio: 2}
  pair: {type: ideal_gear, a: body, b: wheel, ratio: -3}
  grip: {type: clutch, a: wheel, b: other, mu: 1, cgeo: 1, fn: 1}
  left: {type: spring_damper, a: body, b: middle, c: 100, d: 1}
  right: {type: damper, a: middle, b: other, d: 1}
  drive: {type: speed, flange: motor, w_ref: 3}
  shaft: {type: damper, a: motor, b: body, d: 1}
outputs: {w: {speed: body}}
`), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	got, err := assemble.LayoutOf(p)
	if err != nil {
		t.Fatal(err)
	}
	want := &assemble.Layout{
		Bodies: []string{"body", "other", "same"}, Free: 2,
		Geared: []string{"wheel", "motor"}, Balanced: []string{"middle"}, Driven: []string{"drive"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestLayoutListsCarriedPointsAndHeldCoordinates(t *testing.T) {
	p, err := plantfile.Load("t.yaml", []byte(`plant: t
elements:
  base: {type: body, dof: [], x_start: 0, y_start: 0, nodes: {foot: [0, 0]}}
  slide: {type: body, m: 2, J: 1, x_start: 1, y_start: 0, nodes: {top: [0, 1], lug: [1, 0]}}
  rail: {type: translational_joint, a: base.foot, b: slide, angle: 0, rotation: locked}
  lift: {type: body, m: 1, dof: [y], nodes: {hook: [0.1, 0.2]}}
  way: {type: line, a: base, b: slide}
outputs: {v: {speed: slide.x}, w: {speed: lift.hook.y}, d: {speed: way}}
`), library.Elements())
	if err != nil {
		t.Fatal(err)
	}
	got, err := assemble.LayoutOf(p)
	if err != nil {
		t.Fatal(err)
	}
	want := &assemble.Layout{
		Bodies: []string{"slide.x", "slide.y", "slide.phi", "lift.y"}, Free: 2,
		Held: []string{"slide.y", "slide.phi"}, Carried: []string{"slide.top", "slide.lug", "lift.hook", "way"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
