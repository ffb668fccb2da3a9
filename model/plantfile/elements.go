package plantfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

func (l *loader) readElements(f yamlfile.Field, start network.Pos) {
	l.elements, l.nodes, l.provided = map[string]element.Declared{}, map[string]int{}, map[string]int{}
	if f.Key == "" {
		l.FailAt(start, "plant file: elements: is missing; there is nothing to simulate")
	}
	l.expand(l.FieldsOf(f, "elements"), l.global)
	l.connect()
	l.resolveUnits()
	for _, early := range []bool{true, false} { // bodies first: other elements need their points
		for _, e := range l.Elements {
			if early == e.Kind.First {
				d := e.Kind.Read(e)
				e.CheckUsed()
				d.Kind, d.Named, d.Contacts, d.Frictions = e.Kind.Name, e.Named, e.Contacts, e.Frictions
				l.elements[e.Name] = d
			}
		}
	}

	l.JoinHeatFlows()
	l.checkNodes()
	l.listElements()
}

// listElements lists the elements and their nodes for pictures of the plant.
func (l *loader) listElements() {
	for _, e := range l.Elements {
		shown := network.Element{Name: e.Name, Type: e.Kind.Name}
		if e.Kind.Owns {
			shown.Flanges = append(shown.Flanges, network.Flange{Node: e.OwnNode})
		}
		for _, f := range e.Kind.Flanges {
			if n, ok := e.Nodes[f.Key]; ok {
				shown.Flanges = append(shown.Flanges, network.Flange{Key: f.Key, Node: n})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(e.Inner)) {
			shown.Flanges = append(shown.Flanges, network.Flange{Key: key, Node: e.Inner[key]})
		}
		l.Network.Elements = append(l.Network.Elements, shown)
	}
}

// expand adds the elements of the file, or of an assembly, to the list of the loader.
func (l *loader) expand(list []yamlfile.Field, s *scope) {
	for _, f := range list {
		if len(l.Elements) >= maxElements {
			l.FailAt(f.KeyAt, "more than %d elements", maxElements)
		}
		e := &element.Element{
			Reader: &l.Reader, Plant: l.Plant, Namespace: s,
			Name: s.prefix + f.Key, Assembly: s.assembly, At: f.KeyAt, Fields: map[string]yamlfile.Field{},
			Nodes: map[string]int{}, Named: map[string]element.Reading{}, OwnSignal: -1, Signals: map[string]int{},
		}
		if !units.IsName(f.Key, false) {
			e.Refuse(e.At, "not a name for an element (letters, digits and _)")
		}
		entries := l.FieldsOf(f, e.What())
		for _, f := range entries {
			e.Fields[f.Key] = f
		}
		l.readKind(e, s, entries)
	}
}

// readKind reads the type and the keys of an element, and makes its own nodes and its signal.
func (l *loader) readKind(e *element.Element, in *scope, entries []yamlfile.Field) {
	var names []string
	for _, k := range l.kinds {
		names = append(names, k.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(l.assemblies))...)
	t, ok := e.Fields["type"]
	name := l.Text(t, e.What()+": type")
	i := slices.Index(names, name)
	switch {
	case !ok:
		e.Refuse(e.At, "type is missing; such as %s, ...", strings.Join(names[:8], ", "))
	case i < 0:
		e.Refuse(t.At, "unknown type %q%s", name, typeAdvice(name, names))
	}

	if i >= len(l.kinds) {
		in.use(e, l.assemblies[name], t.At, entries)
		return
	}

	k := &l.kinds[i]
	entries = l.withStartKeys(e, entries)
	for _, f := range entries {
		ours, ok := flangeKeys[f.Key]
		if ok && slices.Contains(k.Keys(), ours) {
			e.Refuse(f.KeyAt, "%s: the flange %s is called %s", k.Name, f.Key, ours)
		}
	}
	l.CheckKeys(entries, fmt.Sprintf("%s: %s", e.What(), k.Name), k.Keys()...)
	e.Kind = k
	l.elements[e.Name] = element.Declared{Kind: k.Name}
	l.Elements = append(l.Elements, e)
	if k.Owns {
		n := network.Node{Name: e.Name, At: e.At, Owner: k.Name, Domain: k.Itself, By: e.Name}
		e.OwnNode = network.Add(&l.Network.Nodes, n)
		l.nodes[e.Name] = e.OwnNode
	}

	if k.MakeNodes != nil {
		first := len(l.Network.Nodes)
		k.MakeNodes(e)
		for i, n := range l.Network.Nodes[first:] {
			l.nodes[n.Name] = first + i
		}
	}

	provide := func(name, unit string) int {
		l.provided[name] = network.Add(&l.Network.Signals,
			network.Signal{Name: name, Unit: units.Want(unit).Unit, At: e.At, Read: true})
		return l.provided[name]
	}
	if k.Gives != "" {
		e.OwnSignal = provide(e.Name, k.Gives)
	}
	for _, q := range k.Signals {
		e.Signals[q.Key] = provide(e.Name+"."+q.Key, q.Unit)
	}
}

// flangeKeys holds the keys of flanges by their names in the Modelica library.
var flangeKeys = map[string]string{"flange_a": "a", "flange_b": "b", "frame_a": "a", "frame_b": "b"}

// backlashAdvice continues the error for a flange b that has the value of a backlash, which the Modelica
// library calls b.
func backlashAdvice(e *element.Element, key string) string {
	if key == "b" && slices.Contains(e.Kind.Keys(), "backlash") {
		return "; b is the second flange, and the backlash is called backlash"
	}
	return ""
}

// typeAdvice continues the error for an unknown element type.
func typeAdvice(name string, known []string) string {
	if advice := element.Instead(name); advice != "" {
		return ": there is none; " + strings.ReplaceAll(advice, "`", "")
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if slices.Contains(known, last) {
		return " (did you mean " + last + "?)"
	}
	if near := units.Meant(last, known); near != "" {
		return near
	}

	const all = "`lockstep help plant` lists the types"
	if alike := units.Alike(last, known); len(alike) > 0 {
		return "; alike are " + strings.Join(alike, ", ") + "; " + all
	}
	return "; " + all
}

// connect finds the nodes of all flanges, makes the massless nodes, and determines which nodes turn
// and which move.
func (l *loader) connect() {
	for _, late := range []bool{false, true} {
		for _, e := range l.Elements {
			l.connectFlanges(e, late)
		}
	}

	for _, e := range l.Elements {
		for _, f := range e.Kind.Flanges {
			if n, ok := e.Nodes[f.Key]; ok && f.Domain != network.AnyDomain {
				setDomain(e, n, f.Domain)
			}
		}
	}

	for changed := true; changed; {
		changed = false
		for _, e := range l.Elements {
			changed = spreadDomain(e) || changed
		}
	}

	for _, e := range l.Elements {
		setOwnDomain(e)
		orient(e)
	}
}

// setOwnDomain gives a node that no other element makes turn or move, a fixed one, the domain of its
// keys.
func setOwnDomain(e *element.Element) {
	if !e.Kind.Owns || len(e.Kind.Flanges) > 0 || e.Network.Nodes[e.OwnNode].Domain != network.AnyDomain {
		return
	}
	for _, p := range e.Kind.Parameters {
		if _, ok := e.Fields[network.Translational.Spell(p.Key)]; ok && p.Key != network.Translational.Spell(p.Key) {
			setDomain(e, e.OwnNode, network.Translational)
		}
	}
}

// connectFlanges finds the node of each flange. A name with a dot is a node inside a sub-assembly;
// it is looked up in the second pass, late, when all nodes are known.
func (l *loader) connectFlanges(e *element.Element, late bool) {
	for _, f := range e.Kind.Flanges {
		given, ok := e.Fields[f.Key]
		if !ok {
			if f.Missing == "" {
				e.Refuse(e.At, "%s needs %s (the name of a node)", e.Kind.Name, f.Key)
			}
			continue
		}

		if _, done := e.Nodes[f.Key]; done {
			continue
		}
		name := e.Text(given, e.What()+": "+f.Key)
		if i, ok := l.nodeAt(e, e.Namespace.(*scope), name, given, f.Key, late); ok {
			e.Nodes[f.Key] = i
			n := &e.Network.Nodes[i]
			n.Users = append(n.Users, e.Name)
		}
	}
}

// nodeAt returns the node that a name means in a scope; ok is false until the node is known.
func (l *loader) nodeAt(e *element.Element, s *scope, name string, f yamlfile.Field, key string,
	late bool) (int, bool) {
	if outer, rest, ok := s.flangeNamed(name); ok {
		return l.nodeAt(e, s.outer, outer.name+rest, outer.field, key, late)
	}
	full := s.prefix + name
	if i, ok := l.nodes[full]; ok {
		return i, true
	}
	d, isElement := l.elements[full]
	_, isAssembly := l.used[full]
	switch {
	case isElement && d.Kind != "":
		e.Refuse(f.At, "%s: %q is of type %s, not a node; %s", key, name, d.Kind, l.nodeHint(full))
	case isAssembly:
		e.Refuse(f.At, "%s: %q is a sub-assembly, not a node; a node in it is %s.NAME", key, name, name)
	case !units.IsName(name, true):
		e.Refuse(f.At, "%s: %q is not a name for a node (letters, digits and _)%s", key, name, backlashAdvice(e, key))
	case units.IsName(name, false):
		l.nodes[full] = network.Add(&e.Network.Nodes, network.Node{Name: full, At: f.At})
		return l.nodes[full], true
	case late:
		e.Refuse(f.At, "%s: %q is not a node%s", key, name, units.Meant(full, l.nodeNames()))
	}

	return network.Ground, false
}

// flangeNamed returns the flange of the assembly that a name means, or begins with before a dot; rest
// is the part from the dot on.
func (s *scope) flangeNamed(name string) (b binding, rest string, ok bool) {
	head, _, _ := strings.Cut(name, ".")
	b, ok = s.flanges[head]
	return b, name[len(head):], ok
}

// nodeHint describes the nodes inside an element.
func (l *loader) nodeHint(name string) string {
	for _, e := range l.Elements {
		if e.Name == name && e.Kind.Hint != "" {
			return strings.ReplaceAll(e.Kind.Hint, "NAME", name)
		}
	}

	return "nodes are inertias, fixed, and names of your own"
}

func (l *loader) nodeNames() []string { return slices.Sorted(maps.Keys(l.nodes)) }

// setDomain sets the domain of a node for an element, and refuses a node of another domain.
func setDomain(e *element.Element, i int, d network.Domain) {
	n := &e.Network.Nodes[i]
	if n.Domain == network.AnyDomain {
		n.Domain, n.By = d, e.Name
	}
	if n.Domain != d {
		e.Refuse(e.At, "node %q is %s by element %q; %s wants a %s one", n.Name, n.Domain, n.By, e.Kind.Name, d)
	}
}

// spreadDomain gives all flanges of an element the domain of one of them; false if nothing changed.
func spreadDomain(e *element.Element) bool {
	if e.Domain != network.AnyDomain {
		return false
	}
	var open []int
	for _, f := range e.Kind.Flanges {
		if n, ok := e.Nodes[f.Key]; ok && f.Domain == network.AnyDomain {
			open = append(open, n)
			e.Domain = max(e.Domain, e.Network.Nodes[n].Domain)
		}
	}

	if e.Domain == network.AnyDomain {
		return false
	}
	for _, n := range open {
		setDomain(e, n, e.Domain)
	}
	return true
}

// orient sets the relative speed of the two ends of an element, its domain and its unit.
func orient(e *element.Element) {
	first, second := "a", "b"
	plus, minus := second, first
	if _, ok := e.Nodes["flange"]; ok {
		first, second = "flange", "support"
		plus, minus = first, second
	}

	p, m := e.Node(plus), e.Node(minus)
	if p == m && p != network.Ground {
		e.Refuse(e.Fields[second].At, "%s and %s are the same node %q", first, second, e.Network.Nodes[p].Name)
	}
	e.Between = network.Difference(p, m)
	for _, f := range e.Kind.Flanges {
		e.Domain = max(e.Domain, f.Domain)
	}
	if e.Kind.Owns {
		e.Domain = max(e.Domain, e.Network.Nodes[e.OwnNode].Domain)
	}
	e.CheckSpelling()
	if e.OwnSignal >= 0 {
		s := &e.Network.Signals[e.OwnSignal]
		s.Unit = units.Want(e.Domain.Spell(e.Kind.Gives)).Unit
		if _, ok := e.Fields["range"]; ok {
			s.MaxAbs = e.Number("range")
		}
	}
}

// checkNodes refuses massless nodes with only one element, which are mostly misspelled, massless nodes whose
// name says that they do not move, and a plant without inertia.
func (l *loader) checkNodes() {
	mass := false
	for _, n := range l.Network.Nodes {
		mass = mass || n.J > 0
		if n.Owner != "" || len(n.Users) == 0 {
			continue
		}
		switch name := n.Name[strings.LastIndexByte(n.Name, '.')+1:]; {
		case name == "ground" || name == "fixed":
			l.FailAt(n.At, "element %q: node %q is no element, so it would move; add the element %s: {type: fixed}",
				n.Users[0], n.Name, name)
		case len(n.Users) == 1:
			l.FailAt(n.At, "element %q: node %q is connected to nothing else%s; name an inertia, or give it a gear",
				n.Users[0], n.Name, units.Meant(n.Name, l.nodeNames()))
		}
	}

	if !mass {
		l.FailAt(network.Pos{Line: 1, Col: 1}, "the plant has no inertia; nothing can move")
	}
}
