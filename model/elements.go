package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// entry is an element with the scope of its names.
type entry struct {
	*element
	within *scope
}

// rank orders the reading of elements: bodies first, since others ask where they are.
func (e *entry) rank() int {
	if e.kind.early != nil {
		return 0
	}
	return 1
}

// inScope is a loader that looks names up in one scope.
type inScope struct {
	loader *loader
	scope  *scope
}

func (s inScope) quantity(f field, what string, want wanted) float64 {
	outer := s.loader.scope
	s.loader.scope = s.scope
	v := s.loader.quantity(f, what, want)
	s.loader.scope = outer
	return v
}

func (s inScope) signal(f field, what, name string, want wanted) int {
	outer := s.loader.scope
	s.loader.scope = s.scope
	i := s.loader.signal(f, what, name, want)
	s.loader.scope = outer
	return i
}

func (s inScope) full(name string) string { return s.scope.full(name) }

func (l *loader) readElements(f field, start pos) {
	l.elements, l.nodes, l.provided = map[string]declared{}, map[string]int{}, map[string]int{}
	if f.key == "" {
		l.fail(start, "plant file: elements: is missing; there is nothing to simulate")
		return
	}
	l.expand(l.entries(f.node, f.at, "elements"), l.scope)
	if l.connect(); l.err != nil {
		return
	}
	slices.SortStableFunc(l.list, func(a, b *entry) int { return a.rank() - b.rank() })
	for _, e := range l.list {
		d := e.kind.read(e.element)
		d.kind, d.named = e.kind.name, e.named
		l.elements[e.name] = d
		if l.err != nil {
			return
		}
	}
	l.checkNodes()
}

// expand reads the elements of the file, or of an assembly in it, to l.list.
func (l *loader) expand(list []field, s *scope) {
	for _, f := range list {
		if len(l.list) >= maxElements {
			l.fail(f.keyAt, "more than %d elements", maxElements)
		}
		if l.err != nil {
			return
		}
		e := &entry{within: s, element: &element{reader: &l.reader, parts: l.parts, namespace: inScope{l, s},
			name: s.prefix + f.key, assembly: s.assembly, at: f.keyAt, fields: map[string]field{}, ownSignal: -1,
			nodes: map[string]int{}, named: map[string]reading{}}}
		if !isName(f.key, false) {
			l.fail(e.at, "%s: not a name for an element (letters, digits and _)", e.what())
		}
		entries := l.entries(f.node, f.at, e.what())
		for _, f := range entries {
			e.fields[f.key] = f
		}
		l.readKind(e, entries)
	}
}

// readKind reads an element's type and keys, and makes its node if it is one.
func (l *loader) readKind(e *entry, entries []field) {
	var names []string
	for _, k := range l.kinds {
		names = append(names, k.name)
	}
	names = append(names, slices.Sorted(maps.Keys(l.assemblies))...)
	t, ok := e.fields["type"]
	name := l.text(t, e.what()+": type")
	i := slices.Index(names, name)
	hint := didYouMean(name, names)
	if hint == "" {
		hint = "; known: " + strings.Join(names, ", ")
	}
	switch {
	case !ok:
		l.fail(e.at, "%s: type is missing; such as %s, ...", e.what(), strings.Join(names[:8], ", "))
	case i < 0:
		l.fail(t.at, "%s: unknown type %q%s", e.what(), name, hint)
	}
	if l.err != nil {
		return
	}
	if i >= len(l.kinds) {
		l.use(e, l.assemblies[name], t.at, entries)
		return
	}
	k := &l.kinds[i]
	keys := []string{"type"}
	for _, f := range k.flanges {
		keys = append(keys, f.key)
	}
	l.known(entries, fmt.Sprintf("%s: %s", e.what(), k.name), slices.Concat(keys, k.frames, k.keys)...)
	e.kind = k
	l.elements[e.name] = declared{kind: k.name}
	l.list, l.all = append(l.list, e), append(l.all, e.element)
	if k.owns {
		e.ownNode = len(l.plant.nodes)
		l.nodes[e.name] = e.ownNode
		l.plant.nodes = append(l.plant.nodes, node{name: e.name, at: e.at, owner: k.name, domain: k.itself, by: e.name})
	}
	if k.early != nil {
		first := len(l.plant.nodes)
		k.early(e.element)
		for i, n := range l.plant.nodes[first:] {
			l.nodes[n.name] = first + i
		}
	}
	if k.gives != "" {
		u, _ := Units(k.gives)
		e.ownSignal = len(l.plant.signals)
		l.provided[e.name] = e.ownSignal
		l.plant.signals = append(l.plant.signals, signal{name: e.name, unit: u, at: e.at, read: true})
	}
}
