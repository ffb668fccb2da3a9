package model

import (
	"slices"
)

// Bodies in the plane are no new mathematics: the coordinates of a body are three nodes,
// and what is fixed to it moves as a rigid combination of them, by a tie like a gear's
// (Gyebroszki, Efficient numerical time-domain simulation of rail vehicles with coupled
// simulator systems, ch. 1). With x to the front, y upwards and phi from x to y,
//
//	x_node = x - y_rel·phi        y_node = y + x_rel·phi
//
// linear about phi = 0.

func planarKinds() []kind {
	return []kind{
		{name: "body", keys: []string{"m", "J", "dof", "nodes", "g", "x_start", "y_start", "phi_start", "v_x_start", "v_y_start", "w_start"},
			early: makeBody, read: readBody, hint: "its flanges are NAME.x, NAME.y, NAME.phi, and those of its nodes"},
		{name: "line", owns: true, itself: translational, frames: []string{"a", "b"}, keys: []string{"angle"}, read: readLine},
		{name: "translational_joint", frames: []string{"a", "b"}, keys: []string{"angle", "rotation"}, read: readSlide},
	}
}

// frame is a point of a body.
type frame struct {
	name string
	body *body
	rel  [2]float64 // from the centre, m
	node [2]int     // its flanges x and y; of the centre those of the body
}

// body is what frames need of it; its coordinates are x, y, phi.
type body struct {
	node    [3]int
	moves   [3]bool
	start   [3]float64 // m, m, rad
	written [3]bool    // start was
	points  []*frame   // the centre first
}

var coordinates = []string{"x", "y", "phi"}

// makeBody makes the nodes of a body: NAME.x, NAME.y, NAME.phi, and NAME.POINT.x and .y of
// each of its points. What does not move is fixed.
func makeBody(e *element) {
	b := &body{moves: [3]bool{true, true, true}}
	if f, ok := e.fields["dof"]; ok {
		b.moves = [3]bool{}
		for _, n := range e.items(f.node, f.at, e.what()+": dof") {
			at := startOf(n)
			name := e.text(field{at: at, node: n}, e.what()+": dof")
			i := slices.Index(coordinates, name)
			if i < 0 {
				e.fail(at, "%s: dof: %q is none of x, y and phi%s", e.what(), name, didYouMean(name, coordinates))
				return
			}
			if b.moves[i] {
				e.fail(at, "%s: dof: %s appears twice", e.what(), name)
			}
			b.moves[i] = true
		}
	}
	for i, name := range coordinates {
		b.node[i] = addNode(e, e.name+"."+name, domainOf(i), b.moves[i])
	}
	b.points = []*frame{{name: e.name, body: b}}
	e.data = b
	for _, f := range pointFields(e) {
		name := e.name + "." + f.key
		if !isName(f.key, false) || slices.Index(coordinates, f.key) >= 0 {
			e.fail(f.keyAt, "%s: nodes: %q is not a name for a node (letters, digits and _; not x, y, phi)", e.what(), f.key)
		}
		p := &frame{name: name, body: b}
		for i := range p.node {
			p.node[i] = addNode(e, name+"."+coordinates[i], translational, true)
		}
		b.points = append(b.points, p)
	}
}

// domainOf is what coordinate i of a body does.
func domainOf(i int) domain {
	if i == 2 {
		return rotational
	}
	return translational
}

// addNode makes a node of the element; one that does not move is fixed.
func addNode(e *element, name string, d domain, moves bool) int {
	owner := e.kind.name
	if !moves {
		owner = "fixed"
	}
	i := len(e.plant.nodes)
	e.plant.nodes = append(e.plant.nodes, node{name: name, at: e.at, owner: owner, domain: d, by: e.name, framed: true})
	return i
}

// pointFields are the entries of nodes.
func pointFields(e *element) []field {
	f, ok := e.fields["nodes"]
	if !ok {
		return nil
	}
	return e.entries(f.node, f.at, e.what()+": nodes")
}

// readBody gives a body its inertia, its points and where it starts.
func readBody(e *element) declared {
	b := e.data.(*body)
	m, J := 0.0, 0.0
	if b.moves[0] || b.moves[1] {
		m = e.need("m", "kg", "mass")
	}
	if b.moves[2] {
		J = e.need("J", "kg.m2", "moment of inertia")
	}
	for i, c := range coordinates {
		n := &e.plant.nodes[b.node[i]]
		speed, place := "v_"+c+"_start", c+"_start"
		if n.J = m; i == 2 {
			n.J, speed = J, "w_start"
		}
		n.start, _ = e.option(speed, n.speedUnit(), 0)
		n.given = e.has(speed)
		b.start[i], _ = e.option(place, n.angleUnit(), 0)
		b.written[i] = e.has(place)
		n.phi0, n.placed = b.start[i], b.written[i]
		n.fixes = n.placed && i < 2
		if !b.moves[i] {
			if n.J = 0; n.given {
				e.fail(e.fields[speed].keyAt, "%s: %s: it does not move along %s; add that to dof", e.what(), speed, c)
			}
		}
	}
	for i, f := range pointFields(e) {
		readPoint(e, f, b.points[1+i])
	}
	if f, ok := e.fields["g"]; ok {
		g := e.value(f, "m/s2")
		if !b.moves[1] && e.err == nil {
			e.fail(f.keyAt, "%s: g: it does not move along y; add that to dof", e.what())
		}
		e.act(rowOf(b.node[1]), one(-m*g))
	}
	return declared{}
}

// readPoint ties the two flanges of a point to its body.
func readPoint(e *element, f field, p *frame) {
	what := e.what() + ": nodes: " + f.key
	pair := e.items(f.node, f.at, what)
	if len(pair) != 2 {
		e.fail(f.at, "%s: %d values; [x, y] from the centre of the body are wanted", what, len(pair))
		return
	}
	u, _ := Units("m")
	for i, n := range pair {
		p.rel[i] = e.quantity(field{at: startOf(n), node: n}, what, wanted{u, "m"})
	}
	for i := range 2 {
		own := p.node[i]
		var dir [2]float64
		dir[i] = 1
		n := &e.plant.nodes[own]
		n.phi0, n.placed = p.place(dir)
		n.fixes, n.loose = p.reckoning(dir)
		r := p.along(dir)
		if len(r) == 0 {
			n.owner = "fixed"
			continue
		}
		followRigidly(e, own, r)
	}
}

// along is the speed of a point in a direction.
func (p *frame) along(dir [2]float64) row {
	var r row
	for i, c := range [3]float64{dir[0], dir[1], p.rel[0]*dir[1] - p.rel[1]*dir[0]} {
		if p.body.moves[i] && c != 0 {
			r = append(r, termOf(p.body.node[i], c))
		}
	}
	return r
}

// at is the place of a point in a direction, with phi or without it, m.
func (p *frame) at(dir [2]float64, phi float64) float64 {
	return dir[0]*(p.body.start[0]+p.rel[0]) + dir[1]*(p.body.start[1]+p.rel[1]) +
		phi*(p.rel[0]*dir[1]-p.rel[1]*dir[0])
}

// place is where a point starts in a direction, m. A coordinate that was not written is a
// displacement and has no offset; where nothing was, the place is not known.
func (p *frame) place(dir [2]float64) (at float64, known bool) {
	turn := p.rel[0]*dir[1] - p.rel[1]*dir[0]
	at, known = p.body.start[2]*turn, p.body.written[2] && turn != 0
	for i, c := range dir {
		at += c * p.body.start[i]
		if p.body.written[i] && c != 0 {
			at += c * p.rel[i]
			known = true
		}
	}
	return at, known
}

// reckoning tells whether the place of a point in a direction is one in the plane, and
// whether it leaves out an offset from the centre, as a displacement does.
func (p *frame) reckoning(dir [2]float64) (fixes, loose bool) {
	for i, c := range dir {
		fixes = fixes || c != 0 && p.body.written[i]
		loose = loose || c*p.rel[i] != 0 && !p.body.written[i]
	}
	return fixes, loose
}

// followRigidly ties a node to others, where they start as well.
func followRigidly(e *element, own int, r row) {
	e.tie(append(r.negative(), termOf(own, 1))...)
	t := &e.plant.ties[len(e.plant.ties)-1]
	for _, x := range t.row {
		t.gap += x.coef * e.plant.nodes[x.node].phi0
	}
}

func (r row) negative() row {
	out := slices.Clone(r)
	for i := range out {
		out[i].coef = -out[i].coef
	}
	return out
}

// pointAt is the point that a key names.
func pointAt(e *element, key string) *frame {
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (a body, or a node of one)", e.what(), e.kind.name, key)
		return nil
	}
	name := e.full(e.text(f, e.what()+": "+key))
	var names []string
	for _, other := range e.all {
		b, _ := other.data.(*body)
		for _, p := range b.all() {
			if p.name == name {
				return p
			}
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	e.fail(f.at, "%s: %s: %q is no body and no node of one%s", e.what(), key, name, didYouMean(name, names))
	return nil
}

// all are the points of a body; none of what is no body.
func (b *body) all() []*frame {
	if b == nil {
		return nil
	}
	return b.points
}
