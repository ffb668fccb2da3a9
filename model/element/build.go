package element

import (
	"math"
	"slices"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// AddTwist makes the state phi_rel - phi_rel0 of an elastic element with stiffness c
// (0: it is no linear spring), and declares it with the torque tau.
func (e *Element) AddTwist(c float64) Declared {
	unit, rest := e.UnitOf("phi_rel0"), e.Number("phi_rel0")
	start := e.NumberOr("phi_rel_start", rest)
	s := network.State{Name: "twist", Der: e.Between.Speeds(1), Start: start - rest, C: c}
	if !e.Has("phi_rel_start") {
		s.Start, s.Along = -rest, e.Between
	}
	return Declared{Rel: e.Between, Unit: e.Per("N.m", "N"), Angle: unit, Twist: e.AddState(s), Rest: rest}
}

// Resist lets the element exert tau against its relative speed.
func (e *Element) Resist(tau network.Form) Declared {
	e.Exert(e.Between, tau.Scaled(-1))
	return Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N")}
}

// Drive lets the element exert tau along its relative speed.
func (e *Element) Drive(tau network.Form) Declared {
	e.Exert(e.Between, tau)
	return Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N")}
}

// AddFriction makes a friction element whose capacity is gain·max(0, v[signal] - offset).
func (e *Element) AddFriction(k model.Friction) Declared {
	k.Name = e.Name
	k.Translational = len(e.Between) > 0 && e.Network.Nodes[e.Between[0].Node].Domain == network.Translational
	own := network.Add(&e.Network.Frictions,
		network.Friction{Friction: k, At: e.At, Rel: e.Between, Press: k.Signal, Rough: k.Gain * k.Peak})
	if math.IsInf(k.Gain, 0) {
		e.Refuse(e.At, "mu·cgeo·area is not a finite number")
	}
	d := e.Resist(network.FrictionOf(own))
	d.Friction = true
	return d
}

// PressedBy tells of the friction element d, made last, what presses it, and its torque at
// most for each N of that.
func (e *Element) PressedBy(d Declared, fn int, rough float64) Declared {
	f := &e.Network.Frictions[len(e.Network.Frictions)-1]
	f.Press, f.Rough = fn, rough
	return d
}

// Tie connects nodes rigidly: Σ coef·w = 0. Flanges left out are ground.
func (e *Element) Tie(terms ...network.Term) *network.Tie {
	var r network.Row
	for _, t := range terms {
		if t.Node != network.Ground && t.Coef != 0 {
			r = append(r, t)
		}
	}

	e.Network.Ties = append(e.Network.Ties, network.Tie{Name: e.Name, At: e.At, Row: r})
	return &e.Network.Ties[len(e.Network.Ties)-1]
}

// Own is the signal of the element's name.
func (e *Element) Own() *network.Signal { return &e.Network.Signals[e.OwnSignal] }

// AddSignal makes the signal NAME.name of the element.
func (e *Element) AddSignal(name string, s network.Signal) int {
	s.Name, s.At, s.Read = e.Name+"."+name, e.At, true
	return network.Add(&e.Network.Signals, s)
}

// AddConstant makes the signal NAME.name of a constant.
func (e *Element) AddConstant(name string, v float64) int {
	return e.AddSignal(name, network.Signal{Source: network.Constant(v)})
}

// AddLaw makes the signal NAME.name of a law.
func (e *Element) AddLaw(name, unit string, l *network.Law) network.Form {
	return network.SignalOf(e.AddSignal(name, network.Signal{Law: l, Unit: units.Want(unit).Unit}))
}

// NameLaw is AddLaw of a signal that outputs can read; the type declares it.
func (e *Element) NameLaw(name string, l *network.Law) network.Form {
	return e.NameForm(name, e.AddLaw(name, e.added(name), l))
}

// NameForm lets outputs read f as NAME.name, which the type declares.
func (e *Element) NameForm(name string, f network.Form) network.Form {
	e.Named[name] = Reading{Form: f, Unit: e.added(name)}
	return f
}

// added returns the unit of a quantity that the type declares.
func (e *Element) added(name string) string {
	for _, q := range e.Kind.Adds {
		if q.Key == name {
			return e.Domain.Spell(q.Unit)
		}
	}
	panic("element: " + e.Kind.Name + " does not declare " + name)
}

// AddGuard makes a guard of the element.
func (e *Element) AddGuard(l *network.Law) int {
	return network.Add(&e.Network.Guards, network.Guard{Name: e.Name, At: e.At, Law: *l})
}

// AddState makes a state of the element, which the type declares; its name is made of both.
func (e *Element) AddState(s network.State) int {
	s.Name, s.Unit, s.At = e.Name+"."+s.Name, e.added(s.Name), e.At
	return network.Add(&e.Network.States, s)
}

// AddLag is the state that follows a value by the time constant lag, s.
func (e *Element) AddLag(s network.State, value network.Form, lag float64) network.Form {
	i := e.AddState(s)
	e.Network.States[i].Der = value.Scaled(1 / lag).Plus(network.StateOf(i).Scaled(-1 / lag))
	return network.StateOf(i)
}

// Exert lets the element exert value along row.
func (e *Element) Exert(r network.Row, value network.Form) {
	e.Network.Efforts = append(e.Network.Efforts, network.Effort{Element: e.Name, At: e.At, Row: r, Value: value})
}

// GuardPoints places a guard where f passes one of the points.
func (e *Element) GuardPoints(f network.Form, points []float64) {
	e.GuardLaw(network.LawOf(f, 0), points)
}

// GuardSlip places a guard on the corners of tables over |w_rel|.
func (e *Element) GuardSlip(tables ...model.Table) {
	var points []float64
	for _, t := range tables {
		points = append(points, t.Breakpoints()...)
	}
	points = slices.DeleteFunc(points, func(x float64) bool { return x <= 0 })
	e.GuardLaw(network.LawOf(e.Between.Speeds(1), 0).Do(model.Abs), points)
}

// GuardLaw places a guard where a law passes one of the points: one for all, a function that
// changes its sign at each of them.
func (e *Element) GuardLaw(l *network.Law, points []float64) {
	slices.Sort(points)
	points = slices.Compact(points)
	if len(points) == 0 {
		return
	}

	t := model.Table{Extend: true, X: []float64{points[0] - 1}, Z: []float64{-1}}
	sign := 1.0
	for i, x := range points {
		next := x + 1
		if i+1 < len(points) {
			next = x + (points[i+1]-x)/2
		}
		t.X, t.Z = append(t.X, x, next), append(t.Z, 0, sign)
		sign = -sign
	}

	e.AddGuard(l.Look(t))
}
