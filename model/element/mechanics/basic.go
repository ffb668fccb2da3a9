package mechanics

import (
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
)

func basicKinds() []element.Kind {
	return []element.Kind{
		{Name: "inertia", Owns: true, Itself: network.Rotational,
			Keys: []string{"J", "w_start", "phi_start"}, Read: readInertia},
		{Name: "mass", Owns: true, Itself: network.Translational,
			Keys: []string{"m", "v_start", "s_start"}, Read: readInertia},
		{Name: "fixed", Owns: true, Keys: []string{"phi0", "s0"}, Read: readFixed},
		{Name: "damper", Flanges: element.Ends(network.AnyDomain), Keys: []string{"d"}, Read: readLink},
		{Name: "spring", Flanges: element.Ends(network.AnyDomain),
			Keys: []string{"c", "phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}, Read: readLink},
		{Name: "spring_damper", Flanges: element.Ends(network.AnyDomain),
			Keys: []string{"c", "d", "phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}, Read: readLink},
	}
}

// readInertia reads an inertia or a mass: the node of its own name.
func readInertia(e *element.Element) element.Declared {
	n := &e.Network.Nodes[e.OwnNode]
	start, place := "w_start", "phi_start"
	if e.Kind.Itself == network.Translational {
		start, place = "v_start", "s_start"
		n.J = e.Need("m", "kg", "mass")
	} else {
		var f syntax.Field
		n.J, f = e.Number("J", "kg.m2", "moment of inertia")
		e.Positive(n.J, f, "inertia J", "kg.m2")
	}
	n.Start, _ = e.Option(start, n.SpeedUnit(), 0)
	n.Given = e.Has(start)
	n.Phi0, _ = e.Option(place, n.AngleUnit(), 0)
	n.Placed = e.Has(place)
	own := e.OwnNode
	unit := "N.m"
	if e.Kind.Itself == network.Translational {
		unit = "N"
	}
	return element.Declared{Rel: network.RowOf(own), Tau: network.AccelOf(own).Scaled(n.J), Unit: unit}
}

func readFixed(e *element.Element) element.Declared {
	n := &e.Network.Nodes[e.OwnNode]
	key, other := "phi0", "s0"
	if n.Domain == network.Translational {
		key, other = other, key
	}
	if f, ok := e.Fields[other]; ok {
		e.Fail(f.KeyAt, "%s: it is %s; %s is wanted", e.What(), n.Domain, key)
	}
	n.Phi0, _ = e.Option(key, n.AngleUnit(), 0)
	n.Placed = e.Has(key)
	return element.Declared{}
}

// readLink is tau = c·(phi_rel - phi_rel0) + d·w_rel.
func readLink(e *element.Element) element.Declared {
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N")}
	if e.Kind.Name != "damper" {
		unit := e.Per("N.m/rad", "N/m")
		c, f := e.Number("c", unit, "stiffness")
		e.Positive(c, f, "stiffness c", unit)
		d.Twist, d.Rest = e.AddTwist(c)
		d.Angle = e.Per("rad", "m")
		d.Tau = network.StateOf(d.Twist).Scaled(c)
	}
	if e.Kind.Name != "spring" {
		unit := e.Per("N.m.s/rad", "N.s/m")
		k, f := e.Number("d", unit, "damping")
		e.NotNegative(k, f, "damping d", unit)
		d.Tau = d.Tau.Plus(e.Between.Speeds(k))
	}
	e.Exert(e.Between, d.Tau.Scaled(-1))
	return d
}
