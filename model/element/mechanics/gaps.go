package mechanics

import (
	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
)

func gapKinds() []element.Kind {
	ends := element.Ends(either)
	play := parameters{elastic, viscous, number("backlash", angle, "0", notNegative, "total play"), relaxed, begin}
	return []element.Kind{
		{Name: "elasto_backlash", Flanges: ends, Parameters: play, Adds: twist, Read: readBacklash},
		{Name: "elasto_backlash2", Flanges: ends, Parameters: play, Adds: twist, Read: readBacklash},
		{Name: "clearance", Flanges: ends, Read: readClearance,
			Parameters: parameters{
				number("phi_min|s_min", angle, "no stop", unbounded, "lower end of the play"),
				number("phi_max|s_max", angle, "no stop", unbounded, "upper end of the play"),
				begin,
				number("restitution", "1", "0", element.Share, "0: plastic impact, 1: elastic"),
				number("k_s", "1", "1", element.AtLeastOne, "force on the pushing body over that on the other"),
			},
			Adds: adds{{Key: "play", Unit: angle, Meaning: "deflection from the lower stop, or from the only one"}}},
		{Name: "elasto_gap", Flanges: element.Ends(moves), Parameters: parameters{elastic, viscous, relaxed, begin},
			Adds: twist, Read: readGap},
	}
}

// contact is an elastic contact with the law it makes, over the twist x and the relative
// speed w.
type contact struct {
	*element.Element
	element.Declared
	c, d float64
	l    network.Law
	x, w int
}

// begin begins the law.
func (t *contact) begin() {
	t.Declared = t.AddTwist(0)
	t.x = t.l.Read(network.StateOf(t.Twist), 2*t.c)
	t.w = t.l.Read(t.Between.Speeds(1), t.d)
	t.l.Stiff = []network.Stiffness{{Rate: t.w, C: 2 * t.c}}
}

// addSide adds the law of one side of a contact that is side·x deep, x = phi_rel -
// phi_rel0, from the gap on; it is >= 0:
//
//	tau_c = c·max(0, side·x - gap), tau_d = d·side·w_rel
//	tau   = max(0, tau_c + min(tau_c, tau_d)), or with jump
//	tau   = max(0, tau_c + tau_d) while there is contact
//
// It is written with the sides of its corners, so that it stays smooth over a piece
// that ends at one of them.
func (t *contact) addSide(side, gap float64, jump bool) {
	depth := t.l.Args[t.x].Scaled(side).Plus(network.One(-gap))
	rate := t.l.Args[t.w].Scaled(side)
	guard := func(f network.Form) int { return t.AddGuard(network.LawOf(f, 0)) }
	inside := guard(depth)
	pushing := guard(depth.Scaled(t.c).Plus(rate.Scaled(t.d)))
	elastic := func() *network.Law {
		return t.l.Again(t.x).Times(side).Push(gap).Do(model.Sub).Times(t.c)
	}
	elastic().Again(t.w).Times(side * t.d).Do(model.Add)
	if !jump {
		elastic().Times(2).Choose(guard(depth.Scaled(t.c).Plus(rate.Scaled(-t.d))))
	}
	t.l.Push(0).Choose(pushing).Push(0).Choose(inside)
}

// exert exerts the law.
func (t *contact) exert(name string) element.Declared {
	t.Tau = t.Resist(t.AddLaw(name, t.Unit, &t.l)).Tau
	return t.Declared
}

// readBacklash is a spring-damper with a total gap backlash (b in the Modelica Standard
// Library); with 0 it is a plain one.
func readBacklash(e *element.Element) element.Declared {
	t := contact{Element: e, c: e.Number("c"), d: e.Number("d")}
	b := e.Number("backlash")
	if b <= 1e-10 {
		return readLink(e)
	}
	t.begin()
	jump := e.Kind.Name == "elasto_backlash2"
	t.addSide(1, b/2, jump)
	t.addSide(-1, b/2, jump)
	t.l.Do(model.Sub)
	return t.exert("tau")
}

// readGap is a contact that pushes while s_rel < s_rel0.
func readGap(e *element.Element) element.Declared {
	t := contact{Element: e, c: e.Number("c"), d: e.Number("d")}
	t.begin()
	t.addSide(-1, 0, false)
	t.l.Do(model.Neg)
	return t.exert("f")
}
