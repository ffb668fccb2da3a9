package model

import (
	"fmt"
	"math"
)

// readClearance is phi_min <= phi_rel <= phi_max: two rigid stops, or one. A stop that
// is hit throws back with the coefficient of restitution (000 ch. 4), and pushes only.
func readClearance(e *element) declared {
	unit, key := e.per("rad", "m"), e.per("phi", "s")
	for _, end := range []string{"_min", "_max", "_rel_start"} {
		if f, ok := e.fields[e.per("s", "phi")+end]; ok {
			e.fail(f.keyAt, "%s: it is %s; %s%s is wanted", e.what(), e.domain, key, end)
		}
	}
	low, _ := e.option(key+"_min", unit, math.Inf(-1))
	high, f := e.option(key+"_max", unit, math.Inf(1))
	rest, g := e.option("restitution", "1", 0)
	ks, h := e.option("k_s", "1", 1)
	switch {
	case !e.has(key+"_min") && !e.has(key+"_max"):
		e.fail(e.at, "%s: %s needs %s_min or %s_max (the ends of its play, %s)", e.what(), e.kind.name, key, key, unit)
	case !(low < high):
		e.fail(f.at, "%s: %s_max %s is not above %s_min %s; there is no play", e.what(), key, withUnit(high, unit), key, withUnit(low, unit))
	case !(rest >= 0 && rest <= 1):
		e.fail(g.at, "%s: restitution %g is not between 0 (plastic) and 1 (elastic)", e.what(), rest)
	case !(ks >= 1):
		e.fail(h.at, "%s: k_s %g is below 1; it is what the body that pushes gets of the force in the contact", e.what(), ks)
	}
	if e.err != nil {
		return declared{}
	}
	zero := low // the state counts from a stop, where its digits matter
	if math.IsInf(low, 0) {
		zero = high
	}
	start, _ := e.option(key+"_rel_start", unit, 0)
	s := state{name: "play", unit: unit, der: e.between.speeds(1), start: start - zero, stays: true}
	if !e.has(key + "_rel_start") {
		s.along = e.between
	}
	i := e.addState(s)
	d := declared{rel: e.between, unit: e.per("N.m", "N"), friction: true, angle: unit, twist: i, rest: zero}
	if e.has(key + "_min") {
		d.tau = d.tau.plus(addStop(e, "min", 1, ks, Gap{State: i, Sign: 1, Limit: low - zero, Restitution: rest}))
	}
	if e.has(key + "_max") {
		d.tau = d.tau.plus(addStop(e, "max", -1, ks, Gap{State: i, Sign: -1, Limit: high - zero, Restitution: rest}))
	}
	return d
}

// addStop is one end of a clearance: a friction element along sign·w_rel. It returns its
// torque along w_rel.
func addStop(e *element, name string, sign, ks float64, g Gap) form {
	k := Friction{Name: e.name + "." + name, Gain: 1, Peak: 1, OneWay: true, Gap: &g, Signal: e.fixedSignal(name, 0),
		Translational: e.domain == translational}
	var rel row
	for _, t := range e.between {
		rel = append(rel, termOf(t.node, sign*t.coef))
	}
	e.plant.frictions = append(e.plant.frictions, friction{Friction: k, at: e.at, rel: rel})
	tau := frictionOf(len(e.plant.frictions) - 1)
	e.act(rel, tau.scaled(-1))
	if ks != 1 {
		addContactLoss(e, k.Name, rel, sign, ks)
	}
	return tau.scaled(sign)
}

// push is the loss k·N of a contact that carries N, taken from the body that pushes in
// one direction of the motion.
type push struct {
	name    string
	at      pos
	rel     row
	contact int // friction element
	own     int // signal of the loss
	k       float64
}

// addContactLoss takes (k_s - 1)·N from the body that pushes the other in the direction in which
// both move (000 eq. 128).
func addContactLoss(e *element, name string, rel row, sign, ks float64) {
	contact := len(e.plant.frictions) - 1
	for _, forward := range []float64{1, -1} {
		node := e.node("a")
		if forward*sign < 0 {
			node = e.node("b")
		}
		if node == ground || e.plant.nodes[node].owner == "fixed" {
			continue // it does not move
		}
		e.plant.pushes = append(e.plant.pushes, push{name, e.at, rel, contact, len(e.plant.signals), ks - 1})
		body := difference(node, ground)
		var ahead, l law
		ahead.arg(body.speeds(forward), 0)
		l.arg(pushOf(len(e.plant.pushes)-1), 1)
		// Between 0 and the force of the contact: nothing without contact, no corner at its end.
		n := l.arg(frictionOf(contact).scaled(-1e9), 0)
		l.push(0).do(Max, Min).again(n).push(0).do(Min, Max).push(0).choose(e.addGuard(&ahead))
		way := map[float64]string{1: "forward", -1: "backward"}[forward]
		loss := e.addLaw(name+".loss_"+way, e.per("N.m", "N"), &l)
		e.act(body, signalOf(loss).scaled(-forward))
	}
}

// push computes the losses of contacts. With a the acceleration of the gap without the
// torque of the contact and the loss f, and g and c what these add to it per N,
//
//	a - g·N + c·f = 0,  f = k·N    so    f = k·a/(g - k·c)
func (a *assembly) push() error {
	for _, p := range a.pushes {
		var accel form
		for _, t := range p.rel {
			accel = accel.plus(accelOf(t.node).scaled(t.coef))
		}
		f, err := a.measured(accel, p.at, fmt.Sprintf("element %q", p.name))
		if err != nil {
			return err
		}
		g, c := f[a.ofTorques()+p.contact], f[a.ofSignals()+p.own]
		f[a.ofTorques()+p.contact] = 0
		for _, q := range a.pushes {
			if q.contact == p.contact {
				f[a.ofSignals()+q.own] = 0 // one of them acts at a time
			}
		}
		scaled := a.zero()
		addTo(scaled, p.k/(g-p.k*c), f)
		a.pushed = append(a.pushed, scaled)
	}
	return nil
}

// gaps places the states of the clearances, which must be open.
func (a *assembly) gaps(sys *System) error {
	for i := range sys.Frictions {
		f := &sys.Frictions[i]
		if f.Gap == nil {
			continue
		}
		g := *f.Gap
		g.State += a.free
		f.Gap = &g
		if open := g.Sign * (sys.X0[g.State] - g.Limit); !(open > 0) {
			how := "closed"
			if open < 0 {
				how = "overlapping by " + withUnit(digits(-open), a.states[g.State-a.free].unit)
			}
			return refuse(a.Plant, f.Name, a.frictions[i].at, "at the start it is %s; start it inside its play", how)
		}
	}
	return nil
}
