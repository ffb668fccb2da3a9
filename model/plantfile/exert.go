package plantfile

import (
	"math"
	"slices"
	"strings"

	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// exertion is a signal that may be read before its element is: what the element exerts,
// NAME.f or NAME.tau, or the part of its capacity that a friction element takes,
// NAME.share.
type exertion struct {
	element, key string
	signal       int
}

// exertionUnits are the keys.
var exertionUnits = map[string]string{"f": "N", "tau": "N.m", "share": "1"}

// exertion is the signal of that name; -1 where there is no such element.
func (l *loader) exertion(name string) int {
	i := max(0, strings.LastIndexByte(name, '.'))
	x := exertion{element: name[:i], key: name[min(i+1, len(name)):]}
	unit, ok := exertionUnits[x.key]
	if !ok || l.elements[x.element].Kind == "" {
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

// exert gives the exertions their laws, when all elements are read. Laws that read a
// force, a torque or a sum of them get what these are made of: what is linear in the
// state is then no law of its own, to be followed.
func (l *loader) exert() {
	for _, x := range l.exertions {
		d, s := l.elements[x.element], &l.Network.Signals[x.signal]
		k := slices.IndexFunc(l.Network.Frictions, func(k network.Friction) bool { return k.Name == x.element })
		switch {
		case x.key == "share" && k < 0:
			l.FailAt(s.At, "%q: element %q is of type %s and has no capacity; name a clutch or brake", s.Name, x.element, d.Kind)
		case x.key == "share":
			shiftOffset(l.Network, &l.Network.Frictions[k])
			pushShare(s.Law, k, &l.Network.Frictions[k])
		case d.Tau == nil:
			l.FailAt(s.At, "%q: element %q is of type %s and has no torque or force of its own", s.Name, x.element, d.Kind)
		case d.Unit != s.Unit.SI:
			l.FailAt(s.At, "%q: element %q exerts %s, not %s", s.Name, x.element, d.Unit, s.Unit.SI)
		default:
			s.Law.Arg(d.Tau, 1)
			s.Linear = d.Tau
		}
	}

	for _, s := range l.Network.Signals {
		if s.Law != nil {
			inline(l.Network, s.Law)
		}
	}

	for i := range l.Network.Guards {
		inline(l.Network, &l.Network.Guards[i].Law)
	}
	l.jams()
}

// jams refuses friction that presses itself on: where |tau| <= rough·(N + gain·tau), from
// rough·gain = 1 on there is no torque that slips one way, and none that is found the other.
func (l *loader) jams() {
	for i, f := range l.Network.Frictions {
		gain := 0.0
		for _, m := range spread(l.Network, linearPart(l.Network, f.Press), maxNesting) {
			if m.Kind == network.OfFriction && m.Index == i {
				gain += m.Coef
			}
		}

		if all := f.Rough * math.Abs(gain); !(all < 1) {
			l.FailAt(f.At, "element %q: its normal force grows by %g for each 1 that it exerts, "+
				"and that by up to %g for each 1 of normal force; from a product of 1 on it jams, here it is %g",
				f.Name, units.DropRounding(gain), units.DropRounding(f.Rough), units.DropRounding(all))
		}
	}
}

// shiftOffset takes the constants of a sum into the offset of a friction element: an input and a
// constant are then no law.
func shiftOffset(p *network.Plant, f *network.Friction) {
	signal, sum := -1, 0.0
	for _, m := range p.Signals[f.Signal].Linear {
		switch {
		case m.Kind == network.OfOne:
			sum += m.Coef
		case signal < 0 && m.Coef == 1 && p.Signals[m.Index].Law == nil:
			signal = m.Index
		default:
			return
		}
	}

	if signal >= 0 {
		f.Signal, f.Offset = signal, f.Offset-sum
	}
}

// linearPart is what of a signal is linear: of a sum the terms that are.
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

// pushShare is the torque of friction element k over its capacity while it slips, 0 where it
// has none.
func pushShare(l *network.Law, k int, f *network.Friction) {
	l.Arg(network.FrictionOf(k), 0)
	l.Arg(append(network.SignalOf(f.Signal), network.One(-f.Offset)...), 0)
	l.Push(0).Do(model.Max).Times(f.Gain).Do(model.Div)
}

// inline puts linear forms in the place of the signals that they are, in what a law reads.
func inline(p *network.Plant, l *network.Law) {
	for i, f := range l.Args {
		l.Args[i] = spread(p, f, maxNesting)
	}
}

// spread is a form with linear signals taken apart, sums of sums as deep as depth.
func spread(p *network.Plant, f network.Form, depth int) network.Form {
	var out network.Form
	for _, m := range f {
		if m.Kind == network.OfSignal && depth > 0 && p.Signals[m.Index].Linear != nil {
			out = out.Plus(spread(p, p.Signals[m.Index].Linear, depth-1).Scaled(m.Coef))
			continue
		}

		out = append(out, m)
	}

	return out
}
