package model

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// scope is where names are looked up: the plant, or one use of an assembly.
type scope struct {
	assembly string // its name; "" for the plant
	prefix   string // of the names of elements and nodes in it: "left."
	params   map[string]value
	signals  map[string]binding // signals handed in
	flanges  map[string]binding // names that mean nodes outside
	outer    *scope
	depth    int
}

// binding is what a use hands to its assembly.
type binding struct {
	name  string // of the node
	what  string
	field field
	scope *scope
}

// definition is an entry of the section assemblies.
type definition struct {
	name       string
	at         pos
	parameters []field
	signals    []field
	flanges    []field
	elements   []field
	open       bool // being expanded
}

const maxNesting = 8

// full is a name in the whole plant; a flange that was handed in may have a node of a body
// or its flanges behind a dot.
func (s *scope) full(name string) string {
	if outer, rest, ok := s.handed(name); ok {
		return s.outer.full(outer.name + rest)
	}
	return s.prefix + name
}

func (l *loader) readAssemblies(f field) {
	l.assemblies, l.used = map[string]*definition{}, map[string]bool{}
	for _, f := range l.optional(f, "assemblies") {
		what := fmt.Sprintf("assembly %q", f.key)
		if !isName(f.key, false) {
			l.fail(f.keyAt, "%s: not a name (letters, digits and _)", what)
		}
		for _, k := range l.kinds {
			if k.name == f.key {
				l.fail(f.keyAt, "%s: an element type has the same name", what)
			}
		}
		d := &definition{name: f.key, at: f.keyAt}
		entries := l.entries(f.node, f.at, what)
		l.known(entries, what, "parameters", "signals", "flanges", "elements")
		for _, g := range entries {
			switch g.key {
			case "parameters":
				d.parameters = l.optional(g, what+": parameters")
			case "signals":
				d.signals = l.formal(g, what+": signals")
			case "flanges":
				d.flanges = l.formal(g, what+": flanges")
			default:
				d.elements = l.entries(g.node, g.at, what+": elements")
			}
		}
		if len(d.elements) == 0 {
			l.fail(f.keyAt, "%s: it has no elements", what)
		}
		taken := []string{"type"}
		for _, list := range [][]field{d.parameters, d.signals, d.flanges} {
			for _, g := range list {
				if slices.Contains(taken, g.key) || g.key == "pi" || !isName(g.key, false) {
					l.fail(g.keyAt, "%s: %q is taken, or not a name (letters, digits and _)", what, g.key)
				}
				taken = append(taken, g.key)
			}
		}
		l.assemblies[f.key] = d
	}
}

// formal reads a list of names.
func (l *loader) formal(f field, what string) []field {
	var list []field
	for _, n := range l.items(f.node, f.at, what) {
		at := startOf(n)
		list = append(list, field{key: l.text(field{at: at, node: n}, what), keyAt: at, at: at})
	}
	return list
}

// use expands an assembly in the place of an element.
func (l *loader) use(e *entry, d *definition, at pos, entries []field) {
	what := e.what()
	if d.open {
		l.fail(at, "%s: assembly %q contains itself", what, d.name)
		return
	}
	outer := e.within
	s := &scope{
		assembly: d.name, prefix: e.name + ".", outer: outer, depth: outer.depth + 1,
		signals: map[string]binding{}, flanges: map[string]binding{}, params: map[string]value{},
	}
	if s.depth > maxNesting {
		l.fail(at, "%s: assemblies are nested deeper than %d", what, maxNesting)
		return
	}
	known := []string{"type"}
	for _, list := range [][]field{d.flanges, d.signals, d.parameters} {
		for _, g := range list {
			known = append(known, g.key)
		}
	}
	for _, f := range entries {
		if !slices.Contains(known, f.key) {
			l.fail(f.keyAt, "%s: assembly %q: unknown key %q%s; known: %s", what, d.name, f.key,
				didYouMean(f.key, known), strings.Join(known, ", "))
			return
		}
	}
	for i, list := range [][]field{d.flanges, d.signals} {
		for _, g := range list {
			f, ok := e.fields[g.key]
			if !ok {
				l.fail(e.at, "%s: assembly %q needs %s (%s)", what, d.name, g.key, [...]string{"the name of a node", "a value over time"}[i])
				return
			}
			b := binding{what: what + ": " + g.key, field: f, scope: outer}
			if i == 0 {
				b.name = l.text(f, b.what)
				s.flanges[g.key] = b
			} else {
				s.signals[g.key] = b
			}
		}
	}
	l.bind(e, d, s)
	l.used[e.name] = true
	d.open = true
	l.expand(d.elements, s)
	d.open = false
}

// bind evaluates the parameters of a use: those given in the scope around it, the
// others as the assembly says.
func (l *loader) bind(e *entry, d *definition, s *scope) {
	for name, v := range l.globals {
		s.params[name] = v
	}
	for _, p := range d.parameters {
		what := fmt.Sprintf("assembly %q: parameter %q", d.name, p.key)
		given, ok := e.fields[p.key]
		text, _ := ScalarText(p.node)
		missing := text == ""
		switch {
		case ok:
			v := l.parameter(given, e.what()+": "+p.key, e.within.params)
			if !missing && l.err == nil {
				base := l.parameter(p, what, s.params)
				if v, ok = v.like(base); !ok {
					l.fail(given.at, "%s: %s: unit %s does not fit, the assembly has %s", e.what(), p.key, v.spelled(), base.spelled())
				}
			}
			s.params[p.key] = v
		case missing:
			l.fail(e.at, "%s: assembly %q needs parameter %s", e.what(), d.name, p.key)
		default:
			s.params[p.key] = l.parameter(p, what, s.params)
		}
	}
}

// parameter evaluates a parameter.
func (l *loader) parameter(f field, what string, known map[string]value) value {
	v, err := evaluate(l.text(f, what), known)
	if err == nil && (math.IsNaN(v.v) || math.IsInf(v.v, 0)) {
		err = fmt.Errorf("%g is not a finite number", v.v)
	}
	if err != nil {
		l.fail(f.at, "%s: %s%s", what, l.explain(err), orderHint(err))
	}
	l.asked[f.node] = wanted{}
	if !v.bare {
		l.asked[f.node] = wanted{Unit: Unit{Dim: v.dim, Factor: 1}}
	}
	return v
}
