package mechanics

import (
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

func gapKinds() []element.Kind {
	rot := []string{"c", "d", "backlash", "phi_rel0", "phi_rel_start", "s_rel0", "s_rel_start"}
	return []element.Kind{
		{Name: "elasto_backlash", Flanges: element.Ends(network.AnyDomain), Keys: rot, Read: readBacklash},
		{Name: "elasto_backlash2", Flanges: element.Ends(network.AnyDomain), Keys: rot, Read: readBacklash},
		{Name: "clearance", Flanges: element.Ends(network.AnyDomain), Read: readClearance,
			Keys: []string{"phi_min", "phi_max", "phi_rel_start", "s_min", "s_max", "s_rel_start", "restitution", "k_s"}},
		{Name: "elasto_gap", Flanges: element.Ends(network.Translational),
			Keys: []string{"c", "d", "s_rel0", "s_rel_start"}, Read: readGap},
	}
}

// readContact reads stiffness and damping of an elastic contact.
func readContact(e *element.Element) (c, d float64) {
	unit := e.Per("N.m/rad", "N/m")
	c, f := e.Number("c", unit, "stiffness")
	e.Positive(c, f, "stiffness c", unit)
	unit = e.Per("N.m.s/rad", "N.s/m")
	d, f = e.Number("d", unit, "damping")
	e.NotNegative(d, f, "damping d", unit)
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
func addContactSide(e *element.Element, l *network.Law, x, w int, side, gap, c, d float64, jump bool) {
	depth := l.Args[x].Scaled(side).Plus(network.One(-gap))
	rate := l.Args[w].Scaled(side)
	guard := func(f network.Form) int {
		var g network.Law
		g.Arg(f, 0)
		return e.AddGuard(&g)
	}
	inside := guard(depth)
	pushing := guard(depth.Scaled(c).Plus(rate.Scaled(d)))
	elastic := func() { l.Again(x).Times(side).Push(gap).Do(model.Sub).Times(c) }
	elastic()
	l.Again(w).Times(side * d).Do(model.Add)
	if !jump {
		elastic()
		l.Times(2).Choose(guard(depth.Scaled(c).Plus(rate.Scaled(-d))))
	}
	l.Push(0).Choose(pushing).Push(0).Choose(inside)
}

// elasticLaw begins a law over the twist and the relative speed.
func elasticLaw(e *element.Element, c, d float64) (l *network.Law, twist, rate int, rest float64, i int) {
	i, rest = e.AddTwist(0)
	l = &network.Law{}
	twist = l.Arg(network.StateOf(i), 2*c)
	rate = l.Arg(e.Between.Speeds(1), d)
	l.Ops = nil
	l.Stiff = []network.Stiffness{{Rate: rate, C: 2 * c}}
	return l, twist, rate, rest, i
}

// readBacklash is a spring-damper with a total gap backlash (b in the Modelica Standard Library); with 0 it is a plain one.
func readBacklash(e *element.Element) element.Declared {
	c, d := readContact(e)
	b := e.AtLeastZero("backlash", e.Per("rad", "m"), 0)
	if e.Err != nil {
		return element.Declared{}
	}
	if b <= 1e-10 {
		i, rest := e.AddTwist(c)
		tau := network.StateOf(i).Scaled(c).Plus(e.Between.Speeds(d))
		e.Exert(e.Between, tau.Scaled(-1))
		return element.Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N"), Angle: e.Per("rad", "m"), Twist: i, Rest: rest}
	}
	l, x, w, rest, i := elasticLaw(e, c, d)
	jump := e.Kind.Name == "elasto_backlash2"
	addContactSide(e, l, x, w, 1, b/2, c, d, jump)
	addContactSide(e, l, x, w, -1, b/2, c, d, jump)
	l.Do(model.Sub)
	tau := network.SignalOf(e.AddLaw(e.Name+".tau", e.Per("N.m", "N"), l))
	e.Exert(e.Between, tau.Scaled(-1))
	return element.Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N"), Angle: e.Per("rad", "m"), Twist: i, Rest: rest}
}

// readGap is a contact that pushes while s_rel < s_rel0.
func readGap(e *element.Element) element.Declared {
	c, d := readContact(e)
	if e.Err != nil {
		return element.Declared{}
	}
	l, x, w, rest, i := elasticLaw(e, c, d)
	addContactSide(e, l, x, w, -1, 0, c, d, false)
	l.Do(model.Neg)
	f := network.SignalOf(e.AddLaw(e.Name+".f", "N", l))
	e.Exert(e.Between, f.Scaled(-1))
	return element.Declared{Rel: e.Between, Tau: f, Unit: "N", Angle: "m", Twist: i, Rest: rest}
}
