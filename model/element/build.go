package element

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// AddTwist makes the state phi_rel - phi_rel0 of an elastic element with stiffness c
// (0: it is no linear spring).
func (e *Element) AddTwist(c float64) (i int, rest float64) {
	unit, key := e.Per("rad", "m"), e.Per("phi_rel", "s_rel")
	for _, wrong := range []string{e.Per("s_rel", "phi_rel") + "0", e.Per("s_rel", "phi_rel") + "_start"} {
		if f, ok := e.Fields[wrong]; ok {
			e.Fail(f.KeyAt, "%s: it is %s; %s0 and %s_start are wanted", e.What(), e.Domain, key, key)
		}
	}
	rest, _ = e.Option(key+"0", unit, 0)
	start, _ := e.Option(key+"_start", unit, rest)
	s := network.State{Name: "twist", Unit: unit, Der: e.Between.Speeds(1), Start: start - rest, C: c}
	if !e.Has(key + "_start") {
		s.Start, s.Along = -rest, e.Between
	}
	return e.AddState(s), rest
}

// AddFriction makes a friction element whose capacity is gain·max(0, v[signal] - offset).
func (e *Element) AddFriction(k model.Friction) Declared {
	k.Name = e.Name
	k.Translational = len(e.Between) > 0 && e.Network.Nodes[e.Between[0].Node].Domain == network.Translational
	e.Network.Frictions = append(e.Network.Frictions, network.Friction{Friction: k, At: e.At, Rel: e.Between, Press: k.Signal, Rough: k.Gain * k.Peak})
	tau := network.FrictionOf(len(e.Network.Frictions) - 1)
	e.Exert(e.Between, tau.Scaled(-1))
	if e.Err == nil && math.IsInf(k.Gain, 0) {
		e.Fail(e.At, "%s: mu·cgeo·area is not a finite number", e.What())
	}
	return Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N"), Friction: true}
}

// PressedBy tells of the friction element d, made last, what presses it, and its torque at
// most for each N of that.
func (e *Element) PressedBy(d Declared, fn int, rough float64) Declared {
	f := &e.Network.Frictions[len(e.Network.Frictions)-1]
	f.Press, f.Rough = fn, rough
	return d
}

// Peak reads static over sliding friction, at least 1.
func (e *Element) Peak(missing float64) float64 {
	peak, f := e.Option("peak", "1", missing)
	if !(peak >= 1) {
		e.Fail(f.At, "%s: peak %g is below 1; it is static over sliding friction", e.What(), peak)
	}
	return peak
}

// AddConstant is a constant of the element as a signal.
func (e *Element) AddConstant(name string, v float64) int {
	e.Network.Signals = append(e.Network.Signals, network.Signal{Name: e.Name + "." + name, At: e.At, Source: network.Constant(v), Read: true})
	return len(e.Network.Signals) - 1
}

// Tie connects nodes rigidly: Σ coef·w = 0. Flanges left out are ground.
func (e *Element) Tie(terms ...network.Term) {
	var r network.Row
	for _, t := range terms {
		if t.Node != network.Ground && t.Coef != 0 {
			r = append(r, t)
		}
	}
	e.Network.Ties = append(e.Network.Ties, network.Tie{Name: e.Name, At: e.At, Row: r})
}

// AddLaw makes a signal of a law; AddGuard a guard.
func (e *Element) AddLaw(name string, unit string, l *network.Law) int {
	u, _ := units.Parse(unit)
	e.Network.Signals = append(e.Network.Signals, network.Signal{Name: name, Law: l, Unit: u, At: e.At, Read: true})
	return len(e.Network.Signals) - 1
}

func (e *Element) AddGuard(l *network.Law) int {
	e.Network.Guards = append(e.Network.Guards, network.Guard{Name: e.Name, At: e.At, Law: *l})
	return len(e.Network.Guards) - 1
}

// AddState makes a state of the element; its name is made of both.
func (e *Element) AddState(s network.State) int {
	s.Name, s.At = e.Name+"."+s.Name, e.At
	e.Network.States = append(e.Network.States, s)
	return len(e.Network.States) - 1
}

// Exert lets the element exert value along row.
func (e *Element) Exert(r network.Row, value network.Form) {
	e.Network.Efforts = append(e.Network.Efforts, network.Effort{Element: e.Name, At: e.At, Row: r, Value: value})
}

// GuardTable is a function of one variable that changes its sign at each of the given
// increasing points: one guard for all corners of a table.
func GuardTable(points []float64) model.Table {
	t := model.Table{Extend: true}
	sign := -1.0
	for i, x := range points {
		if i == 0 {
			t.X, t.Z = append(t.X, x-1), append(t.Z, sign)
		}
		t.X, t.Z = append(t.X, x), append(t.Z, 0)
		sign = -sign
		next := x + 1
		if i+1 < len(points) {
			next = x + (points[i+1]-x)/2
		}
		t.X, t.Z = append(t.X, next), append(t.Z, sign)
	}
	return t
}

// GuardPoints places a guard where f passes one of the points.
func (e *Element) GuardPoints(f network.Form, points []float64) {
	slices.Sort(points)
	points = slices.Compact(points)
	if len(points) == 0 {
		return
	}
	var g network.Law
	g.Arg(f, 0)
	g.Look(GuardTable(points))
	e.AddGuard(&g)
}
