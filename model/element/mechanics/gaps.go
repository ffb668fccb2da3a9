package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
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

// contact is an elastic contact with its law l, whose arguments x and w are the twist and the
// relative speed.
type contact struct {
	*element.Element
	element.Declared
	c, d float64
	l    network.Law
	x, w int
}

// begin makes the twist and the arguments of the law.
func (t *contact) begin() {
	t.Declared = t.AddTwist(0)
	t.x = t.l.Read(network.StateOf(t.Twist), 2*t.c)
	t.w = t.l.Read(t.Between.Speeds(1), t.d)
	t.l.Stiff = []network.Stiffness{{Rate: t.w, C: 2 * t.c}}
}

// addSide adds the law of one side of a contact. The depth is side·x beyond the gap, with x =
// phi_rel - phi_rel0; the torque is >= 0:
//
//	tau_c = c·max(0, side·x - gap), tau_d = d·side·w_rel
//	tau   = max(0, tau_c + min(tau_c, tau_d)), or with jump
//	tau   = max(0, tau_c + tau_d) while there is contact
//
// The law uses the signs of event indicators at its breakpoints. So it is smooth within a substep,
// which ends at a breakpoint.
func (t *contact) addSide(side, gap float64, jump bool) {
	depth := t.l.Args[t.x].Scaled(side).Plus(network.One(-gap))
	rate := t.l.Args[t.w].Scaled(side)
	indicator := func(f network.Form) int { return t.AddIndicator(network.LawOf(f, 0)) }
	inside := indicator(depth)
	pushing := indicator(depth.Scaled(t.c).Plus(rate.Scaled(t.d)))
	elastic := func() *network.Law {
		return t.l.Again(t.x).Times(side).Push(gap).Do(model.Sub).Times(t.c)
	}
	elastic().Again(t.w).Times(side * t.d).Do(model.Add)
	if !jump {
		elastic().Times(2).Choose(indicator(depth.Scaled(t.c).Plus(rate.Scaled(-t.d))))
	}
	t.l.Push(0).Choose(pushing).Push(0).Choose(inside)
}

// exert makes the signal of the law and exerts it.
func (t *contact) exert(name string) element.Declared {
	t.Tau = t.Resist(t.AddProgram(name, t.Unit, &t.l)).Tau
	return t.Declared
}

// readBacklash reads a spring-damper with the total play backlash (b in the Modelica Standard
// Library); with play 0 it is a plain spring-damper.
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

// readGap reads a contact that pushes while s_rel < s_rel0.
func readGap(e *element.Element) element.Declared {
	t := contact{Element: e, c: e.Number("c"), d: e.Number("d")}
	t.begin()
	t.addSide(-1, 0, false)
	t.l.Do(model.Neg)
	return t.exert("f")
}

// readClearance is phi_min <= phi_rel <= phi_max: two rigid stops, or one. A stop that
// is hit throws back with the coefficient of restitution (Reiter, ch. 4), and pushes only.
func readClearance(e *element.Element) element.Declared {
	unit, lowest, highest := e.UnitOf("phi_min"), e.Per("phi_min", "s_min"), e.Per("phi_max", "s_max")
	low, high := e.NumberOr("phi_min", math.Inf(-1)), e.NumberOr("phi_max", math.Inf(1))
	rest, ks := e.Number("restitution"), e.Number("k_s")
	switch {
	case !e.Has("phi_min") && !e.Has("phi_max"):
		e.Refuse(e.At, "%s needs %s or %s (the ends of its play, %s)", e.Kind.Name, lowest, highest, unit)
	case !(low < high):
		e.Refuse(e.Place("phi_max"), "%s %s is not above %s %s; there is no play",
			highest, units.Format(high, unit), lowest, units.Format(low, unit))
	}

	zero := low // the state is the distance from a stop, so that it is exact there
	if math.IsInf(low, 0) {
		zero = high
	}
	start := e.NumberOr("phi_rel_start", 0)
	s := network.State{Name: "play", Der: e.Between.Speeds(1), Start: start - zero, Stays: true}
	if !e.Has("phi_rel_start") {
		s.Along = e.Between
	}
	i := e.AddState(s)
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N"), Friction: true, Angle: unit, Twist: i, Rest: zero}
	if e.Has("phi_min") {
		gap := model.Gap{State: i, Sign: 1, Limit: low - zero, Restitution: rest}
		d.Tau = d.Tau.Plus(addStop(e, "min", ks, gap))
	}

	if e.Has("phi_max") {
		gap := model.Gap{State: i, Sign: -1, Limit: high - zero, Restitution: rest}
		d.Tau = d.Tau.Plus(addStop(e, "max", ks, gap))
	}

	return d
}

// addStop adds one end of a clearance, a friction element along sign·w_rel, and returns its torque
// along w_rel.
func addStop(e *element.Element, name string, ks float64, g model.Gap) network.Form {
	k := model.Friction{Name: e.Name + "." + name, Gain: 1, Peak: 1, OneWay: true, Gap: &g,
		Signal: e.AddConstant(name, 0), Translational: e.Domain == network.Translational}
	rel := e.Between.Scaled(g.Sign)
	contact := network.Add(&e.Network.Frictions, network.Friction{Friction: k, At: e.At, Rel: rel})
	tau := network.FrictionOf(contact)
	e.Exert(rel, tau.Scaled(-1))
	if ks != 1 {
		addContactLoss(e, network.ContactLoss{Name: k.Name, At: e.At, Rel: rel, Contact: contact, K: ks - 1}, name, g.Sign)
	}
	return tau.Scaled(g.Sign)
}

// addContactLoss takes (k_s - 1)·N from the body that pushes the other in the direction in which
// both move (Reiter, eq. 128).
func addContactLoss(e *element.Element, c network.ContactLoss, name string, sign float64) {
	for _, way := range []struct {
		name    string
		forward float64
	}{{"forward", 1}, {"backward", -1}} {
		node := e.Node("a")
		if way.forward*sign < 0 {
			node = e.Node("b")
		}
		if node == network.Ground || e.Network.Nodes[node].Owner == "fixed" {
			continue // it does not move
		}
		c.Own = len(e.Network.Signals)
		e.Network.ContactLosses = append(e.Network.ContactLosses, c)
		body := network.Difference(node, network.Ground)

		// Limited to 0 and the force of the contact: 0 without contact, and continuous at its end.
		l := network.LawOf(network.ContactLossOf(len(e.Network.ContactLosses)-1), 1)
		n := l.Read(network.FrictionOf(c.Contact).Scaled(-1e9), 0)
		l.Again(n).Push(0).Do(model.Max, model.Min).Again(n).Push(0).Do(model.Min, model.Max)
		l.Push(0).Choose(e.AddIndicator(network.LawOf(body.Speeds(way.forward), 0)))
		loss := e.AddProgram(name+".loss_"+way.name, e.Per("N.m", "N"), l)
		e.Exert(body, loss.Scaled(-way.forward))
	}
}
