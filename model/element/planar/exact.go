package planar

import (
	"math"

	"lockstep/model/element"
	"lockstep/model/law"
	"lockstep/model/network"
)

// Exact kinematics. The coordinates and the ties of a body stay linear. What a tie leaves out is a node of its
// own, an arc: its motion delta(q) is prescribed by the coordinates q of the tie. With the force D that drives the arc,
// virtual work gives the force that the coordinates lack:
//
//	v' = delta”(q, q', q”) + 2·a·(delta' - v) + a²·(delta - s),  s' = v        Q = -(d delta/dq)ᵀ·D
//
// The mass matrix stays that of phi = 0: D contains the inertia of all that moves with the point. The law iteration of
// the kernel solves for the accelerations that the laws read and cause.

// arcReturn is the rate a, 1/s, at which an arc returns to its position: errors of integration do not add up.
const arcReturn = 10.0

// Ranges for which the slopes of the laws hold. Beyond them the values are right, but a step may be too long.
const (
	mostAngle = 0.2  // rad
	mostTurn  = 2.0  // rad/s
	mostShake = 50.0 // rad/s², m/s²
	mostTrip  = 5.0  // m/s
)

// motion is a coordinate with its speed and acceleration.
type motion struct{ value, speed, accel *law.Expr }

// motionOf returns the motion along a row; the row has a state that is its position.
func motionOf(position network.Form, r network.Row, most, fast float64) motion {
	var accel network.Form
	for _, t := range r {
		accel = accel.Plus(network.AccelOf(t.Node).Scaled(t.Coef))
	}
	return motion{law.Of(position).Within(-most, most), law.Of(r.Speeds(1)).Within(-fast, fast),
		law.Of(accel).Within(-mostShake, mostShake)}
}

// distanceAlong returns the motion of the distance of two points in a direction. It is start at the beginning, m, and
// changes by most, m, at most.
func distanceAlong(e *element.Element, name string, a, b *frame, dir [2]float64, start, most float64) motion {
	r := separation(a, b, dir)
	i := network.Add(&e.Network.States, network.State{Name: e.Name + "." + name, Unit: "m", At: e.At, Der: r.Speeds(1), Along: r,
		Start: b.turned(dir, 0) - a.turned(dir, 0)})
	m := motionOf(network.StateOf(i), r, most, mostTrip)
	m.value = law.Of(network.StateOf(i)).Within(start-most, start+most)
	return m
}

// angleOf returns the motion of the angle of a body.
func (b *body) angleOf(e *element.Element) motion {
	n := b.node[2]
	return motionOf(network.StateOf(e.Angle(n)), network.RowOf(n), mostAngle, mostTurn)
}

// arc is the part of a coordinate that a linear tie leaves out.
type arc struct {
	node  int
	start float64 // value at the start, m
}

// addArc makes the node NAME of an arc. The formulas give it, its rate and its second rate.
func addArc(e *element.Element, name string, start, speed float64) arc {
	own := network.Add(&e.Network.Nodes, network.Node{Name: name, At: e.At, Owner: e.Kind.Name,
		Domain: network.Translational, By: e.Name, OfBody: true, Phi0: start})
	v := network.Add(&e.Network.States, network.State{Name: name + ".v", Unit: "m/s", At: e.At, Speed: network.RowOf(own)})
	e.Network.Nodes[own].Driven = v + 1
	for _, c := range []network.StartCondition{{Value: start}, {Value: speed, Speed: true}} {
		c.At, c.Row, c.Unit, c.Rank, c.Key = e.At, network.RowOf(own), "m", network.StartGiven, "arc"
		if c.Speed {
			c.Unit = "m/s"
		}
		e.AddStart(c)
	}
	return arc{own, start}
}

// follow prescribes the motion of an arc.
func (a arc) follow(e *element.Element, value, speed, accel *law.Expr) {
	n := &e.Network.Nodes[a.node]
	s, v := network.StateOf(e.Angle(a.node)), network.StateOf(n.Driven-1)
	rate := law.Formula("accel + 2*r*(speed - v) + r*r*(value - s)", law.Names{"accel": accel, "speed": speed, "value": value,
		"r": arcReturn, "v": law.Of(v).Within(-mostTrip, mostTrip), "s": law.Of(s).Within(-1, 1)})
	e.Network.States[n.Driven-1].Der = addImplicit(e, n.Name+".a", "m/s2", rate)
}

// push exerts the force along a row that the arc leaves out; slope is the derivative of the arc by the row.
func (a arc) push(e *element.Element, name string, r network.Row, slope *law.Expr) {
	f := law.Formula("-slope*drive", law.Names{"slope": slope, "drive": network.DriveOf(a.node)})
	unit := e.Network.Nodes[r[0].Node].Domain.Per("N.m", "N")
	e.Exert(r, addImplicit(e, e.Network.Nodes[a.node].Name+"."+name, unit, f))
}

// addImplicit makes a law that may read the accelerations that it causes.
func addImplicit(e *element.Element, name, unit string, value *law.Expr) network.Form {
	f := e.AddLaw(name, unit, value)
	s := &e.Network.Signals[f.Index()]
	s.Name, s.Implicit = name, true
	return f
}

// turned returns the exact position of a point in a direction relative to its body, m, at an angle of the body.
func (p *frame) turned(dir [2]float64, phi float64) float64 {
	sin, cos := math.Sincos(phi)
	return dir[0]*(p.rel[0]*cos-p.rel[1]*sin) + dir[1]*(p.rel[0]*sin+p.rel[1]*cos)
}

// bendPoint makes the arcs of a point. In the coordinate with cosine part p and sine part q,
//
//	delta = p·(cos phi - 1) + q·(sin phi - phi)
func (p *frame) bendPoint(e *element.Element, i int) {
	b := p.body
	if !b.exact || !b.moves[2] || p.rel == [2]float64{} {
		return
	}
	cosine, sine := p.rel[i], []float64{-p.rel[1], p.rel[0]}[i]
	sin0, cos0 := math.Sincos(b.start[2])
	w0 := e.NumberOr("w_start", 0)
	names := law.Names{"p": cosine, "q": sine}
	phi := b.angleOf(e)
	names["phi"], names["w"], names["a"] = phi.value, phi.speed, phi.accel
	slope := law.Formula("q*(cos(phi) - 1) - p*sin(phi)", names)
	names["slope"] = slope
	own := addArc(e, p.name+"."+coordinates[i]+"_arc", cosine*(cos0-1)+sine*(sin0-b.start[2]), w0*(sine*(cos0-1)-cosine*sin0))
	own.follow(e, law.Formula("p*(cos(phi) - 1) + q*(sin(phi) - phi)", names), law.Formula("slope*w", names),
		law.Formula("slope*a - (p*cos(phi) + q*sin(phi))*w*w", names))
	own.push(e, "moment", network.RowOf(b.node[2]), slope)
	p.arcs[i] = own
}

// bendJoint returns the term of a joint that its linear tie leaves out. Let u be the distance of b from a along the
// axis at phi = 0 and v across it. On the turned axis v = u·tan(phi), and with the lever d of the tie
//
//	delta = u·tan(phi) - d·phi
func bendJoint(e *element.Element, a, b *frame, axis [2]float64, d float64) network.Term {
	phi := a.body.angleOf(e)
	r := separation(a, b, axis)
	u := distanceAlong(e, "along", a, b, axis, d, math.Abs(d)/2+0.1)
	phi0, w0 := a.body.start[2], a.body.w0
	v0 := 0.0
	for _, t := range r {
		v0 += t.Coef * startSpeed(e, t.Node)
	}
	tan, sec := math.Tan(phi0), 1/(math.Cos(phi0)*math.Cos(phi0))
	own := addArc(e, e.Name+".arc", d*tan-d*phi0, v0*tan+d*(sec-1)*w0)
	names := law.Names{"d": d, "phi": phi.value, "w": phi.speed, "a": phi.accel, "u": u.value, "v": u.speed, "c": u.accel}
	names["tan"] = law.Formula("sin(phi)/cos(phi)", names)
	names["sec"] = law.Formula("1/(cos(phi)*cos(phi))", names)
	own.follow(e, law.Formula("u*tan - d*phi", names), law.Formula("v*tan + (u*sec - d)*w", names),
		law.Formula("c*tan + 2*sec*v*w + (u*sec - d)*a + 2*u*sec*tan*w*w", names))
	own.push(e, "moment", network.RowOf(a.body.node[2]), law.Formula("u*sec - d", names))
	own.push(e, "thrust", r, law.Formula("tan + 0", names))
	return network.TermOf(own.node, -1)
}

// bendLine returns the term of a line that its direction at the start leaves out. With the distances x and y of its
// points and their length l,
//
//	delta = l - dir_x·x - dir_y·y
func bendLine(e *element.Element, a, b *frame, dir [2]float64) network.Term {
	var rows [2]network.Row
	var at, v0 [2]float64
	names := law.Names{"m": dir[0], "n": dir[1]}
	for i, axis := range [][2]float64{xAxis, yAxis} {
		rows[i] = separation(a, b, axis)
		at[i] = b.at(axis, b.body.start[2]) - a.at(axis, a.body.start[2])
		for _, t := range rows[i] {
			v0[i] += t.Coef * startSpeed(e, t.Node)
		}
	}
	length := math.Hypot(at[0], at[1])
	for i, axis := range [][2]float64{xAxis, yAxis} {
		key := coordinates[i]
		q := motion{law.Number(at[i]), law.Number(0), law.Number(0)}
		if len(rows[i]) > 0 {
			q = distanceAlong(e, key, a, b, axis, at[i], 0.3*length)
		}
		names[key], names["v"+key], names["a"+key] = q.value, q.speed, q.accel
	}
	names["l"] = law.Formula("sqrt(x*x + y*y)", names)
	names["s"] = law.Formula("(x*vx + y*vy)/l", names)
	own := addArc(e, e.Name+".arc", length-dir[0]*at[0]-dir[1]*at[1],
		(at[0]*v0[0]+at[1]*v0[1])/length-dir[0]*v0[0]-dir[1]*v0[1])
	own.follow(e, law.Formula("l - m*x - n*y", names), law.Formula("s - m*vx - n*vy", names),
		law.Formula("(vx*vx + vy*vy + x*ax + y*ay - s*s)/l - m*ax - n*ay", names))
	for i, slope := range []string{"x/l - m", "y/l - n"} {
		if len(rows[i]) > 0 {
			own.push(e, "force_"+coordinates[i], rows[i], law.Formula(slope, names))
		}
	}
	return network.TermOf(own.node, 1)
}

// startSpeed returns the speed of a node at the start as the file gives it, 0 where it gives none.
func startSpeed(e *element.Element, node int) (v float64) {
	for _, c := range e.Network.Starts {
		if c.Speed && c.Rank == network.StartGiven && len(c.Row) == 1 && c.Row[0] == network.TermOf(node, 1) {
			v = c.Value
		}
	}
	return v
}
