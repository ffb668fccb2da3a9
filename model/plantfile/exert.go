package plantfile

import (
	"math"
	"slices"
	"strings"

	"lockstep/model/law"
	"lockstep/model/network"
	"lockstep/model/units"
)

// exertion is the torque or force of an element as a signal, NAME.tau or NAME.f, the share of its capacity that
// a friction element transmits, NAME.share, or a quantity in Kind.Adds, NAME.KEY. A file may read it before its
// element.
type exertion struct {
	element, key string
	signal       int // index of the signal
}

// exertionUnits holds the keys with their units.
var exertionUnits = map[string]string{"f": "N", "tau": "N.m", "share": "1"}

// exertion returns the index of the signal with a name, -1 if there is no such element.
func (l *loader) exertion(name string) int {
	i := max(0, strings.LastIndexByte(name, '.'))
	x := exertion{element: name[:i], key: name[min(i+1, len(name)):]}
	kind := l.elements[x.element].Kind
	unit, ok := l.addedUnit(kind, x.key)
	if !ok {
		unit, ok = exertionUnits[x.key]
	}
	if !ok || kind == "" {
		return -1
	}
	same := func(y exertion) bool { return y.element == x.element && y.key == x.key }
	if i := slices.IndexFunc(l.exertions, same); i >= 0 {
		return l.exertions[i].signal
	}

	s := network.Signal{Name: name, Law: &network.Law{}, Unit: units.Want(unit).Unit, Read: true}
	x.signal = network.Add(&l.Network.Signals, s)
	l.exertions = append(l.exertions, x)
	return x.signal
}

// addedUnit returns the unit of a quantity in Kind.Adds of an element type; ok is false if the type adds no such
// quantity, or one whose unit follows from its keys.
func (l *loader) addedUnit(kind, key string) (unit string, ok bool) {
	for _, k := range l.kinds {
		if k.Name != kind {
			continue
		}
		for _, q := range k.Adds {
			if _, err := units.ParseWanted(q.Unit); q.Key == key {
				return q.Unit, err == nil
			}
		}
	}
	return "", false
}

// added returns the value of a quantity in Kind.Adds; nil if the element does not have it with its keys, or has it as
// its torque.
func (l *loader) added(x exertion) network.Form {
	if _, ok := l.addedUnit(l.elements[x.element].Kind, x.key); !ok {
		return nil
	}
	if r, ok := l.elements[x.element].Named[x.key]; ok {
		return r.Form
	}
	name := x.element + "." + x.key
	if i := slices.IndexFunc(l.Network.States, func(s network.State) bool { return s.Name == name }); i >= 0 {
		return network.StateOf(i)
	}
	return nil
}

// setExertions makes the laws of the exertions after all elements have been read.
func (l *loader) setExertions() {
	for _, x := range l.exertions {
		d, s := l.elements[x.element], &l.Network.Signals[x.signal]
		k := slices.IndexFunc(l.Network.Frictions, func(k network.Friction) bool { return k.Name == x.element })
		value := l.added(x)
		switch {
		case value != nil:
			l.setLaw(x.signal, law.Of(value))
			s.Linear = value
		case exertionUnits[x.key] == "":
			l.FailAt(s.At, "%q: element %q of type %s has no %s with these keys", s.Name, x.element, d.Kind, x.key)
		case x.key == "share" && k < 0:
			l.FailAt(s.At, "%q: element %q is of type %s and has no capacity; name a clutch or brake", s.Name, x.element, d.Kind)
		case x.key == "share":
			shiftOffset(l.Network, &l.Network.Frictions[k])
			l.setLaw(x.signal, share(k, &l.Network.Frictions[k]))
		case d.Tau == nil:
			l.FailAt(s.At, "%q: element %q is of type %s and has no torque or force of its own", s.Name, x.element, d.Kind)
		case d.Unit != s.Unit.SI:
			l.FailAt(s.At, "%q: element %q exerts %s, not %s", s.Name, x.element, d.Unit, s.Unit.SI)
		default:
			l.setLaw(x.signal, law.Of(d.Tau))
			s.Linear = d.Tau
		}
	}

	l.checkJamming()
}

// inlineLinear makes laws, event indicators, outputs, states and efforts that read a linear signal, such
// as the force of a spring or a filter, read its linear form instead: then it belongs to the matrices of
// the plant and costs nothing in the tick.
func (l *loader) inlineLinear() {
	p := newLinearForms(l.Network)
	for _, s := range l.Network.Signals {
		if s.Law != nil {
			p.inline(s.Law.Args)
		}
	}
	for i := range l.Network.Indicators {
		p.inline(l.Network.Indicators[i].Law.Args)
	}
	for i := range l.Network.Samples {
		p.inline(l.Network.Samples[i].Value.Args)
	}
	for i, o := range l.Network.Outputs {
		l.Network.Outputs[i].Form = p.expand(o.Form)
	}
	for i, s := range l.Network.States {
		l.Network.States[i].Der = p.expandMotion(s.Der)
	}
	for i, e := range l.Network.Efforts {
		l.Network.Efforts[i].Value = p.expandMotion(e.Value)
	}
}

// checkJamming refuses self-locking friction: |tau| <= PerPress·(N + gain·tau) has no solution for
// slip in one direction if PerPress·gain >= 1.
func (l *loader) checkJamming() {
	forms := newLinearForms(l.Network)
	for i, f := range l.Network.Frictions {
		gain := 0.0
		for _, m := range forms.expand(linearPart(l.Network, f.Press)) {
			if m.Kind == network.OfFriction && m.Index == i {
				gain += m.Coef
			}
		}

		if all := f.PerPress * math.Abs(gain); !(all < 1) {
			l.FailAt(f.At, "element %q: its normal force grows by %g for each 1 that it exerts, "+
				"and that by up to %g for each 1 of normal force; from a product of 1 on it jams, here it is %g",
				f.Name, units.DropRounding(gain), units.DropRounding(f.PerPress), units.DropRounding(all))
		}
	}
}

// shiftOffset moves the constants of a sum into the offset of a friction element, so that the sum of
// an input and a constant needs no law.
func shiftOffset(p *network.Plant, f *network.Friction) {
	signal, sum := -1, 0.0
	for _, m := range p.Signals[f.Signal].Linear {
		switch {
		case m.Kind == network.OfOne:
			sum += m.Coef
		case signal < 0 && m.Coef == 1 && m.Kind == network.OfSignal && p.Signals[m.Index].Law == nil:
			signal = m.Index
		default:
			return
		}
	}

	if signal >= 0 {
		f.Signal, f.Offset = signal, f.Offset-sum
	}
}

// linearPart returns the linear terms of a signal.
func linearPart(p *network.Plant, signal int) (f network.Form) {
	s := &p.Signals[signal]
	if s.Linear != nil {
		return s.Linear
	}
	for _, term := range s.Waveform {
		f = append(f, network.Waveform{term}.Linear()...)
	}
	return f
}

// share returns the torque of friction element k over its capacity while it slips; 0 if the capacity is
// 0. It is read as a signal. A lock whose capacity falls to 0 breaks when the share reaches peak. The limit, which no
// motion reaches, holds the laws together beyond that instant, where they are evaluated to locate it.
func share(k int, f *network.Friction) *law.Expr {
	tau := network.FrictionOf(k)
	pressed := append(network.SignalOf(f.Signal), network.One(-f.Offset)...)
	positive := law.Formula("max(0, pressed)", law.Names{"pressed": pressed}).Plain()
	share := law.Formula("tau/(positive*gain)", law.Names{"tau": tau, "positive": positive, "gain": f.Gain})
	return law.Formula("clamp(share, -limit, limit)", law.Names{"share": share, "limit": 2 * max(f.Peak, 1)}).Plain().
		WithCombinedSlope(tau, 0).WithCombinedSlope(pressed, 0)
}

// setLaw makes a signal that the file names a law.
func (l *loader) setLaw(signal int, value *law.Expr) {
	s := &l.Network.Signals[signal]
	l.DeferLaw(signal, law.Owner{Name: s.Name, At: s.At}, value, func(err error) { l.FailAt(s.At, "%q: %v", s.Name, err) })
}

// linearForms expands forms: linear signals are replaced by their linear forms, all the way.
type linearForms struct {
	*network.Plant
	of   []network.Form // expanded form of each linear signal; nil: not yet known
	open []bool         // the signal is being expanded; one that depends on itself remains a signal
}

func newLinearForms(p *network.Plant) *linearForms {
	return &linearForms{p, make([]network.Form, len(p.Signals)), make([]bool, len(p.Signals))}
}

// inline expands the arguments of a law.
func (p *linearForms) inline(args []network.Form) {
	for i, f := range args {
		args[i] = p.expand(f)
	}
}

// expand returns a form without linear signals.
func (p *linearForms) expand(f network.Form) network.Form {
	return p.replace(f, func(network.Form) bool { return true })
}

// expandMotion is expand for the rate of a state or an effort, which cannot hold torques of gears and
// accelerations.
func (p *linearForms) expandMotion(f network.Form) network.Form {
	kinds := []network.MeasureKind{network.OfOne, network.OfSpeed, network.OfState, network.OfSignal}
	return p.replace(f, func(f network.Form) bool {
		return !slices.ContainsFunc(f, func(m network.Measure) bool { return !slices.Contains(kinds, m.Kind) })
	})
}

// replace replaces the linear signals of a form whose expanded forms are accepted, and adds up terms of
// one quantity.
func (p *linearForms) replace(f network.Form, accepted func(network.Form) bool) network.Form {
	linear := func(m network.Measure) bool { return m.Kind == network.OfSignal && p.Signals[m.Index].Linear != nil }
	if !slices.ContainsFunc(f, linear) {
		return f
	}
	var out network.Form
	for _, m := range f {
		part := network.Form{m}
		if m.Kind == network.OfSignal {
			if of := p.form(m.Index); of != nil && accepted(of) {
				part = of.Scaled(m.Coef)
			}
		}
		for _, m := range part {
			same := func(o network.Measure) bool { return o.Kind == m.Kind && o.Index == m.Index }
			if i := slices.IndexFunc(out, same); i >= 0 {
				out[i].Coef += m.Coef
			} else {
				out = append(out, m)
			}
		}
	}
	return out
}

// form returns the expanded form of a linear signal; nil of another one.
func (p *linearForms) form(i int) network.Form {
	if p.of[i] == nil && p.Signals[i].Linear != nil && !p.open[i] {
		p.open[i] = true
		p.of[i] = p.expand(p.Signals[i].Linear)
		p.open[i] = false
	}
	return p.of[i]
}
