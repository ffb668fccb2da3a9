package mechanics

import (
	"math"

	"lockstep/model"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// readClearance is phi_min <= phi_rel <= phi_max: two rigid stops, or one. A stop that
// is hit throws back with the coefficient of restitution (000 ch. 4), and pushes only.
func readClearance(e *element.Element) element.Declared {
	unit, key := e.Per("rad", "m"), e.Per("phi", "s")
	for _, end := range []string{"_min", "_max", "_rel_start"} {
		if f, ok := e.Fields[e.Per("s", "phi")+end]; ok {
			e.Fail(f.KeyAt, "%s: it is %s; %s%s is wanted", e.What(), e.Domain, key, end)
		}
	}
	low, _ := e.Option(key+"_min", unit, math.Inf(-1))
	high, f := e.Option(key+"_max", unit, math.Inf(1))
	rest, g := e.Option("restitution", "1", 0)
	ks, h := e.Option("k_s", "1", 1)
	switch {
	case !e.Has(key+"_min") && !e.Has(key+"_max"):
		e.Fail(e.At, "%s: %s needs %s_min or %s_max (the ends of its play, %s)", e.What(), e.Kind.Name, key, key, unit)
	case !(low < high):
		e.Fail(f.At, "%s: %s_max %s is not above %s_min %s; there is no play", e.What(), key, units.Format(high, unit), key, units.Format(low, unit))
	case !(rest >= 0 && rest <= 1):
		e.Fail(g.At, "%s: restitution %g is not between 0 (plastic) and 1 (elastic)", e.What(), rest)
	case !(ks >= 1):
		e.Fail(h.At, "%s: k_s %g is below 1; it is what the body that pushes gets of the force in the contact", e.What(), ks)
	}
	if e.Err != nil {
		return element.Declared{}
	}
	zero := low // the state counts from a stop, where its digits matter
	if math.IsInf(low, 0) {
		zero = high
	}
	start, _ := e.Option(key+"_rel_start", unit, 0)
	s := network.State{Name: "play", Unit: unit, Der: e.Between.Speeds(1), Start: start - zero, Stays: true}
	if !e.Has(key + "_rel_start") {
		s.Along = e.Between
	}
	i := e.AddState(s)
	d := element.Declared{Rel: e.Between, Unit: e.Per("N.m", "N"), Friction: true, Angle: unit, Twist: i, Rest: zero}
	if e.Has(key + "_min") {
		d.Tau = d.Tau.Plus(addStop(e, "min", 1, ks, model.Gap{State: i, Sign: 1, Limit: low - zero, Restitution: rest}))
	}
	if e.Has(key + "_max") {
		d.Tau = d.Tau.Plus(addStop(e, "max", -1, ks, model.Gap{State: i, Sign: -1, Limit: high - zero, Restitution: rest}))
	}
	return d
}

// addStop is one end of a clearance: a friction element along sign·w_rel. It returns its
// torque along w_rel.
func addStop(e *element.Element, name string, sign, ks float64, g model.Gap) network.Form {
	k := model.Friction{Name: e.Name + "." + name, Gain: 1, Peak: 1, OneWay: true, Gap: &g, Signal: e.AddConstant(name, 0),
		Translational: e.Domain == network.Translational}
	var rel network.Row
	for _, t := range e.Between {
		rel = append(rel, network.TermOf(t.Node, sign*t.Coef))
	}
	e.Network.Frictions = append(e.Network.Frictions, network.Friction{Friction: k, At: e.At, Rel: rel})
	tau := network.FrictionOf(len(e.Network.Frictions) - 1)
	e.Exert(rel, tau.Scaled(-1))
	if ks != 1 {
		addContactLoss(e, k.Name, rel, sign, ks)
	}
	return tau.Scaled(sign)
}

// addContactLoss takes (k_s - 1)·N from the body that pushes the other in the direction in which
// both move (000 eq. 128).
func addContactLoss(e *element.Element, name string, rel network.Row, sign, ks float64) {
	contact := len(e.Network.Frictions) - 1
	for _, forward := range []float64{1, -1} {
		node := e.Node("a")
		if forward*sign < 0 {
			node = e.Node("b")
		}
		if node == network.Ground || e.Network.Nodes[node].Owner == "fixed" {
			continue // it does not move
		}
		e.Network.ContactLosses = append(e.Network.ContactLosses, network.ContactLoss{Name: name, At: e.At, Rel: rel, Contact: contact, Own: len(e.Network.Signals), K: ks - 1})
		body := network.Difference(node, network.Ground)
		var ahead, l network.Law
		ahead.Arg(body.Speeds(forward), 0)
		l.Arg(network.ContactLossOf(len(e.Network.ContactLosses)-1), 1)
		// Between 0 and the force of the contact: nothing without contact, no corner at its end.
		n := l.Arg(network.FrictionOf(contact).Scaled(-1e9), 0)
		l.Push(0).Do(model.Max, model.Min).Again(n).Push(0).Do(model.Min, model.Max).Push(0).Choose(e.AddGuard(&ahead))
		way := map[float64]string{1: "forward", -1: "backward"}[forward]
		loss := e.AddLaw(name+".loss_"+way, e.Per("N.m", "N"), &l)
		e.Exert(body, network.SignalOf(loss).Scaled(-forward))
	}
}
