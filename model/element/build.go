package element

import (
	"errors"
	"math"

	"lockstep/model"
	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// AddTwist makes the state phi_rel - phi_rel0 of an elastic element, and declares it. c is the
// stiffness of a linear spring, otherwise 0. pull is the stiffness at phi_rel0; 0 in a play.
func (e *Element) AddTwist(c, pull float64) Declared {
	unit, rest := e.Per("rad", "m"), 0.0
	if e.declares("phi_rel0") {
		rest = e.Number("phi_rel0")
	}
	i := e.AddDeflection(network.State{Name: "twist", Start: -rest, C: c})
	s := network.StartCondition{Row: e.Between, Value: rest, Unit: unit, At: e.At,
		Rank: network.StartRelaxed, Weight: pull}
	if !(pull > 0) {
		s.Rank, s.Weight = network.StartInPlay, 1
	}
	e.AddStart(s)
	return Declared{Rel: e.Between, Unit: e.Per("N.m", "N"), Angle: unit, Twist: i, Rest: rest}
}

// AddDeflection makes a state that is phi_rel + s.Start, and returns its index. The key phi_rel_start
// gives phi_rel at the start.
func (e *Element) AddDeflection(s network.State) int {
	s.Der, s.Along = e.Between.Speeds(1), e.Between
	e.ReadStart("phi_rel_start", network.StartCondition{Row: e.Between})
	return e.AddState(s)
}

// AddStart adds a start condition of the element.
func (e *Element) AddStart(s network.StartCondition) {
	s.Element = e.Name
	e.Network.Starts = append(e.Network.Starts, s)
}

// Resist makes the element exert tau against its relative speed.
func (e *Element) Resist(tau network.Form) Declared {
	e.Exert(e.Between, tau.Scaled(-1))
	return Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N")}
}

// Drive makes the element exert tau along its relative speed.
func (e *Element) Drive(tau network.Form) Declared {
	e.Exert(e.Between, tau)
	return Declared{Rel: e.Between, Tau: tau, Unit: e.Per("N.m", "N")}
}

// AddFriction makes a friction element with the capacity Gain·max(0, v[Signal] - Offset).
func (e *Element) AddFriction(k model.Friction) Declared {
	k.Name = e.Name
	k.Translational = len(e.Between) > 0 && e.Network.Nodes[e.Between[0].Node].Domain == network.Translational
	own := network.Add(&e.Network.Frictions,
		network.Friction{Friction: k, At: e.At, Rel: e.Between, Press: k.Signal, PerPress: k.Gain * k.Peak})
	e.Frictions = append(e.Frictions, own)
	if k.OneWay { // it passes on the impacts of stops
		e.Contacts = append(e.Contacts, own)
	}
	if math.IsInf(k.Gain, 0) {
		e.Refuse(e.At, "mu·cgeo·area is not a finite number")
	}
	d := e.Resist(network.FrictionOf(own))
	d.Friction = true
	return d
}

// PressedBy sets the signal of the normal force of the last friction element, and its largest torque
// per N of that force.
func (e *Element) PressedBy(d Declared, fn int, perPress float64) Declared {
	f := &e.Network.Frictions[len(e.Network.Frictions)-1]
	f.Press, f.PerPress = fn, perPress
	return d
}

// Tie connects nodes rigidly: Σ coef·w = 0. Terms of ground are left out.
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

// AddNode makes the massless node NAME.key of the domain d.
func (e *Element) AddNode(key string, d network.Domain) {
	if e.Inner == nil {
		e.Inner = map[string]int{}
	}
	e.Inner[key] = network.Add(&e.Network.Nodes,
		network.Node{Name: e.Name + "." + key, At: e.At, Owner: e.Kind.Name, Domain: d, By: e.Name})
}

// Own returns the signal with the name of the element.
func (e *Element) Own() *network.Signal { return &e.Network.Signals[e.OwnSignal] }

// AddSignal makes the signal NAME.name and returns its index.
func (e *Element) AddSignal(name string, s network.Signal) int {
	s.Name, s.At, s.Read = e.Name+"."+name, e.At, true
	return network.Add(&e.Network.Signals, s)
}

// AddConstant makes the signal NAME.name with a constant value.
func (e *Element) AddConstant(name string, v float64) int {
	return e.AddSignal(name, network.Signal{Source: network.Constant(v)})
}

// AddLaw makes the signal NAME.name with a law.
func (e *Element) AddLaw(name, unit string, value *law.Expr) network.Form {
	s := e.AddSignal(name, network.Signal{Unit: units.Want(unit).Unit})
	e.setLaw(s, value)
	return network.SignalOf(s)
}

// NameLaw is AddLaw for a signal that outputs can read; the type declares it in Kind.Adds.
func (e *Element) NameLaw(name string, value *law.Expr) network.Form {
	return e.NameForm(name, e.AddLaw(name, e.added(name), value))
}

// OwnLaw makes the signal with the name of the element a law.
func (e *Element) OwnLaw(value *law.Expr) { e.setLaw(e.OwnSignal, value) }

// OwnForm makes the signal with the name of the element a linear form. What reads the signal reads the
// form, so that it costs nothing in the tick.
func (e *Element) OwnForm(f network.Form) {
	e.OwnLaw(law.Of(f))
	e.Own().Linear = f
}

// SignalForm makes the signal NAME.key, which the type declares in Kind.Signals, a linear form with values between
// low and high.
func (e *Element) SignalForm(key string, f network.Form, low, high float64) {
	i := e.Signals[key]
	e.setLaw(i, law.Of(f))
	s := &e.Network.Signals[i]
	s.Linear = f
	s.SetRange(low, high)
}

// setLaw makes a signal a law of the element.
func (e *Element) setLaw(signal int, value *law.Expr) {
	e.DeferLaw(signal, law.Owner{Name: e.Name, At: e.At}, value, func(err error) {
		var steep *law.SlopeError
		if errors.As(err, &steep) {
			for _, key := range steep.Names {
				if !e.declares(key) {
					continue
				}
				if f, ok := e.given(key); ok {
					e.Refuse(f.At, "%s %s makes its law infinitely steep; is its size right?", f.Key, e.Text(f, key))
				}
			}
		}
		e.Refuse(e.At, "%v", err)
	})
}

// pendingLaw is the law of a signal before all elements have been read: the ranges of the signals
// that it reads are not yet known.
type pendingLaw struct {
	signal int
	owner  law.Owner
	value  *law.Expr
	refuse func(error)
}

// DeferLaw makes a signal a law with a value; refuse reports an error in it.
func (p *Plant) DeferLaw(signal int, owner law.Owner, value *law.Expr, refuse func(error)) {
	p.Network.Signals[signal].Law = new(network.Law)
	p.laws = append(p.laws, pendingLaw{signal, owner, value, refuse})
}

// DeferCheck calls check after all elements have been read, when the ranges of all signals are known.
func (p *Plant) DeferCheck(check func()) { p.checks = append(p.checks, check) }

// CompileLaws runs the deferred checks and makes the laws, after all elements have been read.
func (p *Plant) CompileLaws() {
	for _, check := range p.checks {
		check()
	}
	compiler := law.Compiler{Plant: p.Network}
	for _, pending := range p.laws {
		l, err := compiler.Compile(pending.owner, pending.value)
		if err != nil {
			pending.refuse(err)
			continue
		}
		*p.Network.Signals[pending.signal].Law = *l
	}
}

// NameForm makes f readable by outputs as NAME.name; the type declares it in Kind.Adds.
func (e *Element) NameForm(name string, f network.Form) network.Form {
	e.Named[name] = Reading{Form: f, Unit: e.added(name)}
	return f
}

// added returns the unit of a quantity in Kind.Adds.
func (e *Element) added(name string) string {
	for _, q := range e.Kind.Adds {
		if q.Key == name {
			if unit, ok := e.units[name]; ok {
				return unit
			}
			return e.Domain.Spell(q.Unit)
		}
	}
	panic("element: " + e.Kind.Name + " does not declare " + name)
}

// AddState makes the state NAME.name, which the type declares in Kind.Adds, and returns its index.
func (e *Element) AddState(s network.State) int {
	s.Name, s.Unit, s.At = e.Name+"."+s.Name, e.added(s.Name), e.At
	return network.Add(&e.Network.States, s)
}

// AddSample makes a sample of the element that sets a state.
func (e *Element) AddSample(s network.Sample) {
	s.Name, s.At = e.Name, e.At
	e.Network.Samples = append(e.Network.Samples, s)
}

// AddDelay makes state y follow a value late by a time, s, at least one step: straight between ticks. unit is that of its
// rate.
func (e *Element) AddDelay(y int, value network.Form, late float64, unit string) {
	rate := network.Add(&e.Network.States, network.State{Name: e.Name + ".slope", Unit: unit, At: e.At})
	e.Network.States[y].Der = network.StateOf(rate)
	e.AddSample(network.Sample{Sample: model.Sample{State: y, Delay: late, Rate: rate, Initial: true}, Value: law.Sampled(law.Of(value))})
}

// AddLag makes a state that follows a value with the time constant lag, s.
func (e *Element) AddLag(s network.State, value network.Form, lag float64) network.Form {
	i := e.AddState(s)
	e.Network.States[i].Der = value.Scaled(1 / lag).Plus(network.StateOf(i).Scaled(-1 / lag))
	return network.StateOf(i)
}

// LimitRate makes the rate of state i a form with a unit, between low and high. A law is the part beyond them, so that the state
// is exact between them.
func (e *Element) LimitRate(i int, rate network.Form, unit string, low, high float64) {
	beyond := e.AddLaw("beyond", unit, law.Formula("zone(rate)", law.Names{"zone": DeadZone(low, high), "rate": rate}))
	e.Network.States[i].Der = rate.Plus(beyond.Scaled(-1))
}

// DeadZone returns the table of x - high above high, x - low below low, otherwise 0.
func DeadZone(low, high float64) model.Table {
	return model.Table{Extend: true, X: []float64{2*low - high, low, high, 2*high - low},
		Z: []float64{low - high, 0, 0, high - low}}
}

// Exert makes the element exert value along r.
func (e *Element) Exert(r network.Row, value network.Form) {
	e.Network.Efforts = append(e.Network.Efforts, network.Effort{Element: e.Name, At: e.At, Row: r, Value: value})
}
