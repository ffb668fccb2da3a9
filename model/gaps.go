package model

func gapKinds() []kind {
	rot := []string{"c", "d", "backlash", "phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}
	return []kind{
		{name: "elasto_backlash", flanges: ends(anyDomain), keys: rot, read: readBacklash},
		{name: "elasto_backlash2", flanges: ends(anyDomain), keys: rot, read: readBacklash},
		{name: "clearance", flanges: ends(anyDomain), read: readClearance,
			keys: []string{"phi_min", "phi_max", "phi_rel_start", "s_min", "s_max", "s_rel_start", "restitution", "k_s"}},
		{name: "elasto_gap", flanges: ends(translational), keys: []string{"c", "d", "s_rel0", "s_rel_start"}, read: readGap},
	}
}

// readContact reads stiffness and damping of an elastic contact.
func readContact(e *element) (c, d float64) {
	unit := e.per("N.m/rad", "N/m")
	c, f := e.number("c", unit, "stiffness")
	e.positive(c, f, "stiffness c", unit)
	unit = e.per("N.m.s/rad", "N.s/m")
	d, f = e.number("d", unit, "damping")
	e.notNegative(d, f, "damping d", unit)
	return c, d
}

// addContactSide adds the law of one side of a contact that is side·x deep, x = phi_rel -
// phi_rel0, from the gap on; it is >= 0:
//
//	tau_c = c·max(0, side·x - gap), tau_d = d·side·w_rel
//	tau   = max(0, tau_c + min(tau_c, tau_d)), or with jump
//	tau   = max(0, tau_c + tau_d) while there is contact
//
// It is written with the sides of its corners, so that it stays smooth over a piece
// that ends at one of them.
func addContactSide(e *element, l *law, x, w int, side, gap, c, d float64, jump bool) {
	depth := l.args[x].scaled(side).plus(one(-gap))
	rate := l.args[w].scaled(side)
	guard := func(f form) int {
		var g law
		g.arg(f, 0)
		return e.addGuard(&g)
	}
	inside := guard(depth)
	pushing := guard(depth.scaled(c).plus(rate.scaled(d)))
	elastic := func() { l.again(x).times(side).push(gap).do(Sub).times(c) }
	elastic()
	l.again(w).times(side * d).do(Add)
	if !jump {
		elastic()
		l.times(2).choose(guard(depth.scaled(c).plus(rate.scaled(-d))))
	}
	l.push(0).choose(pushing).push(0).choose(inside)
}

// elasticLaw begins a law over the twist and the relative speed.
func elasticLaw(e *element, c, d float64) (l *law, twist, rate int, rest float64, i int) {
	i, rest = e.twist(0)
	l = &law{}
	twist = l.arg(stateOf(i), 2*c)
	rate = l.arg(e.between.speeds(1), d)
	l.ops = nil
	l.stiff = []stiffness{{rate: rate, c: 2 * c}}
	return l, twist, rate, rest, i
}

// readBacklash is a spring-damper with a total gap backlash (b in the Modelica Standard Library); with 0 it is a plain one.
func readBacklash(e *element) declared {
	c, d := readContact(e)
	b := e.atLeastZero("backlash", e.per("rad", "m"), 0)
	if e.err != nil {
		return declared{}
	}
	if b <= 1e-10 {
		i, rest := e.twist(c)
		tau := stateOf(i).scaled(c).plus(e.between.speeds(d))
		e.act(e.between, tau.scaled(-1))
		return declared{rel: e.between, tau: tau, unit: e.per("N.m", "N"), angle: e.per("rad", "m"), twist: i, rest: rest}
	}
	l, x, w, rest, i := elasticLaw(e, c, d)
	jump := e.kind.name == "elasto_backlash2"
	addContactSide(e, l, x, w, 1, b/2, c, d, jump)
	addContactSide(e, l, x, w, -1, b/2, c, d, jump)
	l.do(Sub)
	tau := signalOf(e.addLaw(e.name+".tau", e.per("N.m", "N"), l))
	e.act(e.between, tau.scaled(-1))
	return declared{rel: e.between, tau: tau, unit: e.per("N.m", "N"), angle: e.per("rad", "m"), twist: i, rest: rest}
}

// readGap is a contact that pushes while s_rel < s_rel0.
func readGap(e *element) declared {
	c, d := readContact(e)
	if e.err != nil {
		return declared{}
	}
	l, x, w, rest, i := elasticLaw(e, c, d)
	addContactSide(e, l, x, w, -1, 0, c, d, false)
	l.do(Neg)
	f := signalOf(e.addLaw(e.name+".f", "N", l))
	e.act(e.between, f.scaled(-1))
	return declared{rel: e.between, tau: f, unit: "N", angle: "m", twist: i, rest: rest}
}
