package model

import "math"

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
	switch {
	case !e.has(key+"_min") && !e.has(key+"_max"):
		e.fail(e.at, "%s: %s needs %s_min or %s_max (the ends of its play, %s)", e.what(), e.kind.name, key, key, unit)
	case !(low < high):
		e.fail(f.at, "%s: %s_max %s is not above %s_min %s; there is no play", e.what(), key, withUnit(high, unit), key, withUnit(low, unit))
	case !(rest >= 0 && rest <= 1):
		e.fail(g.at, "%s: restitution %g is not between 0 (plastic) and 1 (elastic)", e.what(), rest)
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
		d.tau = d.tau.plus(e.stop("min", 1, Gap{State: i, Sign: 1, Limit: low - zero, Restitution: rest}))
	}
	if e.has(key + "_max") {
		d.tau = d.tau.plus(e.stop("max", -1, Gap{State: i, Sign: -1, Limit: high - zero, Restitution: rest}))
	}
	return d
}

// stop is one end of a clearance: a friction element along sign·w_rel. It returns its
// torque along w_rel.
func (e *element) stop(name string, sign float64, g Gap) form {
	k := Friction{Name: e.name + "." + name, Gain: 1, Peak: 1, OneWay: true, Gap: &g, Signal: e.fixedSignal(name, 0),
		Translational: e.domain == translational}
	var rel row
	for _, t := range e.between {
		rel = append(rel, term{t.node, sign * t.coef})
	}
	e.plant.frictions = append(e.plant.frictions, friction{Friction: k, at: e.at, rel: rel})
	tau := frictionOf(len(e.plant.frictions) - 1)
	e.act(rel, tau.scaled(-1))
	return tau.scaled(sign)
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
			return a.errorf(a.frictions[i].at, "element %q: at the start it is %s; start it inside its play", f.Name, how)
		}
	}
	return nil
}
