package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

func (l *loader) readOutputs(f field) {
	list := l.optional(f, "outputs")
	if len(list) > maxPorts {
		l.fail(list[maxPorts].keyAt, "more than %d outputs", maxPorts)
		return
	}
	for _, f := range list {
		what := fmt.Sprintf("output %q", f.key)
		if !isName(f.key, true) {
			l.fail(f.keyAt, "%s: not a name (letters, digits and _, joined by .)", what)
		}
		if _, taken := l.inputs[f.key]; taken {
			l.fail(f.keyAt, "%s: an input has the same name", what)
		}
		if l.reserved(f.key) {
			l.fail(f.keyAt, "%s: every plant has this output already", what)
		}
		l.readOutput(f, what)
		if l.err != nil {
			return
		}
	}
}

// reserved tells whether the kernel adds an output of this name.
func (l *loader) reserved(name string) bool {
	if slices.Contains([]string{"eta", "lag", "events", "transitions", "fault"}, name) {
		return true
	}
	element, rest, _ := strings.Cut(name, ".")
	return l.elements[element].measure == ofFriction && slices.Contains([]string{"mode", "w_rel", "tau"}, rest)
}

// readOutput reads {speed: node}, {w_rel: element}, {phi_rel: spring},
// {torque: element or list, onto: node}, {signal: input}.
func (l *loader) readOutput(f field, what string) {
	keys := []string{"speed", "w_rel", "phi_rel", "torque", "signal"}
	fields := l.fields(f.node, f.at, what)
	l.known(fields, what, append(keys, "onto")...)
	var main, on field
	for _, g := range fields {
		switch {
		case g.key == "onto":
			on = g
		case main.key != "":
			l.fail(g.keyAt, "%s: %s and %s in one output; make two", what, main.key, g.key)
		default:
			main = g
		}
	}
	if main.key == "" {
		l.fail(f.at, "%s: one of %s is wanted", what, strings.Join(keys, ", "))
	}
	if on.key != "" && main.key != "torque" {
		l.fail(on.keyAt, "%s: onto goes with torque", what)
	}
	if l.err != nil {
		return
	}
	o := output{Port: Port{Name: f.key, Min: math.Inf(-1), Max: math.Inf(1)}, at: f.keyAt}
	what += ": " + main.key
	switch main.key {
	case "speed":
		o.Unit = "rad/s"
		o.terms = []measure{{ofSpeed, l.nodeNamed(main, what), 1}}
	case "w_rel":
		o.Unit = "rad/s"
		d := l.elementNamed(main, what)
		kind := ofLinkRel
		if d.measure == ofFriction {
			kind = ofFrictionRel
		} else if d.measure != ofLinkTorque {
			l.fail(main.at, "%s: type %s has no relative speed; name a spring, damper, clutch or brake", what, d.kind)
		}
		o.terms = []measure{{kind, d.index, 1}}
	case "phi_rel":
		o.Unit = "rad"
		o.terms = l.twist(main, what)
	case "signal":
		o.Unit, o.terms = l.readSignal(main, what)
	default:
		o.Unit = "N.m"
		o.terms = l.readTorques(main, on, what)
	}
	l.plant.outputs = append(l.plant.outputs, o)
}

// twist is phi_rel of a spring: the state, plus the angle without torque, which
// takes a constant signal.
func (l *loader) twist(f field, what string) []measure {
	d := l.elementNamed(f, what)
	if l.err == nil && (d.measure != ofLinkTorque || d.kind == "damper") {
		l.fail(f.at, "%s: type %s has no angle; name a spring or spring_damper", what, d.kind)
	}
	if l.err != nil {
		return nil
	}
	terms := []measure{{ofLinkTwist, d.index, 1}}
	if k := l.plant.links[d.index]; k.rest != 0 {
		l.plant.signals = append(l.plant.signals, signal{
			name: k.name + ".phi_rel0", at: k.at, source: constant(k.rest), read: true,
		})
		terms = append(terms, measure{ofSignal, len(l.plant.signals) - 1, 1})
	}
	return terms
}

func (l *loader) readSignal(f field, what string) (unit string, terms []measure) {
	name := l.text(f, what)
	i, ok := l.inputs[name]
	if !ok {
		l.fail(f.at, "%s: %q is not an input%s", what, name, didYouMean(name, slices.Sorted(maps.Keys(l.inputs))))
		return "", nil
	}
	l.plant.signals[i].read = true
	return l.plant.signals[i].unit.SI, []measure{{ofSignal, i, 1}}
}

// readTorques reads torque: an element or a list of them. With onto: NODE it is what
// they exert on that node; without, the sum of their own tau.
func (l *loader) readTorques(f, on field, what string) []measure {
	list := []field{f}
	if _, single := scalarText(f.node); !single {
		list = nil
		for _, n := range l.items(f.node, f.at, what) {
			list = append(list, field{at: startOf(n), node: n})
		}
		if len(list) == 0 {
			l.fail(f.at, "%s: the list is empty; name elements", what)
		}
	}
	at := ground
	if on.key != "" {
		at = l.nodeNamed(on, what+": onto")
	}
	var terms []measure
	for _, f := range list {
		d := l.elementNamed(f, what)
		if d.row == nil {
			l.fail(f.at, "%s: type %s has no torque to read; name a torque, spring, damper, clutch or brake", what, d.kind)
			return nil
		}
		m := measure{d.measure, d.index, 1}
		if on.key != "" {
			i := slices.IndexFunc(d.row, func(t term) bool { return t.node == at })
			if i < 0 {
				l.fail(f.at, "%s: element %q does not touch node %q", what, l.text(f, what), l.text(on, what))
				return nil
			}
			m.coef = d.sign * d.row[i].coef
		}
		terms = append(terms, m)
	}
	return terms
}

func (l *loader) nodeNamed(f field, what string) int {
	name := l.text(f, what)
	i, ok := l.nodes[name]
	if !ok {
		l.fail(f.at, "%s: %q is not a node%s", what, name, didYouMean(name, slices.Sorted(maps.Keys(l.nodes))))
	}
	return i
}

func (l *loader) elementNamed(f field, what string) declared {
	name := l.text(f, what)
	d, ok := l.elements[name]
	if !ok {
		l.fail(f.at, "%s: %q is not an element%s", what, name, didYouMean(name, slices.Sorted(maps.Keys(l.elements))))
	}
	return d
}
