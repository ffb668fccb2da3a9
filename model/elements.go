package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// kind is an element type: the nodes it touches, its keys, and how its entry becomes
// part of the plant.
type kind struct {
	name    string
	owns    bool   // it is a node itself, of domain itself
	itself  domain // of the node it owns
	flanges []flange
	frames  []string // keys that name points of bodies
	keys    []string
	gives   string           // unit of the signal of its own name, "" where it has none
	early   func(e *element) // makes the nodes of a kind that owns several
	read    func(e *element) declared
}

// flange is a key that names a node.
type flange struct {
	key      string
	domain   domain // anyDomain: that of the other flanges of the element
	optional bool   // left out, it is ground
}

// ends are the flanges of an element between two nodes; onSupport of one on a node
// and a support that may be left out.
func ends(d domain) []flange { return []flange{{"a", d, false}, {"b", d, false}} }

func onSupport(d domain) []flange {
	return []flange{{"flange", d, false}, {"support", d, true}}
}

func kinds() []kind {
	var all []kind
	for _, list := range [][]kind{basicKinds(), gearKinds(), frictionKinds(), driveKinds(), loadKinds(), machineKinds(), gapKinds(), regionKinds(), tyreKinds(), harmonicKinds(), hydraulicKinds(), pneumaticKinds(), planarKinds(), railKinds()} {
		all = append(all, list...)
	}
	return all
}

// allKinds is in the order of the package comment.
var allKinds = kinds()

// element is one entry of the section elements while it is read.
type element struct {
	*loader
	name    string // with the names of the sub-assemblies around it: left.brake
	kind    *kind
	at      pos
	fields  map[string]field
	within  *scope
	nodes   map[string]int // by flange key
	domain  domain         // of its flanges
	between row            // w_b - w_a, or w_flange - w_support
	named   map[string]reading
}

// rank orders the reading of elements: bodies first, since others ask where they are.
func (k *kind) rank() int {
	if k.early != nil {
		return 0
	}
	return 1
}

func (e *element) what() string {
	if e.within.assembly != "" {
		return fmt.Sprintf("element %q of assembly %q", e.name, e.within.assembly)
	}
	return fmt.Sprintf("element %q", e.name)
}

func (l *loader) readElements(f field, start pos) {
	l.elements, l.nodes, l.provided, l.frames = map[string]declared{}, map[string]int{}, map[string]int{}, map[string]*frame{}
	if f.key == "" {
		l.fail(start, "plant file: elements: is missing; there is nothing to simulate")
		return
	}
	l.expand(l.fields(f.node, f.at, "elements"), l.scope)
	if l.connect(); l.err != nil {
		return
	}
	top := l.scope
	slices.SortStableFunc(l.list, func(a, b *element) int { return a.kind.rank() - b.kind.rank() })
	for _, e := range l.list {
		l.scope = e.within
		d := e.kind.read(e)
		d.kind, d.named = e.kind.name, e.named
		l.elements[e.name] = d
		if l.err != nil {
			return
		}
	}
	l.scope = top
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
		e := &element{loader: l, name: s.prefix + f.key, at: f.keyAt, fields: map[string]field{}, within: s,
			nodes: map[string]int{}, named: map[string]reading{}}
		if !isName(f.key, false) {
			l.fail(e.at, "%s: not a name for an element (letters, digits and _)", e.what())
		}
		entries := l.fields(f.node, f.at, e.what())
		for _, f := range entries {
			e.fields[f.key] = f
		}
		l.readKind(e, entries)
	}
}

// readKind reads an element's type and keys, and makes its node if it is one.
func (l *loader) readKind(e *element, entries []field) {
	var names []string
	for _, k := range allKinds {
		names = append(names, k.name)
	}
	names = append(names, slices.Sorted(maps.Keys(l.assemblies))...)
	t, ok := e.fields["type"]
	name := l.text(t, e.what()+": type")
	i := indexOf(names, name)
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
	if i >= len(allKinds) {
		l.use(e, l.assemblies[name], t.at, entries)
		return
	}
	k := &allKinds[i]
	keys := []string{"type"}
	for _, f := range k.flanges {
		keys = append(keys, f.key)
	}
	l.known(entries, fmt.Sprintf("%s: %s", e.what(), k.name), slices.Concat(keys, k.frames, k.keys)...)
	e.kind = k
	l.elements[e.name] = declared{kind: k.name}
	l.list = append(l.list, e)
	if k.owns {
		l.nodes[e.name] = len(l.plant.nodes)
		l.plant.nodes = append(l.plant.nodes, node{name: e.name, at: e.at, owner: k.name, domain: k.itself, by: e.name})
	}
	if k.early != nil {
		k.early(e)
	}
	if k.gives != "" {
		u, _ := Units(k.gives)
		l.provided[e.name] = len(l.plant.signals)
		l.plant.signals = append(l.plant.signals, signal{name: e.name, unit: u, at: e.at, read: true})
	}
}

// number reads a required parameter.
func (e *element) number(key, unit, meaning string) (float64, field) {
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (%s, %s)", e.what(), e.kind.name, key, meaning, unit)
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

func (e *element) has(key string) bool {
	_, ok := e.fields[key]
	return ok
}

func (e *element) value(f field, unit string) float64 {
	u, _ := Units(unit)
	return e.quantity(f, e.what()+": "+f.key, wanted{u, unit})
}

// need reads a required parameter > 0; atLeastZero one >= 0 with a default, above0 one
// > 0 with a default.
func (e *element) need(key, unit, meaning string) float64 {
	x, f := e.number(key, unit, meaning)
	e.positive(x, f, meaning+" "+key, unit)
	return x
}

func (e *element) atLeastZero(key, unit string, missing float64) float64 {
	x, f := e.option(key, unit, missing)
	e.notNegative(x, f, key, unit)
	return x
}

func (e *element) above0(key, unit string, missing float64) float64 {
	x, f := e.option(key, unit, missing)
	e.positive(x, f, key, unit)
	return x
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

// drive reads a value over time: an index into Plant.signals.
func (e *element) drive(f field, unit string) int {
	u, _ := Units(unit)
	return e.signal(f, e.what()+": "+f.key, e.name+"."+f.key, wanted{u, unit})
}

// command reads a value over time that must be there.
func (e *element) command(key, unit, meaning string) int {
	f, ok := e.fields[key]
	if !ok {
		e.fail(e.at, "%s: %s needs %s (%s, %s, or the name of an input)", e.what(), e.kind.name, key, meaning, unit)
		return 0
	}
	return e.drive(f, unit)
}

// per chooses the spelling of a unit by the element's domain.
func (e *element) per(rot, trans string) string {
	if e.domain == translational {
		return trans
	}
	return rot
}
