package plantfile

import (
	"fmt"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// power is torque times relative speed of an element, as a law.
func (l *loader) power(f syntax.Field, what string) element.Reading {
	d := l.elementNamed(f, what)
	switch {
	case l.Err != nil:
		return element.Reading{}
	case d.Tau == nil || len(d.Rel) == 0:
		l.Fail(f.At, "%s: type %s has no power to read", what, d.Kind)
	}
	p := network.Product(d.Tau, d.Rel.Speeds(1))
	u, _ := units.Parse("W")
	l.Network.Signals = append(l.Network.Signals, network.Signal{Name: l.Text(f, what) + ".power", Law: p, Unit: u, At: f.At, Read: true})
	return element.Reading{Form: network.SignalOf(len(l.Network.Signals) - 1), Unit: "W"}
}

// readTorques reads torque: an element or a list of them. With onto: NODE it is what
// they exert on that node; without, the sum of their own tau.
func (l *loader) readTorques(f, on syntax.Field, what string) element.Reading {
	list := []syntax.Field{f}
	if _, single := syntax.ScalarText(f.Node); !single {
		list = nil
		for _, n := range l.Items(f.Node, f.At, what) {
			list = append(list, syntax.Field{Key: f.Key, KeyAt: f.KeyAt, At: syntax.StartOf(n), Node: n})
		}
		if len(list) == 0 {
			l.Fail(f.At, "%s: the list is empty; name elements", what)
		}
	}
	at := network.Ground
	if on.Key != "" {
		at = l.nodeNamed(on, what+": onto")
	}
	r := element.Reading{Form: network.Form{}, Unit: "N.m"}
	if f.Key == "force" {
		r.Unit = "N"
	}
	for _, g := range list {
		d := l.elementNamed(g, what)
		if l.Err != nil {
			return r
		}
		if on.Key != "" {
			r.Form = r.Form.Plus(l.exerted(g, at, d, what, l.Text(on, what)))
			continue
		}
		if d.Tau == nil || len(d.Rel) == 0 {
			l.Fail(g.At, "%s: type %s has no torque to read; %s", what, d.Kind, l.torqueHint(l.Text(g, what)))
			return r
		}
		of := network.Rotational
		if d.Unit == "N" { // also of a joint between bodies that only turn
			of = network.Translational
		}
		l.matches(g, what, of)
		r.Form = r.Form.Plus(d.Tau)
	}
	return r
}

// torqueHint says how to read a torque of an element that has none of its own.
func (l *loader) torqueHint(name string) string {
	for _, t := range l.Network.Ties {
		if t.Name == name {
			return fmt.Sprintf("with onto: NODE beside it, it is what %q exerts on that node", name)
		}
	}
	return "name a torque, spring, damper, clutch, brake or inertia"
}

// exerted is what an element exerts on node at: by its own torques, and as a gear. A
// tie to a node of its own is inside the element.
func (l *loader) exerted(f syntax.Field, at int, d element.Declared, what, node string) network.Form {
	name := l.Text(f, what)
	var sum network.Form
	acts, touches := false, false
	add := func(c float64, value network.Form) {
		acts = true
		if c != 0 {
			touches = true
			sum = sum.Plus(value.Scaled(c))
		}
	}
	for _, a := range l.Network.Efforts {
		if a.Element == name {
			add(a.Row.Coef(at), a.Value)
		}
	}
	for i, t := range l.Network.Ties {
		if t.Name == name && node != name {
			add(t.Row.Coef(at), network.TieOf(i))
		}
	}
	switch {
	case l.Err != nil:
	case !acts:
		l.Fail(f.At, "%s: type %s exerts no torque; %s", what, d.Kind, l.torqueHint(name))
	case !touches:
		l.Fail(f.At, "%s: element %q does not touch node %q", what, name, node)
	default:
		l.matches(f, what, l.Network.Nodes[at].Domain)
	}
	return sum
}
