package model

import "fmt"

// power is torque times relative speed of an element, as a law.
func (l *loader) power(f field, what string) reading {
	d := l.elementNamed(f, what)
	switch {
	case l.err != nil:
		return reading{}
	case d.tau == nil || len(d.rel) == 0:
		l.fail(f.at, "%s: type %s has no power to read", what, d.kind)
	}
	p := product(d.tau, d.rel.speeds(1))
	u, _ := Units("W")
	l.plant.signals = append(l.plant.signals, signal{name: l.text(f, what) + ".power", law: p, unit: u, at: f.at, read: true})
	return reading{signalOf(len(l.plant.signals) - 1), "W"}
}

// product is the law f·g.
func product(f, g form) *law {
	var l law
	l.arg(f, 0)
	l.arg(g, 0)
	return l.do(Mul)
}

// readTorques reads torque: an element or a list of them. With onto: NODE it is what
// they exert on that node; without, the sum of their own tau.
func (l *loader) readTorques(f, on field, what string) reading {
	list := []field{f}
	if _, single := ScalarText(f.node); !single {
		list = nil
		for _, n := range l.items(f.node, f.at, what) {
			list = append(list, field{key: f.key, keyAt: f.keyAt, at: startOf(n), node: n})
		}
		if len(list) == 0 {
			l.fail(f.at, "%s: the list is empty; name elements", what)
		}
	}
	at := ground
	if on.key != "" {
		at = l.nodeNamed(on, what+": onto")
	}
	r := reading{form{}, "N.m"}
	if f.key == "force" {
		r.unit = "N"
	}
	for _, g := range list {
		d := l.elementNamed(g, what)
		if l.err != nil {
			return r
		}
		if on.key != "" {
			r.form = r.form.plus(l.exerted(g, at, d, what, l.text(on, what)))
			continue
		}
		if d.tau == nil || len(d.rel) == 0 {
			l.fail(g.at, "%s: type %s has no torque to read; %s", what, d.kind, l.torqueHint(l.text(g, what)))
			return r
		}
		of := rotational
		if d.unit == "N" { // also of a joint between bodies that only turn
			of = translational
		}
		l.matches(g, what, of)
		r.form = r.form.plus(d.tau)
	}
	return r
}

// torqueHint says how to read a torque of an element that has none of its own.
func (l *loader) torqueHint(name string) string {
	for _, t := range l.plant.ties {
		if t.name == name {
			return fmt.Sprintf("with onto: NODE beside it, it is what %q exerts on that node", name)
		}
	}
	return "name a torque, spring, damper, clutch, brake or inertia"
}

// exerted is what an element exerts on node at: by its own torques, and as a gear. A
// tie to a node of its own is inside the element.
func (l *loader) exerted(f field, at int, d declared, what, node string) form {
	name := l.text(f, what)
	var sum form
	acts, touches := false, false
	add := func(c float64, value form) {
		acts = true
		if c != 0 {
			touches = true
			sum = sum.plus(value.scaled(c))
		}
	}
	for _, a := range l.plant.efforts {
		if a.element == name {
			add(a.row.coef(at), a.value)
		}
	}
	for i, t := range l.plant.ties {
		if t.name == name && node != name {
			add(t.row.coef(at), tieOf(i))
		}
	}
	switch {
	case l.err != nil:
	case !acts:
		l.fail(f.at, "%s: type %s exerts no torque; %s", what, d.kind, l.torqueHint(name))
	case !touches:
		l.fail(f.at, "%s: element %q does not touch node %q", what, name, node)
	default:
		l.matches(f, what, l.plant.nodes[at].domain)
	}
	return sum
}
