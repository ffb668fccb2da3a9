package model

import "math"

// readPair reads the two points of an element and the direction of its angle, or of the line
// from a to b.
func readPair(e *element) (a, b *frame, dir [2]float64) {
	a, b = pointAt(e, "a"), pointAt(e, "b")
	if e.err != nil {
		return
	}
	if a.body == b.body {
		e.fail(e.fields["b"].at, "%s: a and b are on the same body", e.what())
		return
	}
	e.domain = translational
	if e.has("angle") {
		angle, _ := e.option("angle", "rad", 0)
		dir[1], dir[0] = math.Sincos(angle)
		for i := range dir {
			if math.Abs(dir[i]) < 1e-15 {
				dir[i] = 0 // 90 deg
			}
		}
		return
	}
	if e.kind.name == "translational_joint" {
		e.fail(e.at, "%s: translational_joint needs angle (of its axis, from x to y)", e.what())
		return
	}
	wantPlaces(e, a, b)
	x, y := [2]float64{1, 0}, [2]float64{0, 1}
	dx, dy := b.at(x, 0)-a.at(x, 0), b.at(y, 0)-a.at(y, 0)
	length := math.Hypot(dx, dy)
	if !(length > 0) && e.err == nil {
		e.fail(e.at, "%s: %s and %s are at the same place; give angle", e.what(), a.name, b.name)
	}
	return a, b, [2]float64{dx / length, dy / length}
}

// angleTo is the direction from one point to another, in degrees.
func (p *frame) angleTo(to *frame) float64 {
	x, y := [2]float64{1, 0}, [2]float64{0, 1}
	return math.Atan2(to.at(y, 0)-p.at(y, 0), to.at(x, 0)-p.at(x, 0)) * 180 / math.Pi
}

// wantPlaces fails unless both bodies have places in the plane.
func wantPlaces(e *element, list ...*frame) {
	for _, p := range list {
		if !(p.body.written[0] && p.body.written[1]) {
			e.fail(e.at, "%s: the place of %q is not known; give its body x_start and y_start", e.what(), p.name)
		}
	}
}

// readLine makes the distance of two points a node: its speed is that at which they part
// along the line, and what pushes it pushes them apart. The line keeps its direction.
func readLine(e *element) declared {
	a, b, dir := readPair(e)
	if e.err != nil {
		return declared{}
	}
	own := e.ownNode
	r := append(b.along(dir), a.along(dir).negative()...)
	if len(r) == 0 {
		e.fail(e.at, "%s: neither %q nor %q moves along it", e.what(), a.name, b.name)
	}
	n := &e.plant.nodes[own]
	from, known := a.place(dir)
	to, also := b.place(dir)
	n.framed, n.phi0, n.placed = true, to-from, known || also
	for _, p := range []*frame{a, b} {
		fixes, loose := p.reckoning(dir)
		n.fixes, n.loose = n.fixes || fixes, n.loose || loose
	}
	if n.fixes && n.loose {
		wantPlaces(e, a, b)
	}
	followRigidly(e, own, r)
	return declared{rel: rowOf(own)}
}

// readSlide lets point b slide along an axis of body a: no motion across it, where the
// axis turns with the body and b is at the distance d along it,
//
//	across·(v_b - v_a) - d·w_a = 0
//
// and with rotation: locked w_b = w_a.
func readSlide(e *element) declared {
	a, b, axis := readPair(e)
	if e.err != nil {
		return declared{}
	}
	across := [2]float64{-axis[1], axis[0]}
	d := 0.0
	if a.body.moves[2] {
		wantPlaces(e, a, b)
		d = b.at(axis, 0) - a.at(axis, 0)
		beside := b.at(across, b.body.start[2]) - a.at(across, a.body.start[2]) - d*a.body.start[2]
		if !(math.Abs(beside) <= 1e-5*(1+math.Abs(d))) && e.err == nil { // an angle may be rounded
			e.fail(e.at, "%s: %q is %s beside the axis through %q; correct angle (%s leads through both), or where they start",
				e.what(), b.name, withUnit(digits(beside), "m"), a.name, withUnit(a.angleTo(b), "deg"))
		}
	}
	r := append(b.along(across), a.along(across).negative()...)
	if a.body.moves[2] && d != 0 {
		r = append(r, termOf(a.body.node[2], -d))
	}
	joinRigidly(e, r)
	reaction := declared{rel: r, tau: tieOf(len(e.plant.ties) - 1).scaled(-1), unit: "N"}
	if f, ok := e.fields["rotation"]; ok {
		switch text := e.text(f, e.what()+": rotation"); text {
		case "free":
		case "locked":
			joinRigidly(e, append(b.turning(), a.turning().negative()...))
		default:
			e.fail(f.at, "%s: rotation: %q is neither free nor locked", e.what(), text)
		}
	}
	return reaction
}

// turning is the angular speed of a point's body.
func (p *frame) turning() row {
	if p.body.moves[2] {
		return rowOf(p.body.node[2])
	}
	return nil
}

// joinRigidly is a tie that must take a degree of freedom.
func joinRigidly(e *element, r row) {
	e.tie(r...)
	e.plant.ties[len(e.plant.ties)-1].joint = true
}
