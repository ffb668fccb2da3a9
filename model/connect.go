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
			e.connect(late)
		}
	}
	for _, e := range l.list {
		for _, f := range e.kind.flanges {
			if n, ok := e.nodes[f.key]; ok && f.domain != anyDomain {
				e.claim(n, f.domain)
			}
		}
	}
	for changed := true; changed && l.err == nil; {
		changed = false
		for _, e := range l.list {
			changed = e.spread() || changed
		}
	}
	for _, e := range l.list {
		e.orient()
	}
}

// connect finds the node of each flange. A name that holds a dot is a node inside a
// sub-assembly: it is looked up last, when all are known.
func (e *element) connect(late bool) {
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
		if i, ok := e.nodeAt(e.within, name, given, f.key, late); ok {
			e.nodes[f.key] = i
			n := &e.plant.nodes[i]
			n.users = append(n.users, e.name)
		}
	}
}

// nodeAt is the node that name means in a scope; ok is false until it is known.
func (e *element) nodeAt(s *scope, name string, f field, key string, late bool) (int, bool) {
	if outer, rest, ok := s.handed(name); ok {
		return e.nodeAt(s.outer, outer.name+rest, outer.field, key, late)
	}
	full := s.prefix + name
	if i, ok := e.loader.nodes[full]; ok {
		return i, true
	}
	d, isElement := e.elements[full]
	_, isAssembly := e.used[full]
	switch {
	case isElement && d.kind != "":
		e.fail(f.at, "%s: %s: %q is of type %s, not a node; %s", e.what(), key, name, d.kind, e.bodyHint(full))
	case isAssembly:
		e.fail(f.at, "%s: %s: %q is a sub-assembly, not a node; a node in it is %s.NAME", e.what(), key, name, name)
	case !isName(name, true):
		e.fail(f.at, "%s: %s: %q is not a name for a node (letters, digits and _)", e.what(), key, name)
	case isName(name, false):
		i := len(e.plant.nodes)
		e.loader.nodes[full] = i
		e.plant.nodes = append(e.plant.nodes, node{name: full, at: f.at})
		return i, true
	case late:
		e.fail(f.at, "%s: %s: %q is not a node%s", e.what(), key, name, didYouMean(full, e.nodeNames()))
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

func (l *loader) nodeNames() []string { return slices.Sorted(maps.Keys(l.nodes)) }

// claim fixes the domain of a node by an element; one that another element fixed
// otherwise is a mistake.
func (e *element) claim(i int, d domain) {
	n := &e.plant.nodes[i]
	if n.domain == anyDomain {
		n.domain, n.by = d, e.name
	}
	if n.domain != d {
		e.fail(e.at, "%s: node %q is %s by element %q; %s wants a %s one", e.what(), n.name, n.domain, n.by, e.kind.name, d)
	}
}

// spread carries the domain of one flange to the others of the element.
func (e *element) spread() bool {
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
				e.claim(n, e.domain)
			}
		}
		return true
	}
	return false
}

// orient finds the relative speed of the element's two ends.
func (e *element) orient() {
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
	if i, ok := e.provided[e.name]; ok {
		s := &e.plant.signals[i]
		if e.kind.name == "speed_sensor" {
			s.unit, _ = Units(e.per("rad/s", "m/s"))
		}
		if e.has("range") && e.err == nil {
			s.most = e.above0("range", s.unit.SI, 1)
		}
	}
}

// term is coef times the speed of a flange.
func (e *element) term(key string, coef float64) term { return termOf(e.node(key), coef) }

// node is the node of a flange, or ground.
func (e *element) node(key string) int {
	if i, ok := e.nodes[key]; ok {
		return i
	}
	return ground
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
