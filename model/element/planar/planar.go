// Package planar owns the element types of bodies in the plane: body, line and joint. What
// acts between their nodes is of other families.
//
// Bodies in the plane are no new mathematics: the coordinates of a body are three nodes,
// and what is fixed to it moves as a rigid combination of them, by a tie like a gear's
// (Gyebroszki, Efficient numerical time-domain simulation of rail vehicles with coupled
// simulator systems, ch. 1). With x to the front, y upwards and phi from x to y,
//
//	x_node = x - y_rel·phi        y_node = y + x_rel·phi
//
// linear about phi = 0.
package planar

import (
	"slices"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Kinds are the element types of the family.
func Kinds() []element.Kind {
	return []element.Kind{
		{Name: "body",
			Keys:  []string{"m", "J", "dof", "nodes", "g", "x_start", "y_start", "phi_start", "v_x_start", "v_y_start", "w_start"},
			Early: makeBody, Read: readBody, Hint: "its flanges are NAME.x, NAME.y, NAME.phi, and those of its nodes"},
		{Name: "line", Owns: true, Itself: network.Translational, Points: []string{"a", "b"},
			Keys: []string{"angle"}, Read: readLine},
		{Name: "translational_joint", Points: []string{"a", "b"}, Keys: []string{"angle", "rotation"}, Read: readSlide},
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
func makeBody(e *element.Element) {
	b := &body{moves: [3]bool{true, true, true}}
	if f, ok := e.Fields["dof"]; ok {
		b.moves = [3]bool{}
		for _, n := range e.Items(f.Node, f.At, e.What()+": dof") {
			at := syntax.StartOf(n)
			name := e.Text(syntax.Field{At: at, Node: n}, e.What()+": dof")
			i := slices.Index(coordinates, name)
			if i < 0 {
				e.Fail(at, "%s: dof: %q is none of x, y and phi%s", e.What(), name, units.DidYouMean(name, coordinates))
				return
			}
			if b.moves[i] {
				e.Fail(at, "%s: dof: %s appears twice", e.What(), name)
			}
			b.moves[i] = true
		}
	}
	for i, name := range coordinates {
		b.node[i] = addNode(e, e.Name+"."+name, domainOf(i), b.moves[i])
	}
	b.points = []*frame{{name: e.Name, body: b}}
	e.Data = b
	for _, f := range pointFields(e) {
		name := e.Name + "." + f.Key
		if !units.IsName(f.Key, false) || slices.Index(coordinates, f.Key) >= 0 {
			e.Fail(f.KeyAt, "%s: nodes: %q is not a name for a node (letters, digits and _; not x, y, phi)", e.What(), f.Key)
		}
		p := &frame{name: name, body: b}
		for i := range p.node {
			p.node[i] = addNode(e, name+"."+coordinates[i], network.Translational, true)
		}
		b.points = append(b.points, p)
	}
}

// domainOf is what coordinate i of a body does.
func domainOf(i int) network.Domain {
	if i == 2 {
		return network.Rotational
	}
	return network.Translational
}

// addNode makes a node of the element; one that does not move is fixed.
func addNode(e *element.Element, name string, d network.Domain, moves bool) int {
	owner := e.Kind.Name
	if !moves {
		owner = "fixed"
	}
	i := len(e.Network.Nodes)
	e.Network.Nodes = append(e.Network.Nodes, network.Node{Name: name, At: e.At, Owner: owner, Domain: d, By: e.Name, Framed: true})
	return i
}

// pointFields are the entries of nodes.
func pointFields(e *element.Element) []syntax.Field {
	f, ok := e.Fields["nodes"]
	if !ok {
		return nil
	}
	return e.Entries(f.Node, f.At, e.What()+": nodes")
}

// readBody gives a body its inertia, its points and where it starts.
func readBody(e *element.Element) element.Declared {
	b := e.Data.(*body)
	m, J := 0.0, 0.0
	if b.moves[0] || b.moves[1] {
		m = e.Need("m", "kg", "mass")
	}
	if b.moves[2] {
		J = e.Need("J", "kg.m2", "moment of inertia")
	}
	for i, c := range coordinates {
		n := &e.Network.Nodes[b.node[i]]
		speed, place := "v_"+c+"_start", c+"_start"
		if n.J = m; i == 2 {
			n.J, speed = J, "w_start"
		}
		n.Start, _ = e.Option(speed, n.SpeedUnit(), 0)
		n.Given = e.Has(speed)
		b.start[i], _ = e.Option(place, n.AngleUnit(), 0)
		b.written[i] = e.Has(place)
		n.Phi0, n.Placed = b.start[i], b.written[i]
		n.Fixes = n.Placed && i < 2
		if !b.moves[i] {
			if n.J = 0; n.Given {
				e.Fail(e.Fields[speed].KeyAt, "%s: %s: it does not move along %s; add that to dof", e.What(), speed, c)
			}
		}
	}
	for i, f := range pointFields(e) {
		readPoint(e, f, b.points[1+i])
	}
	if f, ok := e.Fields["g"]; ok {
		g := e.Value(f, "m/s2")
		if !b.moves[1] && e.Err == nil {
			e.Fail(f.KeyAt, "%s: g: it does not move along y; add that to dof", e.What())
		}
		e.Exert(network.RowOf(b.node[1]), network.One(-m*g))
	}
	return element.Declared{}
}

// readPoint ties the two flanges of a point to its body.
func readPoint(e *element.Element, f syntax.Field, p *frame) {
	what := e.What() + ": nodes: " + f.Key
	pair := e.Items(f.Node, f.At, what)
	if len(pair) != 2 {
		e.Fail(f.At, "%s: %d values; [x, y] from the centre of the body are wanted", what, len(pair))
		return
	}
	for i, n := range pair {
		p.rel[i] = e.Quantity(syntax.Field{At: syntax.StartOf(n), Node: n}, what, units.Want("m"))
	}
	for i := range 2 {
		own := p.node[i]
		var dir [2]float64
		dir[i] = 1
		n := &e.Network.Nodes[own]
		n.Phi0, n.Placed = p.place(dir)
		n.Fixes, n.Loose = p.reckoning(dir)
		r := p.along(dir)
		if len(r) == 0 {
			n.Owner = "fixed"
			continue
		}
		followRigidly(e, own, r)
	}
}

// along is the speed of a point in a direction.
func (p *frame) along(dir [2]float64) network.Row {
	var r network.Row
	for i, c := range [3]float64{dir[0], dir[1], p.rel[0]*dir[1] - p.rel[1]*dir[0]} {
		if p.body.moves[i] && c != 0 {
			r = append(r, network.TermOf(p.body.node[i], c))
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
func followRigidly(e *element.Element, own int, r network.Row) {
	e.Tie(append(r.Negative(), network.TermOf(own, 1))...)
	t := &e.Network.Ties[len(e.Network.Ties)-1]
	for _, x := range t.Row {
		t.Gap += x.Coef * e.Network.Nodes[x.Node].Phi0
	}
}

// pointAt is the point that a key names.
func pointAt(e *element.Element, key string) *frame {
	f, ok := e.Fields[key]
	if !ok {
		e.Fail(e.At, "%s: %s needs %s (a body, or a node of one)", e.What(), e.Kind.Name, key)
		return nil
	}
	name := e.FullName(e.Text(f, e.What()+": "+key))
	var names []string
	for _, other := range e.Elements {
		b, _ := other.Data.(*body)
		for _, p := range b.all() {
			if p.name == name {
				return p
			}
			names = append(names, p.name)
		}
	}
	slices.Sort(names)
	e.Fail(f.At, "%s: %s: %q is no body and no node of one%s", e.What(), key, name, units.DidYouMean(name, names))
	return nil
}

// all are the points of a body; none of what is no body.
func (b *body) all() []*frame {
	if b == nil {
		return nil
	}
	return b.points
}
