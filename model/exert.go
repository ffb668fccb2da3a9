package model

import (
	"math"
	"slices"
	"strings"
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
	x := exertion{name[:i], name[min(i+1, len(name)):], len(l.plant.signals)}
	unit, ok := exertionUnits[x.key]
	if !ok || l.elements[x.element].kind == "" {
		return -1
	}
	for _, y := range l.exertions {
		if y.element == x.element && y.key == x.key {
			return y.signal
		}
	}
	u, _ := Units(unit)
	l.plant.signals = append(l.plant.signals, signal{name: name, law: &law{}, unit: u, read: true})
	l.exertions = append(l.exertions, x)
	return x.signal
}

// exert gives the exertions their laws, when all elements are read. Laws that read a
// force, a torque or a sum of them get what these are made of: what is linear in the
// state is then no law of its own, to be followed.
func (l *loader) exert() {
	if l.err != nil {
		return
	}
	for _, x := range l.exertions {
		d, s := l.elements[x.element], &l.plant.signals[x.signal]
		k := slices.IndexFunc(l.plant.frictions, func(k friction) bool { return k.Name == x.element })
		switch {
		case x.key == "share" && k < 0:
			l.fail(s.at, "%q: element %q is of type %s and has no capacity; name a clutch or brake", s.name, x.element, d.kind)
		case x.key == "share":
			shiftOffset(l.plant, &l.plant.frictions[k])
			pushShare(s.law, k, &l.plant.frictions[k])
		case d.tau == nil:
			l.fail(s.at, "%q: element %q is of type %s and has no torque or force of its own", s.name, x.element, d.kind)
		case d.unit != s.unit.SI:
			l.fail(s.at, "%q: element %q exerts %s, not %s", s.name, x.element, d.unit, s.unit.SI)
		default:
			s.law.arg(d.tau, 1)
			s.linear = d.tau
		}
	}
	for _, s := range l.plant.signals {
		if s.law != nil {
			inline(l.plant, s.law)
		}
	}
	for i := range l.plant.guards {
		inline(l.plant, &l.plant.guards[i].law)
	}
	l.jams()
}

// jams refuses friction that presses itself on: where |tau| <= rough·(N + gain·tau), from
// rough·gain = 1 on there is no torque that slips one way, and none that is found the other.
func (l *loader) jams() {
	for i, f := range l.plant.frictions {
		gain := 0.0
		for _, m := range spread(l.plant, linearPart(l.plant, f.press), maxNesting) {
			if m.kind == ofFriction && m.index == i {
				gain += m.coef
			}
		}
		if all := f.rough * math.Abs(gain); !(all < 1) {
			l.fail(f.at, "element %q: its normal force grows by %g for each 1 that it exerts, and that by up to %g for each 1 of normal force; "+
				"from a product of 1 on it jams, here it is %g", f.Name, digits(gain), digits(f.rough), digits(all))
		}
	}
}

// shiftOffset takes the constants of a sum into the offset of a friction element: an input and a
// constant are then no law.
func shiftOffset(p *Plant, f *friction) {
	signal, sum := -1, 0.0
	for _, m := range p.signals[f.Signal].linear {
		switch {
		case m.kind == ofOne:
			sum += m.coef
		case signal < 0 && m.coef == 1 && p.signals[m.index].law == nil:
			signal = m.index
		default:
			return
		}
	}
	if signal >= 0 {
		f.Signal, f.Offset = signal, f.Offset-sum
	}
}

// linearPart is what of a signal is linear: of a sum the terms that are.
func linearPart(p *Plant, signal int) (f form) {
	s := &p.signals[signal]
	if s.linear != nil {
		return s.linear
	}
	for _, term := range s.course {
		f = append(f, course{term}.linear()...)
	}
	return f
}

// pushShare is the torque of friction element k over its capacity while it slips, 0 where it
// has none.
func pushShare(l *law, k int, f *friction) {
	l.arg(frictionOf(k), 0)
	l.arg(append(signalOf(f.Signal), one(-f.Offset)...), 0)
	l.push(0).do(Max).times(f.Gain).do(Div)
}

// inline puts linear forms in the place of the signals that they are, in what a law reads.
func inline(p *Plant, l *law) {
	for i, f := range l.args {
		l.args[i] = spread(p, f, maxNesting)
	}
}

// spread is a form with linear signals taken apart, sums of sums as deep as depth.
func spread(p *Plant, f form, depth int) form {
	var out form
	for _, m := range f {
		if m.kind == ofSignal && depth > 0 && p.signals[m.index].linear != nil {
			out = out.plus(spread(p, p.signals[m.index].linear, depth-1).scaled(m.coef))
			continue
		}
		out = append(out, m)
	}
	return out
}
