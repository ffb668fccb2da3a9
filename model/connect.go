package model

import (
	"maps"
	"slices"
	"strings"
)

// connect finds the nodes of all flanges, makes the massless ones, and tells which
// nodes turn and which move.
func (l *loader) connect() {
	for _, late := range []bool{false, true} {
		for _, e := range l.list {
			l.connectFlanges(e, late)
		}
	}
	for _, e := range l.list {
		for _, f := range e.kind.flanges {
			if n, ok := e.nodes[f.key]; ok && f.domain != anyDomain {
				claim(e.element, n, f.domain)
			}
		}
	}
	for changed := true; changed && l.err == nil; {
		changed = false
		for _, e := range l.list {
			changed = spreadDomain(e.element) || changed
		}
	}
	for _, e := range l.list {
		orient(e.element)
	}
}

// connectFlanges finds the node of each flange. A name that holds a dot is a node inside a
// sub-assembly: it is looked up last, when all are known.
func (l *loader) connectFlanges(e *entry, late bool) {
	for _, f := range e.kind.flanges {
		given, ok := e.fields[f.key]
		if !ok {
			if !f.optional {
				e.fail(e.at, "%s: %s needs %s (the name of a node)", e.what(), e.kind.name, f.key)
			}
			continue
		}
		if _, done := e.nodes[f.key]; done || e.err != nil {
			continue
		}
		name := e.text(given, e.what()+": "+f.key)
		if i, ok := l.nodeAt(e, e.within, name, given, f.key, late); ok {
			e.nodes[f.key] = i
			n := &e.plant.nodes[i]
			n.users = append(n.users, e.name)
		}
	}
}

// nodeAt is the node that name means in a scope; ok is false until it is known.
func (l *loader) nodeAt(e *entry, s *scope, name string, f field, key string, late bool) (int, bool) {
	if outer, rest, ok := s.handed(name); ok {
		return l.nodeAt(e, s.outer, outer.name+rest, outer.field, key, late)
	}
	full := s.prefix + name
	if i, ok := l.nodes[full]; ok {
		return i, true
	}
	d, isElement := l.elements[full]
	_, isAssembly := l.used[full]
	switch {
	case isElement && d.kind != "":
		e.fail(f.at, "%s: %s: %q is of type %s, not a node; %s", e.what(), key, name, d.kind, l.nodeHint(full))
	case isAssembly:
		e.fail(f.at, "%s: %s: %q is a sub-assembly, not a node; a node in it is %s.NAME", e.what(), key, name, name)
	case !isName(name, true):
		e.fail(f.at, "%s: %s: %q is not a name for a node (letters, digits and _)", e.what(), key, name)
	case isName(name, false):
		i := len(e.plant.nodes)
		l.nodes[full] = i
		e.plant.nodes = append(e.plant.nodes, node{name: full, at: f.at})
		return i, true
	case late:
		e.fail(f.at, "%s: %s: %q is not a node%s", e.what(), key, name, didYouMean(full, l.nodeNames()))
	}
	return ground, false
}

// handed is the flange of an assembly that a name means, or begins with before a dot:
// rest is what follows.
func (s *scope) handed(name string) (b binding, rest string, ok bool) {
	head, _, _ := strings.Cut(name, ".")
	b, ok = s.flanges[head]
	return b, name[len(head):], ok
}

// nodeHint tells which nodes an element has inside.
func (l *loader) nodeHint(name string) string {
	for _, e := range l.all {
		if e.name == name && e.kind.hint != "" {
			return strings.ReplaceAll(e.kind.hint, "NAME", name)
		}
	}
	return "nodes are inertias, fixed, and names of your own"
}

func (l *loader) nodeNames() []string { return slices.Sorted(maps.Keys(l.nodes)) }

// claim fixes the domain of a node by an element; one that another element fixed
// otherwise is a mistake.
func claim(e *element, i int, d domain) {
	n := &e.plant.nodes[i]
	if n.domain == anyDomain {
		n.domain, n.by = d, e.name
	}
	if n.domain != d {
		e.fail(e.at, "%s: node %q is %s by element %q; %s wants a %s one", e.what(), n.name, n.domain, n.by, e.kind.name, d)
	}
}

// spreadDomain carries the domain of one flange to the others of the element.
func spreadDomain(e *element) bool {
	if e.domain == anyDomain {
		for _, f := range e.kind.flanges {
			if n, ok := e.nodes[f.key]; ok && f.domain == anyDomain {
				e.domain = max(e.domain, e.plant.nodes[n].domain)
			}
		}
		if e.domain == anyDomain {
			return false
		}
		for _, f := range e.kind.flanges {
			if n, ok := e.nodes[f.key]; ok && f.domain == anyDomain {
				claim(e, n, e.domain)
			}
		}
		return true
	}
	return false
}

// orient finds the relative speed of the element's two ends.
func orient(e *element) {
	plus, minus := "b", "a"
	if _, ok := e.nodes["flange"]; ok {
		plus, minus = "flange", "support"
	}
	p, isPlus := e.nodes[plus]
	m, isMinus := e.nodes[minus]
	if isPlus && isMinus && p == m {
		first, second := "a", "b"
		if plus == "flange" {
			first, second = "flange", "support"
		}
		e.fail(e.fields[second].at, "%s: %s and %s are the same node %q", e.what(), first, second, e.plant.nodes[p].name)
	}
	if !isPlus {
		p = ground
	}
	if !isMinus {
		m = ground
	}
	e.between = difference(p, m)
	for _, f := range e.kind.flanges {
		e.domain = max(e.domain, f.domain)
	}
	if e.ownSignal >= 0 {
		s := &e.plant.signals[e.ownSignal]
		if e.kind.givesMoving != "" {
			s.unit, _ = Units(e.per(e.kind.gives, e.kind.givesMoving))
		}
		if e.has("range") && e.err == nil {
			s.most = e.above0("range", s.unit.SI, 1)
		}
	}
}

// checkNodes refuses massless nodes that only one element touches: most are typing
// errors.
func (l *loader) checkNodes() {
	mass := false
	for _, n := range l.plant.nodes {
		mass = mass || n.J > 0
		if n.owner != "" || len(n.users) != 1 {
			continue
		}
		l.fail(n.at, "element %q: node %q is connected to nothing else%s; name an inertia, or give it a gear",
			n.users[0], n.name, didYouMean(n.name, l.nodeNames()))
	}
	if !mass && l.err == nil {
		l.fail(pos{1, 1}, "the plant has no inertia; nothing can move")
	}
}
