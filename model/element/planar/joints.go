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
	if a.body == b.body {
		e.Refuse(e.Place("b"), "a and b are on the same body")
	}
	e.Domain = network.Translational
	if e.Has("angle") || e.Kind.Name == "translational_joint" {
		dir[1], dir[0] = math.Sincos(e.Number("angle"))
		for i := range dir {
			if math.Abs(dir[i]) < 1e-15 {
				dir[i] = 0 // 90 deg
			}
		}

		return a, b, dir
	}

	wantPlaces(e, a, b)
	dx, dy := b.at(xAxis, 0)-a.at(xAxis, 0), b.at(yAxis, 0)-a.at(yAxis, 0)
	length := math.Hypot(dx, dy)
	if !(length > 0) {
		e.Refuse(e.At, "%s and %s are at the same place; give angle", a.name, b.name)
	}
	return a, b, [2]float64{dx / length, dy / length}
}

var xAxis, yAxis = [2]float64{1, 0}, [2]float64{0, 1}

// angleTo is the direction from one point to another, in degrees.
func (p *frame) angleTo(to *frame) float64 {
	return math.Atan2(to.at(yAxis, 0)-p.at(yAxis, 0), to.at(xAxis, 0)-p.at(xAxis, 0)) * 180 / math.Pi
}

// wantPlaces fails unless both bodies have places in the plane.
func wantPlaces(e *element.Element, list ...*frame) {
	for _, p := range list {
		if !(p.body.written[0] && p.body.written[1]) {
			e.Refuse(e.At, "the place of %q is not known; give its body x_start and y_start", p.name)
		}
	}
}

// parting is the speed at which two points part in a direction.
func parting(a, b *frame, dir [2]float64) network.Row {
	return append(b.along(dir), a.along(dir).Scaled(-1)...)
}

// readLine makes the distance of two points a node: its speed is that at which they part
// along the line, and what pushes it pushes them apart. The line keeps its direction.
func readLine(e *element.Element) element.Declared {
	a, b, dir := readPair(e)
	own, r := e.OwnNode, parting(a, b, dir)
	if len(r) == 0 {
		e.Refuse(e.At, "neither %q nor %q moves along it", a.name, b.name)
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
	across := [2]float64{-axis[1], axis[0]}
	r := parting(a, b, across)
	if a.body.moves[2] {
		wantPlaces(e, a, b)
		d := b.at(axis, 0) - a.at(axis, 0)
		beside := b.at(across, b.body.start[2]) - a.at(across, a.body.start[2]) - d*a.body.start[2]
		if !(math.Abs(beside) <= 1e-5*(1+math.Abs(d))) { // an angle may be rounded
			e.Refuse(e.At, "%q is %s beside the axis through %q; correct angle (%s leads through both), or where they start",
				b.name, units.Format(units.DropRounding(beside), "m"), a.name, units.Format(a.angleTo(b), "deg"))
		}

		if d != 0 {
			r = append(r, network.TermOf(a.body.node[2], -d))
		}
	}

	e.Tie(r...).Joint = true
	reaction := element.Declared{Rel: r, Tau: network.TieOf(len(e.Network.Ties) - 1).Scaled(-1), Unit: "N"}
	if e.Word("rotation") == "locked" {
		e.Tie(append(b.turning(), a.turning().Scaled(-1)...)...).Joint = true
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
