package plantfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// entry is an element with the scope of its names.
type entry struct {
	*element.Element
	within *scope
}

// rank orders the reading of elements: bodies first, since others ask where they are.
func (e *entry) rank() int {
	if e.Kind.Early != nil {
		return 0
	}
	return 1
}

// inScope is a loader that looks names up in one scope.
type inScope struct {
	loader *loader
	scope  *scope
}

func (s inScope) Quantity(f syntax.Field, what string, want units.Wanted) float64 {
	outer := s.loader.scope
	s.loader.scope = s.scope
	v := s.loader.quantity(f, what, want)
	s.loader.scope = outer
	return v
}

func (s inScope) Signal(f syntax.Field, what, name string, want units.Wanted) int {
	outer := s.loader.scope
	s.loader.scope = s.scope
	i := s.loader.signal(f, what, name, want)
	s.loader.scope = outer
	return i
}

func (s inScope) FullName(name string) string { return s.scope.full(name) }

func (l *loader) readElements(f syntax.Field, start network.Pos) {
	l.elements, l.nodes, l.provided = map[string]element.Declared{}, map[string]int{}, map[string]int{}
	if f.Key == "" {
		l.Fail(start, "plant file: elements: is missing; there is nothing to simulate")
		return
	}
	l.expand(l.Entries(f.Node, f.At, "elements"), l.scope)
	if l.connect(); l.Err != nil {
		return
	}
	slices.SortStableFunc(l.list, func(a, b *entry) int { return a.rank() - b.rank() })
	for _, e := range l.list {
		l.Reader.Element = e.Name
		d := e.Kind.Read(e.Element)
		d.Kind, d.Named = e.Kind.Name, e.Named
		l.elements[e.Name] = d
		if l.Err != nil {
			return
		}
	}
	l.Reader.Element = ""
	l.checkNodes()
}

// expand reads the elements of the file, or of an assembly in it, to the list of the loader.
func (l *loader) expand(list []syntax.Field, s *scope) {
	for _, f := range list {
		if len(l.list) >= maxElements {
			l.Fail(f.KeyAt, "more than %d elements", maxElements)
		}
		if l.Err != nil {
			return
		}
		e := &entry{within: s, Element: &element.Element{Reader: &l.Reader, Plant: l.Plant, Namespace: inScope{l, s},
			Name: s.prefix + f.Key, Assembly: s.assembly, At: f.KeyAt, Fields: map[string]syntax.Field{}, OwnSignal: -1,
			Nodes: map[string]int{}, Named: map[string]element.Reading{}}}
		l.Reader.Element = e.Name
		if !units.IsName(f.Key, false) {
			e.Fail(e.At, "%s: not a name for an element (letters, digits and _)", e.What())
		}
		entries := l.Entries(f.Node, f.At, e.What())
		for _, f := range entries {
			e.Fields[f.Key] = f
		}
		l.readKind(e, entries)
		l.Reader.Element = ""
	}
}

// readKind reads an element's type and keys, and makes its node if it is one.
func (l *loader) readKind(e *entry, entries []syntax.Field) {
	var names []string
	for _, k := range l.kinds {
		names = append(names, k.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(l.assemblies))...)
	t, ok := e.Fields["type"]
	name := l.Text(t, e.What()+": type")
	i := slices.Index(names, name)
	hint := units.DidYouMean(name, names)
	if hint == "" {
		hint = "; known: " + strings.Join(names, ", ")
	}
	switch {
	case !ok:
		e.Fail(e.At, "%s: type is missing; such as %s, ...", e.What(), strings.Join(names[:8], ", "))
	case i < 0:
		e.Fail(t.At, "%s: unknown type %q%s", e.What(), name, hint)
	}
	if l.Err != nil {
		return
	}
	if i >= len(l.kinds) {
		l.use(e, l.assemblies[name], t.At, entries)
		return
	}
	k := &l.kinds[i]
	keys := []string{"type"}
	for _, f := range k.Flanges {
		keys = append(keys, f.Key)
	}
	l.CheckKeys(entries, fmt.Sprintf("%s: %s", e.What(), k.Name), slices.Concat(keys, k.Points, k.Keys)...)
	e.Kind = k
	l.elements[e.Name] = element.Declared{Kind: k.Name}
	l.list, l.Elements = append(l.list, e), append(l.Elements, e.Element)
	if k.Owns {
		e.OwnNode = len(l.Network.Nodes)
		l.nodes[e.Name] = e.OwnNode
		l.Network.Nodes = append(l.Network.Nodes, network.Node{Name: e.Name, At: e.At, Owner: k.Name, Domain: k.Itself, By: e.Name})
	}
	if k.Early != nil {
		first := len(l.Network.Nodes)
		k.Early(e.Element)
		for i, n := range l.Network.Nodes[first:] {
			l.nodes[n.Name] = first + i
		}
	}
	if k.Gives != "" {
		u, _ := units.Parse(k.Gives)
		e.OwnSignal = len(l.Network.Signals)
		l.provided[e.Name] = e.OwnSignal
		l.Network.Signals = append(l.Network.Signals, network.Signal{Name: e.Name, Unit: u, At: e.At, Read: true})
	}
}
