// Package planar owns the element types of bodies in the plane: body, line and joint. It has no
// springs or forces: these are elements of other families between the nodes of bodies.
//
// The coordinates of a body are three nodes. A point of the body is a rigid combination of them,
// by a tie like that of a gear (Gyebroszki, Efficient numerical time-domain simulation of rail vehicles with coupled
// simulator systems, ch. 1). With x to the front, y upwards and phi from x to y,
//
//	x_node = x - y_rel·phi        y_node = y + x_rel·phi
//
// linear about phi = 0; exact.go adds what this leaves out.
package planar

import (
	"math"
	"slices"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Kinds returns the element types of the family.
func Kinds() []element.Kind {
	type parameters = []element.Parameter
	number, free, positive := element.AsNumber.Of, element.Any, element.Positive
	a := element.Word("a", "", "body, or node of a body")
	b := element.Word("b", "", "body, or node of a body")
	return []element.Kind{
		{Name: "body", MakeNodes: makeBody, First: true, Read: readBody,
			Hint: "its flanges are NAME.x, NAME.y, NAME.phi, and those of its nodes",
			Parameters: parameters{
				number("m", "kg", "with x or y", positive, "mass"),
				number("J", "kg.m2", "with phi", positive, "moment of inertia"),
				element.AsList.Of("dof", "", "[x, y, phi]", free, "coordinates that move"),
				element.AsMap.Of("nodes", "m", "none", free, "{POINT: [x, y], ...} from the centre"),
				number("g", "m/s2", "0", free, "gravitational acceleration, for the weight along -y"),
				number("x_start", "m", "solved", free, "position of the centre along x at the start"),
				number("y_start", "m", "solved", free, "position of the centre along y at the start"),
				number("phi_start", "rad", "solved", free, "angle at the start"),
				number("v_x_start", "m/s", "solved", free, "speed along x at the start"),
				number("v_y_start", "m/s", "solved", free, "speed along y at the start"),
				number("w_start", "rad/s", "solved", free, "angular speed at the start"),
				element.Word("kinematics", "linear", "of points, lines and joints: linear about phi = 0, or exact", "linear", "exact"),
			}},
		{Name: "line", Owns: true, Itself: network.Translational, Read: readLine,
			Parameters: parameters{a, b, number("angle", "rad", "from a to b", free, "direction, from x to y")}},
		{Name: "translational_joint", Read: readSlide,
			Parameters: parameters{a, b, number("angle", "rad", "", free, "direction of the axis, from x to y"),
				element.Word("rotation", "free", "rotation of b against a", "free", "locked")}},
	}
}

// frame is a point of a body.
type frame struct {
	name string
	body *body
	rel  [2]float64 // position relative to the centre, m
	node [2]int     // nodes x and y; not used for the centre
	arcs [2]arc     // of x and y: what a point of an exact body adds; node 0: nothing
}

// body is a body with its points; its coordinates are x, y, phi.
type body struct {
	node    [3]int
	moves   [3]bool
	inertia [3]float64 // mass, kg, twice, and moment of inertia, kg·m²; of no effect where it does not move
	start   [3]float64 // initial position, m, m, rad
	written [3]bool    // the file gives start
	points  []*frame   // the centre first
	exact   bool       // kinematics: exact
	w0      float64    // angular speed at the start, rad/s; of an exact body only
}

var (
	coordinates = []string{"x", "y", "phi"}
	domains     = []network.Domain{network.Translational, network.Translational, network.Rotational}
)

// makeBody makes the nodes of a body: NAME.x, NAME.y, NAME.phi, and NAME.POINT.x and .y of each of
// its points. Coordinates that do not move are fixed nodes.
func makeBody(e *element.Element) {
	b := &body{moves: [3]bool{true, true, true}}
	if f, ok := e.Field("dof"); ok {
		b.moves = [3]bool{}
		for _, g := range e.Items(f, "dof") {
			name := e.Text(g, e.What()+": dof")
			i := slices.Index(coordinates, name)
			if i < 0 {
				e.Refuse(g.At, "dof: %q is none of x, y and phi%s", name, units.Meant(name, coordinates))
			}
			if b.moves[i] {
				e.Refuse(g.At, "dof: %s appears twice", name)
			}
			b.moves[i] = true
		}
	}

	for i, name := range coordinates {
		b.node[i] = addNode(e, e.Name+"."+name, domains[i], b.moves[i])
	}
	b.points = []*frame{{name: e.Name, body: b}}
	e.Data = b
	for _, f := range pointFields(e) {
		name := e.Name + "." + f.Key
		if !units.IsName(f.Key, false) || slices.Contains(coordinates, f.Key) {
			e.Refuse(f.KeyAt, "nodes: %q is not a name for a node (letters, digits and _; not x, y, phi)", f.Key)
		}
		p := &frame{name: name, body: b}
		for i := range p.node {
			p.node[i] = addNode(e, name+"."+coordinates[i], network.Translational, true)
		}
		b.points = append(b.points, p)
	}
}

// addNode makes a node of the element, a fixed one unless it moves.
func addNode(e *element.Element, name string, d network.Domain, moves bool) int {
	owner := e.Kind.Name
	if !moves {
		owner = "fixed"
	}
	n := network.Node{Name: name, At: e.At, Owner: owner, Domain: d, By: e.Name, OfBody: true}
	return network.Add(&e.Network.Nodes, n)
}

// pointFields returns the entries of the key nodes.
func pointFields(e *element.Element) []element.Field {
	f, ok := e.Field("nodes")
	if !ok {
		return nil
	}
	return e.FieldsOf(f, e.What()+": nodes")
}

// readBody reads the inertia, the points and the initial values of a body.
func readBody(e *element.Element) element.Declared {
	b := e.Data.(*body)
	m, J := e.NumberOr("m", 0), e.NumberOr("J", 0) // of no effect for coordinates that do not move
	if b.moves[0] || b.moves[1] {
		m = e.Number("m")
	}
	if b.moves[2] {
		J = e.Number("J")
	}
	for i, c := range coordinates {
		n := &e.Network.Nodes[b.node[i]]
		speed, place := "v_"+c+"_start", c+"_start"
		b.inertia[i] = m
		if i == 2 {
			b.inertia[i], speed = J, "w_start"
		}
		n.Phi0 = e.NumberOr(place, 0)
		b.start[i], b.written[i] = n.Phi0, e.Has(place)
		n.InPlane = b.written[i] && i < 2
		if b.moves[i] {
			n.J += b.inertia[i] // a dual_mass_flywheel at the node adds its own
			e.ReadNodeStart(b.node[i], speed, place)
		} else {
			forbidAlong(e, c, speed)
		}
	}

	if b.exact = e.Word("kinematics") == "exact"; b.exact && b.moves[2] {
		b.w0 = e.NumberOr("w_start", 0)
		for _, c := range []network.StartCondition{{Key: "phi_start", Unit: "rad"}, {Key: "w_start", Unit: "rad/s", Speed: true}} {
			if c.At, c.Row, c.Rank = e.At, network.RowOf(b.node[2]), network.StartGiven; !e.Has(c.Key) {
				e.AddStart(c) // the arcs need them
			}
		}
	}
	if b.moves[2] && !b.exact && !b.written[2] && (b.written[0] || b.written[1]) { // upright, whatever its springs pull
		e.AddStart(network.StartCondition{At: e.At, Row: network.RowOf(b.node[2]), Unit: "rad",
			Rank: network.StartGuess, Weight: 1})
	}
	for i, f := range pointFields(e) {
		readPoint(e, f, b.points[1+i])
	}
	if b.moves[2] && !b.exact && len(b.points) > 1 {
		network.Add(&e.Network.Linear, network.LinearBody{Name: e.Name, At: e.At, Node: b.node[2], Start: b.start[2]})
	}
	if e.Has("g") {
		g := e.Number("g")
		if !b.moves[1] {
			forbidAlong(e, "y", "g")
		}
		e.Exert(network.RowOf(b.node[1]), network.One(-m*g))
	}

	return element.Declared{Energy: b.energy(e)}
}

// energy returns the kinetic energy of the body, and with g that of its weight above y = 0.
func (b *body) energy(e *element.Element) *law.Expr {
	sum := law.Number(0)
	for i, own := range b.node {
		if b.moves[i] {
			sum = law.Formula("sum + J/2*v*v", law.Names{"sum": sum, "J": b.inertia[i], "v": network.RowOf(own).Speeds(1)})
		}
	}
	if e.Has("g") {
		sum = law.Formula("sum + weight*y", law.Names{"sum": sum, "weight": e.Number("m") * e.Number("g"),
			"y": network.StateOf(e.Angle(b.node[1]))})
	}
	return sum.WithoutSlopes()
}

// forbidAlong refuses a key of a coordinate along which the body does not move.
func forbidAlong(e *element.Element, coordinate, key string) {
	if f, ok := e.Field(key); ok {
		e.Refuse(f.KeyAt, "%s: it does not move along %s; add that to dof", key, coordinate)
	}
}

// readPoint ties the two flanges of a point to its body.
func readPoint(e *element.Element, f element.Field, p *frame) {
	pair := e.NumbersOf(f, element.Parameter{Key: "nodes: " + f.Key, Unit: "m"})
	if len(pair) != 2 {
		e.Refuse(f.At, "nodes: %s: %d values; [x, y] from the centre of the body are wanted%s",
			f.Key, len(pair), e.DecimalAdvice(f))
	}
	p.rel = [2]float64(pair)
	for i, own := range p.node {
		var dir [2]float64
		dir[i] = 1
		p.bendPoint(e, i)
		n := &e.Network.Nodes[own]
		n.Phi0 = p.place(dir)
		n.InPlane, n.Displaced = p.placeKind(dir)
		if r := p.along(dir); len(r) > 0 {
			followRigidly(e, own, r)
		} else {
			n.Owner = "fixed"
		}
	}
}

// along returns the speed of a point in a direction.
func (p *frame) along(dir [2]float64) network.Row {
	var r network.Row
	for i, c := range [3]float64{dir[0], dir[1], p.rel[0]*dir[1] - p.rel[1]*dir[0]} {
		if p.body.moves[i] && c != 0 {
			r = append(r, network.TermOf(p.body.node[i], c))
		}
	}

	for i, a := range p.arcs {
		if a.node != 0 && dir[i] != 0 {
			r = append(r, network.TermOf(a.node, dir[i]))
		}
	}
	return r
}

// at returns the position of a point in a direction, m, for an angle phi of the body.
func (p *frame) at(dir [2]float64, phi float64) float64 {
	if p.body.exact {
		return dir[0]*p.body.start[0] + dir[1]*p.body.start[1] + p.turned(dir, phi)
	}
	return dir[0]*(p.body.start[0]+p.rel[0]) + dir[1]*(p.body.start[1]+p.rel[1]) +
		phi*(p.rel[0]*dir[1]-p.rel[1]*dir[0])
}

// place returns the position of a point in a direction, m, as the file gives that of its body. A
// coordinate that the file does not give counts as a displacement, without the offset of the point.
func (p *frame) place(dir [2]float64) float64 {
	at := p.body.start[2] * (p.rel[0]*dir[1] - p.rel[1]*dir[0])
	for i, c := range dir {
		at += c * p.body.start[i]
		if p.body.written[i] {
			at += c * p.rel[i]
		}
		at += c * p.arcs[i].start
	}

	return at
}

// placeKind reports whether the initial position of a point in a direction is one in the plane, and
// whether it lacks an offset from the centre, as a displacement does.
func (p *frame) placeKind(dir [2]float64) (inPlane, displaced bool) {
	for i, c := range dir {
		inPlane = inPlane || c != 0 && p.body.written[i]
		displaced = displaced || c*p.rel[i] != 0 && !p.body.written[i]
	}

	return inPlane, displaced
}

// followRigidly ties node own to other nodes.
func followRigidly(e *element.Element, own int, r network.Row) {
	tieAsGiven(e, append(r.Scaled(-1), network.TermOf(own, 1)))
}

// tieAsGiven ties nodes rigidly in the positions that the file gives their bodies.
func tieAsGiven(e *element.Element, r network.Row) *network.Tie {
	t := e.Tie(r...)
	for _, x := range t.Row {
		t.Gap += x.Coef * e.Network.Nodes[x.Node].Phi0
	}

	return t
}

// pointAt returns the point that a key names.
func pointAt(e *element.Element, key string) *frame {
	name := e.FullName(e.Word(key))
	var names []string
	for _, other := range e.Elements {
		b, ok := other.Data.(*body)
		if !ok {
			continue
		}
		for _, p := range b.points {
			if p.name == name {
				return p
			}
			names = append(names, p.name)
		}
	}

	slices.Sort(names)
	e.Refuse(e.Place(key), "%s: %q is no body and no node of one%s", key, name, units.Meant(name, names))
	return nil
}

// readPair reads the two points of an element and its direction: that of the key angle, or of the line
// from a to b.
func readPair(e *element.Element) (a, b *frame, dir [2]float64) {
	a, b = pointAt(e, "a"), pointAt(e, "b")
	if a.body == b.body {
		e.Refuse(e.Place("b"), "a and b are on the same body")
	}
	e.Domain = network.Translational
	if e.Kind.Name == "line" && (a.body.exact || b.body.exact) {
		e.Forbid("goes with kinematics: linear; the line follows its points", "angle")
	}
	if e.Has("angle") || e.Kind.Name == "translational_joint" {
		dir[1], dir[0] = math.Sincos(e.Number("angle"))
		for i := range dir {
			if math.Abs(dir[i]) < 1e-15 {
				dir[i] = 0 // 90 deg
			}
		}

		return a, b, dir
	}

	requirePlaces(e, a, b)
	dx, dy := b.at(xAxis, 0)-a.at(xAxis, 0), b.at(yAxis, 0)-a.at(yAxis, 0)
	length := math.Hypot(dx, dy)
	if !(length > 0) {
		e.Refuse(e.At, "%s and %s are at the same place; give angle", a.name, b.name)
	}
	return a, b, [2]float64{dx / length, dy / length}
}

var xAxis, yAxis = [2]float64{1, 0}, [2]float64{0, 1}

// angleTo returns the direction from a point to another, degrees.
func (p *frame) angleTo(to *frame) float64 {
	return math.Atan2(to.at(yAxis, 0)-p.at(yAxis, 0), to.at(xAxis, 0)-p.at(xAxis, 0)) * 180 / math.Pi
}

// requirePlaces refuses points of bodies without a position in the plane.
func requirePlaces(e *element.Element, list ...*frame) {
	for _, p := range list {
		if !(p.body.written[0] && p.body.written[1]) {
			e.Refuse(e.At, "the place of %q is not known; give its body x_start and y_start", p.name)
		}
	}
}

// separation returns the speed at which two points separate in a direction.
func separation(a, b *frame, dir [2]float64) network.Row {
	return append(b.along(dir), a.along(dir).Scaled(-1)...)
}

// readLine makes a node of the distance between two points. Its speed is that at which they separate
// along the line, and a positive force on it pushes them apart. The line keeps its direction.
func readLine(e *element.Element) element.Declared {
	a, b, dir := readPair(e)
	own, r := e.OwnNode, separation(a, b, dir)
	if len(r) == 0 {
		e.Refuse(e.At, "neither %q nor %q moves along it", a.name, b.name)
	}
	if a.body.exact || b.body.exact {
		r = append(r, bendLine(e, a, b, dir))
	}
	n := &e.Network.Nodes[own]
	n.OfBody, n.Phi0 = true, b.place(dir)-a.place(dir)
	if a.body.exact || b.body.exact {
		n.Phi0 += e.Network.Nodes[r[len(r)-1].Node].Phi0
	}
	for _, p := range []*frame{a, b} {
		inPlane, displaced := p.placeKind(dir)
		n.InPlane, n.Displaced = n.InPlane || inPlane, n.Displaced || displaced
	}

	if n.InPlane && n.Displaced {
		requirePlaces(e, a, b)
	}
	followRigidly(e, own, r)
	return element.Declared{Rel: network.RowOf(own)}
}

// readSlide makes point b slide along an axis of body a, without motion across it. The axis turns
// with the body, and b is at the distance d along it:
//
//	across·(v_b - v_a) - d·w_a = 0
//
// and with rotation: locked w_b = w_a.
func readSlide(e *element.Element) element.Declared {
	a, b, axis := readPair(e)
	across := [2]float64{-axis[1], axis[0]}
	r := separation(a, b, across)
	if a.body.moves[2] {
		requirePlaces(e, a, b)
		d := b.at(axis, 0) - a.at(axis, 0)
		beside := b.at(across, b.body.start[2]) - a.at(across, a.body.start[2]) - d*a.body.start[2]
		if a.body.exact {
			along := b.at(axis, b.body.start[2]) - a.at(axis, a.body.start[2])
			sin, cos := math.Sincos(a.body.start[2])
			d, beside = along, (beside+d*a.body.start[2])*cos-along*sin
		}
		if !(math.Abs(beside) <= 1e-5*(1+math.Abs(d))) { // an angle may be rounded
			e.Refuse(e.At, "%q is %s beside the axis through %q; correct angle (%s leads through both), or where they start",
				b.name, units.Format(units.DropRounding(beside), "m"), a.name, units.Format(a.angleTo(b), "deg"))
		}

		if d != 0 {
			r = append(r, network.TermOf(a.body.node[2], -d))
		}
		if a.body.exact {
			r = append(r, bendJoint(e, a, b, axis, d))
		}
	}

	tieAsGiven(e, r).Joint = true
	reaction := element.Declared{Rel: r, Tau: network.TieOf(len(e.Network.Ties) - 1).Scaled(-1), Unit: "N"}
	if e.Word("rotation") == "locked" {
		tieAsGiven(e, append(b.angularSpeed(), a.angularSpeed().Scaled(-1)...)).Joint = true
	}
	return reaction
}

// angularSpeed returns the angular speed of the body of a point.
func (p *frame) angularSpeed() network.Row {
	if p.body.moves[2] {
		return network.RowOf(p.body.node[2])
	}
	return nil
}
