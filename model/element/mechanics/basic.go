package mechanics

import (
	"lockstep/model/element"
	"lockstep/model/network"
)

func basicKinds() []element.Kind {
	ends := element.Ends(either)
	mass := number("J|m", "kg.m2|kg", "", positive, "moment of inertia|mass")
	return []element.Kind{
		{Name: "inertia", Owns: true, Itself: turns, Parameters: append(parameters{mass}, initial...), Read: readInertia},
		{Name: "mass", Owns: true, Itself: moves, Parameters: append(parameters{mass}, initial...), Read: readInertia},
		{Name: "fixed", Owns: true, Read: readFixed,
			Parameters: parameters{number("phi0|s0", angle, "0", unbounded, "angle or position")}},
		{Name: "damper", Flanges: ends, Parameters: parameters{viscous}, Read: readLink},
		{Name: "spring", Flanges: ends, Parameters: parameters{elastic, relaxed, begin}, Adds: twist, Read: readLink},
		{Name: "spring_damper", Flanges: ends, Adds: twist, Read: readLink,
			Parameters: parameters{elastic, viscous, relaxed, begin}},
	}
}

// readInertia reads an inertia or a mass: the node of its own name.
func readInertia(e *element.Element) element.Declared {
	own := e.OwnNode
	n := &e.Network.Nodes[own]
	n.J = e.Number("J")
	e.ReadStart(n, "w_start", "phi_start")
	return element.Declared{Rel: network.RowOf(own), Tau: network.AccelOf(own).Scaled(n.J), Unit: e.Per("N.m", "N")}
}

func readFixed(e *element.Element) element.Declared {
	n := &e.Network.Nodes[e.OwnNode]
	n.Phi0, n.Placed = e.Number("phi0"), e.Has("phi0")
	return element.Declared{}
}

// readLink is tau = c·(phi_rel - phi_rel0) + d·w_rel.
func readLink(e *element.Element) element.Declared {
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N")}
	if e.Kind.Name != "damper" {
		c := e.Number("c")
		d = e.AddTwist(c)
		d.Tau = network.StateOf(d.Twist).Scaled(c)
	}

	if e.Kind.Name != "spring" {
		d.Tau = d.Tau.Plus(e.Between.Speeds(e.Number("d")))
	}
	e.Exert(e.Between, d.Tau.Scaled(-1))
	return d
}
