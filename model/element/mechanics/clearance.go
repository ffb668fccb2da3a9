package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

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

	zero := low // the state counts from a stop, where its digits matter
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

// addStop is one end of a clearance: a friction element along sign·w_rel. It returns its
// torque along w_rel.
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

		// Between 0 and the force of the contact: nothing without contact, no corner at its end.
		l := network.LawOf(network.ContactLossOf(len(e.Network.ContactLosses)-1), 1)
		n := l.Read(network.FrictionOf(c.Contact).Scaled(-1e9), 0)
		l.Again(n).Push(0).Do(model.Max, model.Min).Again(n).Push(0).Do(model.Min, model.Max)
		l.Push(0).Choose(e.AddGuard(network.LawOf(body.Speeds(way.forward), 0)))
		loss := e.AddLaw(name+".loss_"+way.name, e.Per("N.m", "N"), l)
		e.Exert(body, loss.Scaled(-way.forward))
	}
}
