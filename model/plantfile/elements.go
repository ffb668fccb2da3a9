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
	for _, early := range []bool{true, false} { // bodies first, since others ask where they are
		for _, e := range l.Elements {
			if early == (e.Kind.Early != nil) {
				d := e.Kind.Read(e)
				d.Kind, d.Named = e.Kind.Name, e.Named
				l.elements[e.Name] = d
			}
		}
	}

	l.checkNodes()
}

// expand reads the elements of the file, or of an assembly in it, to the list of the loader.
func (l *loader) expand(list []yamlfile.Field, s *scope) {
	for _, f := range list {
		if len(l.Elements) >= maxElements {
			l.FailAt(f.KeyAt, "more than %d elements", maxElements)
		}
		e := &element.Element{
			Reader: &l.Reader, Plant: l.Plant, Namespace: s,
			Name: s.prefix + f.Key, Assembly: s.assembly, At: f.KeyAt, Fields: map[string]yamlfile.Field{},
			Nodes: map[string]int{}, Named: map[string]element.Reading{}, OwnSignal: -1,
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

// readKind reads an element's type and keys, and makes its node if it is one.
func (l *loader) readKind(e *element.Element, in *scope, entries []yamlfile.Field) {
	var names []string
	for _, k := range l.kinds {
		names = append(names, k.Name)
	}
	names = append(names, slices.Sorted(maps.Keys(l.assemblies))...)
	t, ok := e.Fields["type"]
	name := l.Text(t, e.What()+": type")
	i := slices.Index(names, name)
	hint := units.Meant(name, names)
	if hint == "" {
		hint = "; known are " + strings.Join(names, ", ")
	}
	switch {
	case !ok:
		e.Refuse(e.At, "type is missing; such as %s, ...", strings.Join(names[:8], ", "))
	case i < 0:
		e.Refuse(t.At, "unknown type %q%s", name, hint)
	}

	if i >= len(l.kinds) {
		in.use(e, l.assemblies[name], t.At, entries)
		return
	}

	k := &l.kinds[i]
	l.CheckKeys(entries, fmt.Sprintf("%s: %s", e.What(), k.Name), k.Keys()...)
	e.Kind = k
	l.elements[e.Name] = element.Declared{Kind: k.Name}
	l.Elements = append(l.Elements, e)
	if k.Owns {
		n := network.Node{Name: e.Name, At: e.At, Owner: k.Name, Domain: k.Itself, By: e.Name}
		e.OwnNode = network.Add(&l.Network.Nodes, n)
		l.nodes[e.Name] = e.OwnNode
	}

	if k.Early != nil {
		first := len(l.Network.Nodes)
		k.Early(e)
		for i, n := range l.Network.Nodes[first:] {
			l.nodes[n.Name] = first + i
		}
	}

	if k.Gives != "" {
		s := network.Signal{Name: e.Name, Unit: units.Want(k.Gives).Unit, At: e.At, Read: true}
		e.OwnSignal = network.Add(&l.Network.Signals, s)
		l.provided[e.Name] = e.OwnSignal
	}
}
