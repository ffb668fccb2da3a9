package plantfile

import (
	"fmt"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// power is torque times relative speed of an element, as a law.
func (l *loader) power(f yamlfile.Field, what string) element.Reading {
	d := l.elementNamed(f, what)
	if d.Tau == nil || len(d.Rel) == 0 {
		l.FailAt(f.At, "%s: type %s has no power to read", what, d.Kind)
	}
	p := network.Product(d.Tau, d.Rel.Speeds(1))
	s := network.Signal{Name: l.Text(f, what) + ".power", Law: p, Unit: units.Want("W").Unit, At: f.At, Read: true}
	return element.Reading{Form: network.SignalOf(network.Add(&l.Network.Signals, s)), Unit: "W"}
}

// readTorques reads torque: an element or a list of them. With onto: NODE it is what
// they exert on that node; without, the sum of their own tau.
func (l *loader) readTorques(f, on yamlfile.Field, what string) element.Reading {
	list := []yamlfile.Field{f}
	if _, single := yamlfile.ScalarText(f.Node); !single {
		list = l.Items(f, what)
		if len(list) == 0 {
			l.FailAt(f.At, "%s: the list is empty; name elements", what)
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
		if on.Key != "" {
			r.Form = r.Form.Plus(l.exerted(g, at, d, what, l.Text(on, what)))
			continue
		}

		if d.Tau == nil || len(d.Rel) == 0 {
			l.FailAt(g.At, "%s: type %s has no torque to read; %s", what, d.Kind, l.torqueHint(l.Text(g, what)))
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
func (l *loader) exerted(f yamlfile.Field, at int, d element.Declared, what, node string) network.Form {
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
	case !acts:
		l.FailAt(f.At, "%s: type %s exerts no torque; %s", what, d.Kind, l.torqueHint(name))
	case !touches:
		l.FailAt(f.At, "%s: element %q does not touch node %q", what, name, node)
	default:
		l.matches(f, what, l.Network.Nodes[at].Domain)
	}

	return sum
}
