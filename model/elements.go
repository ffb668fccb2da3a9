package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// kind is an element type: its keys, and how its entry becomes part of the plant.
type kind struct {
	name string
	keys []string
	read func(e *element) declared
}

func kinds() []kind {
	grip := []string{"mu", "cgeo", "peak", "fn", "area", "pressure", "p0"}
	return []kind{
		{"inertia", []string{"J", "w_start"}, readInertia},
		{"fixed", nil, readFixed},
		{"damper", []string{"a", "b", "d"}, readLink},
		{"spring", []string{"a", "b", "c", "phi_rel0", "phi_rel_start"}, readLink},
		{"spring_damper", []string{"a", "b", "c", "d", "phi_rel0", "phi_rel_start"}, readLink},
		{"ideal_gear", []string{"a", "b", "ratio", "support"}, readGear},
		{"clutch", append([]string{"a", "b"}, grip...), readFriction},
		{"brake", append([]string{"flange", "support"}, grip...), readFriction},
		{"torque", []string{"flange", "support", "tau"}, readTorque},
	}
}

// element is one entry of the section elements while it is read.
type element struct {
	*loader
	name   string
	kind   string
	at     pos
	fields map[string]field
}

func (e *element) what() string { return fmt.Sprintf("element %q", e.name) }

func (l *loader) readElements(f field, start pos) {
	l.elements, l.nodes = map[string]declared{}, map[string]int{}
	if f.key == "" {
		l.fail(start, "plant file: elements: is missing; there is nothing to simulate")
		return
	}
	list := l.fields(f.node, f.at, "elements")
	if len(list) > maxElements {
		l.fail(list[maxElements].keyAt, "more than %d elements", maxElements)
		return
	}
	var all []*element
	var read []func(*element) declared
	for _, f := range list {
		e, fn := l.readKind(f)
		if l.err != nil {
			return
		}
		all, read = append(all, e), append(read, fn)
	}
	for i, e := range all {
		d := read[i](e)
		d.kind = e.kind
		l.elements[e.name] = d
	}
	l.checkNodes()
}

// readKind reads an element's type and keys, and makes its node if it is one.
func (l *loader) readKind(f field) (*element, func(*element) declared) {
	e := &element{loader: l, name: f.key, at: f.keyAt, fields: map[string]field{}}
	if !isName(e.name, false) {
		l.fail(e.at, "%s: not a name for an element (letters, digits and _)", e.what())
	}
	entries := l.fields(f.node, f.at, e.what())
	for _, f := range entries {
		e.fields[f.key] = f
	}
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	t, ok := e.fields["type"]
	e.kind = l.text(t, e.what()+": type")
	i := indexOf(names, e.kind)
	switch {
	case !ok:
		l.fail(e.at, "%s: type is missing; known: %s", e.what(), strings.Join(names, ", "))
	case i < 0:
		l.fail(t.at, "%s: unknown type %q%s; known: %s", e.what(), e.kind,
			didYouMean(e.kind, names), strings.Join(names, ", "))
	}
	if l.err != nil {
		return e, nil
	}
	k := kinds()[i]
	l.known(entries, fmt.Sprintf("%s: %s", e.what(), e.kind), append([]string{"type"}, k.keys...)...)
	l.elements[e.name] = declared{kind: e.kind}
	if e.kind == "inertia" || e.kind == "fixed" {
		l.nodes[e.name] = len(l.plant.nodes)
		l.plant.nodes = append(l.plant.nodes, node{name: e.name, at: e.at, owner: e.kind})
	}
	return e, k.read
}

// number reads a required parameter.
func (e *element) number(key, unit, meaning string) (float64, field) {
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (%s, %s)", e.what(), e.kind, key, meaning, unit)
		return math.NaN(), f
	}
	return e.value(f, unit), f
}

// option reads a parameter that has a default.
func (e *element) option(key, unit string, missing float64) (float64, field) {
	f, ok := e.fields[key]
	if !ok {
		return missing, field{at: e.at}
	}
	return e.value(f, unit), f
}

func (e *element) value(f field, unit string) float64 {
	u, _ := Units(unit)
	return e.quantity(f, e.what()+": "+f.key, wanted{u, unit})
}

// positive fails unless x > 0; notNegative unless x >= 0.
func (e *element) positive(x float64, f field, name, unit string) {
	if !(x > 0) {
		e.fail(f.at, "%s: %s %s is not positive", e.what(), name, withUnit(x, unit))
	}
}

func (e *element) notNegative(x float64, f field, name, unit string) {
	if !(x >= 0) {
		e.fail(f.at, "%s: %s %s is negative", e.what(), name, withUnit(x, unit))
	}
}

// node reads a flange: the index of its node. An unknown name makes a massless
// node. optional flanges return ground = -1 when missing.
func (e *element) node(key string, optional bool) int {
	f, ok := e.fields[key]
	if !ok {
		if !optional {
			e.fail(e.at, "%s: %s needs %s (the name of a node)", e.what(), e.kind, key)
		}
		return ground
	}
	name := e.text(f, e.what()+": "+key)
	d, isElement := e.elements[name]
	i, isNode := e.nodes[name]
	switch {
	case !isNode && isElement:
		e.fail(f.at, "%s: %s: %q is of type %s, not a node; nodes are inertias, fixed, and names of your own",
			e.what(), key, name, d.kind)
	case !isNode && !isName(name, false):
		e.fail(f.at, "%s: %s: %q is not a name for a node (letters, digits and _)", e.what(), key, name)
	case !isNode:
		i = len(e.plant.nodes)
		e.nodes[name] = i
		e.plant.nodes = append(e.plant.nodes, node{name: name, at: f.at})
	}
	if e.err != nil {
		return ground
	}
	n := &e.plant.nodes[i]
	n.users = append(n.users, e.name)
	return i
}

const ground = -1

// difference is w[plus] - w[minus]; ground does not move.
func difference(plus, minus int) row {
	var r row
	if plus != ground {
		r = append(r, term{plus, 1})
	}
	if minus != ground {
		r = append(r, term{minus, -1})
	}
	return r
}

// checkNodes refuses massless nodes that only one element touches: most are typing
// errors.
func (l *loader) checkNodes() {
	mass := false
	for _, n := range l.plant.nodes {
		mass = mass || n.owner == "inertia"
		if n.owner != "" || len(n.users) != 1 {
			continue
		}
		names := slices.Sorted(maps.Keys(l.nodes))
		l.fail(n.at, "element %q: node %q is connected to nothing else%s; name an inertia, or give it a gear",
			n.users[0], n.name, didYouMean(n.name, names))
	}
	if !mass && l.err == nil {
		l.fail(pos{1, 1}, "the plant has no inertia; nothing can move")
	}
}

func readInertia(e *element) declared {
	n := &e.plant.nodes[e.nodes[e.name]]
	J, f := e.number("J", "kg.m2", "moment of inertia")
	e.positive(J, f, "inertia J", "kg.m2")
	n.J = J
	n.start, _ = e.option("w_start", "rad/s", 0)
	_, n.given = e.fields["w_start"]
	return declared{}
}

func readFixed(*element) declared { return declared{} }

func readLink(e *element) declared {
	k := link{name: e.name, at: e.at, rel: e.between()}
	if e.kind != "damper" {
		var f field
		k.c, f = e.number("c", "N.m/rad", "stiffness")
		e.positive(k.c, f, "stiffness c", "N.m/rad")
		k.rest, _ = e.option("phi_rel0", "rad", 0)
		k.phi0, _ = e.option("phi_rel_start", "rad", k.rest)
	}
	if e.kind != "spring" {
		var f field
		k.d, f = e.number("d", "N.m.s/rad", "damping")
		e.notNegative(k.d, f, "damping d", "N.m.s/rad")
	}
	e.plant.links = append(e.plant.links, k)
	return declared{measure: ofLinkTorque, index: len(e.plant.links) - 1, row: k.rel, sign: -1}
}

// between reads flanges a and b: w_b - w_a.
func (e *element) between() row {
	a, b := e.node("a", false), e.node("b", false)
	if a == b && e.err == nil {
		e.fail(e.fields["b"].at, "%s: a and b are the same node %q", e.what(), e.plant.nodes[a].name)
	}
	return difference(b, a)
}

// onSupport reads flange and support: w_flange - w_support.
func (e *element) onSupport() row {
	flange, support := e.node("flange", false), e.node("support", true)
	if flange == support && e.err == nil {
		e.fail(e.fields["support"].at, "%s: flange and support are the same node %q", e.what(), e.plant.nodes[flange].name)
	}
	return difference(flange, support)
}

// readGear is w_a - w_support = ratio·(w_b - w_support).
func readGear(e *element) declared {
	rel := e.between()
	support := e.node("support", true)
	ratio, f := e.number("ratio", "1", "speed of a over speed of b")
	if !(ratio != 0) || math.IsNaN(ratio) {
		e.fail(f.at, "%s: ratio %g is zero; it is the speed of a over the speed of b", e.what(), ratio)
	}
	if e.err != nil {
		return declared{}
	}
	t := tie{name: e.name, at: e.at, row: row{{rel[1].node, 1}, {rel[0].node, -ratio}}}
	if support != ground {
		t.row = append(t.row, term{support, ratio - 1})
	}
	e.plant.ties = append(e.plant.ties, t)
	return declared{}
}

// readFriction reads the normal force fn of a clutch or brake directly, or as
// area·max(0, pressure - p0); its torque is at most mu·cgeo·fn.
func readFriction(e *element) declared {
	k := friction{name: e.name, at: e.at}
	if e.kind == "brake" {
		k.rel = e.onSupport()
	} else {
		k.rel = e.between()
	}
	mu, f := e.number("mu", "1", "coefficient of friction")
	e.notNegative(mu, f, "mu", "1")
	cgeo, f := e.number("cgeo", "m", "friction surfaces times mean radius")
	e.notNegative(cgeo, f, "cgeo", "m")
	k.peak, f = e.option("peak", "1", 1)
	if !(k.peak >= 1) {
		e.fail(f.at, "%s: peak %g is below 1; it is static over sliding friction", e.what(), k.peak)
	}
	k.gain = mu * cgeo
	force, direct := e.fields["fn"]
	pressure, hydraulic := e.fields["pressure"]
	switch {
	case direct == hydraulic:
		e.fail(e.at, "%s: %s needs either fn (normal force, N) or area and pressure", e.what(), e.kind)
	case direct:
		for _, key := range []string{"area", "p0"} {
			if f, ok := e.fields[key]; ok {
				e.fail(f.keyAt, "%s: %s goes with pressure, not with fn", e.what(), key)
			}
		}
		k.signal = e.drive(force, "N")
	default:
		area, f := e.number("area", "m2", "piston area")
		e.notNegative(area, f, "area", "m2")
		k.gain *= area
		k.offset, f = e.option("p0", "Pa", 0)
		e.notNegative(k.offset, f, "p0", "Pa")
		k.signal = e.drive(pressure, "Pa")
	}
	if e.err == nil && math.IsInf(k.gain, 0) {
		e.fail(e.at, "%s: mu·cgeo·area is not a finite number", e.what())
	}
	e.plant.frictions = append(e.plant.frictions, k)
	return declared{measure: ofFriction, index: len(e.plant.frictions) - 1, row: k.rel, sign: -1}
}

func (e *element) drive(f field, unit string) int {
	u, _ := Units(unit)
	return e.signal(f, e.what()+": "+f.key, e.name+"."+f.key, wanted{u, unit})
}

func readTorque(e *element) declared {
	k := torque{name: e.name, row: e.onSupport()}
	f, ok := e.fields["tau"]
	if !ok {
		e.fail(e.at, "%s: torque needs tau (N.m, or the name of an input)", e.what())
		return declared{}
	}
	k.signal = e.drive(f, "N.m")
	e.plant.torques = append(e.plant.torques, k)
	return declared{measure: ofSignal, index: k.signal, row: k.row, sign: 1}
}
