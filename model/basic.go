package model

func basicKinds() []kind {
	return []kind{
		{name: "inertia", owns: true, itself: rotational, keys: []string{"J", "w_start", "phi_start"}, read: readInertia},
		{name: "mass", owns: true, itself: translational, keys: []string{"m", "v_start", "s_start"}, read: readInertia},
		{name: "fixed", owns: true, keys: []string{"phi0", "s0"}, read: readFixed},
		{name: "damper", flanges: ends(anyDomain), keys: []string{"d"}, read: readLink},
		{name: "spring", flanges: ends(anyDomain), keys: []string{"c", "phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}, read: readLink},
		{name: "spring_damper", flanges: ends(anyDomain), keys: []string{"c", "d", "phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}, read: readLink},
	}
}

// readInertia reads an inertia or a mass: the node of its own name.
func readInertia(e *element) declared {
	n := &e.plant.nodes[e.ownNode]
	start, place := "w_start", "phi_start"
	if e.kind.itself == translational {
		start, place = "v_start", "s_start"
		n.J = e.need("m", "kg", "mass")
	} else {
		var f field
		n.J, f = e.number("J", "kg.m2", "moment of inertia")
		e.positive(n.J, f, "inertia J", "kg.m2")
	}
	n.start, _ = e.option(start, n.speedUnit(), 0)
	n.given = e.has(start)
	n.phi0, _ = e.option(place, n.angleUnit(), 0)
	n.placed = e.has(place)
	own := e.ownNode
	unit := "N.m"
	if e.kind.itself == translational {
		unit = "N"
	}
	return declared{rel: rowOf(own), tau: accelOf(own).scaled(n.J), unit: unit}
}

func (n *node) speedUnit() string {
	if n.domain == translational {
		return "m/s"
	}
	return "rad/s"
}

func (n *node) angleUnit() string {
	if n.domain == translational {
		return "m"
	}
	return "rad"
}

func readFixed(e *element) declared {
	n := &e.plant.nodes[e.ownNode]
	key, other := "phi0", "s0"
	if n.domain == translational {
		key, other = other, key
	}
	if f, ok := e.fields[other]; ok {
		e.fail(f.keyAt, "%s: it is %s; %s is wanted", e.what(), n.domain, key)
	}
	n.phi0, _ = e.option(key, n.angleUnit(), 0)
	n.placed = e.has(key)
	return declared{}
}

// readLink is tau = c·(phi_rel - phi_rel0) + d·w_rel.
func readLink(e *element) declared {
	d := declared{rel: e.between, unit: e.per("N.m", "N")}
	if e.kind.name != "damper" {
		unit := e.per("N.m/rad", "N/m")
		c, f := e.number("c", unit, "stiffness")
		e.positive(c, f, "stiffness c", unit)
		d.twist, d.rest = e.twist(c)
		d.angle = e.per("rad", "m")
		d.tau = stateOf(d.twist).scaled(c)
	}
	if e.kind.name != "spring" {
		unit := e.per("N.m.s/rad", "N.s/m")
		k, f := e.number("d", unit, "damping")
		e.notNegative(k, f, "damping d", unit)
		d.tau = d.tau.plus(e.between.speeds(k))
	}
	e.act(e.between, d.tau.scaled(-1))
	return d
}

// twist makes the state phi_rel - phi_rel0 of an elastic element with stiffness c
// (0: it is no linear spring).
func (e *element) twist(c float64) (i int, rest float64) {
	unit, key := e.per("rad", "m"), e.per("phi_rel", "s_rel")
	for _, wrong := range []string{e.per("s_rel", "phi_rel") + "0", e.per("s_rel", "phi_rel") + "_start"} {
		if f, ok := e.fields[wrong]; ok {
			e.fail(f.keyAt, "%s: it is %s; %s0 and %s_start are wanted", e.what(), e.domain, key, key)
		}
	}
	rest, _ = e.option(key+"0", unit, 0)
	start, _ := e.option(key+"_start", unit, rest)
	s := state{name: "twist", unit: unit, der: e.between.speeds(1), start: start - rest, c: c}
	if !e.has(key + "_start") {
		s.start, s.along = -rest, e.between
	}
	return e.addState(s), rest
}
