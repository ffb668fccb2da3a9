package planar

import (
	"math"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// readPair reads the two points of an element and the direction of its angle, or of the line
// from a to b.
func readPair(e *element.Element) (a, b *frame, dir [2]float64) {
	a, b = pointAt(e, "a"), pointAt(e, "b")
	if e.Err != nil {
		return
	}
	if a.body == b.body {
		e.Fail(e.Fields["b"].At, "%s: a and b are on the same body", e.What())
		return
	}
	e.Domain = network.Translational
	if e.Has("angle") {
		angle, _ := e.Option("angle", "rad", 0)
		dir[1], dir[0] = math.Sincos(angle)
		for i := range dir {
			if math.Abs(dir[i]) < 1e-15 {
				dir[i] = 0 // 90 deg
			}
		}
		return
	}
	if e.Kind.Name == "translational_joint" {
		e.Fail(e.At, "%s: translational_joint needs angle (of its axis, from x to y)", e.What())
		return
	}
	wantPlaces(e, a, b)
	x, y := [2]float64{1, 0}, [2]float64{0, 1}
	dx, dy := b.at(x, 0)-a.at(x, 0), b.at(y, 0)-a.at(y, 0)
	length := math.Hypot(dx, dy)
	if !(length > 0) && e.Err == nil {
		e.Fail(e.At, "%s: %s and %s are at the same place; give angle", e.What(), a.name, b.name)
	}
	return a, b, [2]float64{dx / length, dy / length}
}

// angleTo is the direction from one point to another, in degrees.
func (p *frame) angleTo(to *frame) float64 {
	x, y := [2]float64{1, 0}, [2]float64{0, 1}
	return math.Atan2(to.at(y, 0)-p.at(y, 0), to.at(x, 0)-p.at(x, 0)) * 180 / math.Pi
}

// wantPlaces fails unless both bodies have places in the plane.
func wantPlaces(e *element.Element, list ...*frame) {
	for _, p := range list {
		if !(p.body.written[0] && p.body.written[1]) {
			e.Fail(e.At, "%s: the place of %q is not known; give its body x_start and y_start", e.What(), p.name)
		}
	}
}

// readLine makes the distance of two points a node: its speed is that at which they part
// along the line, and what pushes it pushes them apart. The line keeps its direction.
func readLine(e *element.Element) element.Declared {
	a, b, dir := readPair(e)
	if e.Err != nil {
		return element.Declared{}
	}
	own := e.OwnNode
	r := append(b.along(dir), a.along(dir).Negative()...)
	if len(r) == 0 {
		e.Fail(e.At, "%s: neither %q nor %q moves along it", e.What(), a.name, b.name)
	}
	n := &e.Network.Nodes[own]
	from, known := a.place(dir)
	to, also := b.place(dir)
	n.Framed, n.Phi0, n.Placed = true, to-from, known || also
	for _, p := range []*frame{a, b} {
		fixes, loose := p.reckoning(dir)
		n.Fixes, n.Loose = n.Fixes || fixes, n.Loose || loose
	}
	if n.Fixes && n.Loose {
		wantPlaces(e, a, b)
	}
	followRigidly(e, own, r)
	return element.Declared{Rel: network.RowOf(own)}
}

// readSlide lets point b slide along an axis of body a: no motion across it, where the
// axis turns with the body and b is at the distance d along it,
//
//	across·(v_b - v_a) - d·w_a = 0
//
// and with rotation: locked w_b = w_a.
func readSlide(e *element.Element) element.Declared {
	a, b, axis := readPair(e)
	if e.Err != nil {
		return element.Declared{}
	}
	across := [2]float64{-axis[1], axis[0]}
	d := 0.0
	if a.body.moves[2] {
		wantPlaces(e, a, b)
		d = b.at(axis, 0) - a.at(axis, 0)
		beside := b.at(across, b.body.start[2]) - a.at(across, a.body.start[2]) - d*a.body.start[2]
		if !(math.Abs(beside) <= 1e-5*(1+math.Abs(d))) && e.Err == nil { // an angle may be rounded
			e.Fail(e.At, "%s: %q is %s beside the axis through %q; correct angle (%s leads through both), or where they start",
				e.What(), b.name, units.Format(units.DropRounding(beside), "m"), a.name, units.Format(a.angleTo(b), "deg"))
		}
	}
	r := append(b.along(across), a.along(across).Negative()...)
	if a.body.moves[2] && d != 0 {
		r = append(r, network.TermOf(a.body.node[2], -d))
	}
	joinRigidly(e, r)
	reaction := element.Declared{Rel: r, Tau: network.TieOf(len(e.Network.Ties) - 1).Scaled(-1), Unit: "N"}
	if f, ok := e.Fields["rotation"]; ok {
		switch text := e.Text(f, e.What()+": rotation"); text {
		case "free":
		case "locked":
			joinRigidly(e, append(b.turning(), a.turning().Negative()...))
		default:
			e.Fail(f.At, "%s: rotation: %q is neither free nor locked", e.What(), text)
		}
	}
	return reaction
}

// turning is the angular speed of a point's body.
func (p *frame) turning() network.Row {
	if p.body.moves[2] {
		return network.RowOf(p.body.node[2])
	}
	return nil
}

// joinRigidly is a tie that must take a degree of freedom.
func joinRigidly(e *element.Element, r network.Row) {
	e.Tie(r...)
	e.Network.Ties[len(e.Network.Ties)-1].Joint = true
}
