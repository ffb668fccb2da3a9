package plantfile

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"lockstep/model/network"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// scope is where names are looked up: the plant, or one use of an assembly.
type scope struct {
	assembly string // its name; "" for the plant
	prefix   string // of the names of elements and nodes in it: "left."
	params   map[string]units.Value
	signals  map[string]binding // signals handed in
	flanges  map[string]binding // names that mean nodes outside
	outer    *scope
	depth    int
}

// binding is what a use hands to its assembly.
type binding struct {
	element string // that hands it in
	name    string // of the node
	what    string
	field   syntax.Field
	scope   *scope
}

// definition is an entry of the section assemblies.
type definition struct {
	name       string
	at         network.Pos
	parameters []syntax.Field
	signals    []syntax.Field
	flanges    []syntax.Field
	elements   []syntax.Field
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

func (l *loader) readAssemblies(f syntax.Field) {
	l.assemblies, l.used = map[string]*definition{}, map[string]bool{}
	for _, f := range l.optional(f, "assemblies") {
		what := fmt.Sprintf("assembly %q", f.Key)
		if !units.IsName(f.Key, false) {
			l.Fail(f.KeyAt, "%s: not a name (letters, digits and _)", what)
		}
		for _, k := range l.kinds {
			if k.Name == f.Key {
				l.Fail(f.KeyAt, "%s: an element type has the same name", what)
			}
		}
		d := &definition{name: f.Key, at: f.KeyAt}
		entries := l.Entries(f.Node, f.At, what)
		l.CheckKeys(entries, what, "parameters", "signals", "flanges", "elements")
		for _, g := range entries {
			switch g.Key {
			case "parameters":
				d.parameters = l.optional(g, what+": parameters")
			case "signals":
				d.signals = l.formal(g, what+": signals")
			case "flanges":
				d.flanges = l.formal(g, what+": flanges")
			default:
				d.elements = l.Entries(g.Node, g.At, what+": elements")
			}
		}
		if len(d.elements) == 0 {
			l.Fail(f.KeyAt, "%s: it has no elements", what)
		}
		taken := []string{"type"}
		for _, list := range [][]syntax.Field{d.parameters, d.signals, d.flanges} {
			for _, g := range list {
				if slices.Contains(taken, g.Key) || g.Key == "pi" || !units.IsName(g.Key, false) {
					l.Fail(g.KeyAt, "%s: %q is taken, or not a name (letters, digits and _)", what, g.Key)
				}
				taken = append(taken, g.Key)
			}
		}
		l.assemblies[f.Key] = d
	}
}

// formal reads a list of names.
func (l *loader) formal(f syntax.Field, what string) []syntax.Field {
	var list []syntax.Field
	for _, n := range l.Items(f.Node, f.At, what) {
		at := syntax.StartOf(n)
		list = append(list, syntax.Field{Key: l.Text(syntax.Field{At: at, Node: n}, what), KeyAt: at, At: at})
	}
	return list
}

// use expands an assembly in the place of an element.
func (l *loader) use(e *entry, d *definition, at network.Pos, entries []syntax.Field) {
	what := e.What()
	if d.open {
		l.Fail(at, "%s: assembly %q contains itself", what, d.name)
		return
	}
	outer := e.within
	s := &scope{
		assembly: d.name, prefix: e.Name + ".", outer: outer, depth: outer.depth + 1,
		signals: map[string]binding{}, flanges: map[string]binding{}, params: map[string]units.Value{},
	}
	if s.depth > maxNesting {
		l.Fail(at, "%s: assemblies are nested deeper than %d", what, maxNesting)
		return
	}
	known := []string{"type"}
	for _, list := range [][]syntax.Field{d.flanges, d.signals, d.parameters} {
		for _, g := range list {
			known = append(known, g.Key)
		}
	}
	for _, f := range entries {
		if !slices.Contains(known, f.Key) {
			l.Fail(f.KeyAt, "%s: assembly %q: unknown key %q%s; known: %s", what, d.name, f.Key,
				units.DidYouMean(f.Key, known), strings.Join(known, ", "))
			return
		}
	}
	for i, list := range [][]syntax.Field{d.flanges, d.signals} {
		for _, g := range list {
			f, ok := e.Fields[g.Key]
			if !ok {
				l.Fail(e.At, "%s: assembly %q needs %s (%s)", what, d.name, g.Key, [...]string{"the name of a node", "a value over time"}[i])
				return
			}
			b := binding{element: e.Name, what: what + ": " + g.Key, field: f, scope: outer}
			if i == 0 {
				b.name = l.Text(f, b.what)
				s.flanges[g.Key] = b
			} else {
				s.signals[g.Key] = b
			}
		}
	}
	l.bind(e, d, s)
	l.used[e.Name] = true
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
		what := fmt.Sprintf("assembly %q: parameter %q", d.name, p.Key)
		given, ok := e.Fields[p.Key]
		text, _ := syntax.ScalarText(p.Node)
		missing := text == ""
		switch {
		case ok:
			v := l.parameter(given, e.What()+": "+p.Key, e.within.params)
			if !missing && l.Err == nil {
				base := l.parameter(p, what, s.params)
				if v, ok = v.Like(base); !ok {
					e.Fail(given.At, "%s: %s: unit %s does not fit, the assembly has %s", e.What(), p.Key, v.Spelled(), base.Spelled())
				}
			}
			s.params[p.Key] = v
		case missing:
			e.Fail(e.At, "%s: assembly %q needs parameter %s", e.What(), d.name, p.Key)
		default:
			s.params[p.Key] = l.parameter(p, what, s.params)
		}
	}
}

// parameter evaluates a parameter.
func (l *loader) parameter(f syntax.Field, what string, known map[string]units.Value) units.Value {
	v, err := units.Evaluate(l.Text(f, what), known)
	if err == nil && (math.IsNaN(v.SI) || math.IsInf(v.SI, 0)) {
		err = fmt.Errorf("%g is not a finite number", v.SI)
	}
	if err != nil {
		l.Fail(f.At, "%s: %s%s", what, l.explain(err), orderHint(err))
	}
	l.asked[f.Node] = units.Wanted{}
	if !v.Bare {
		l.asked[f.Node] = units.Wanted{Unit: units.Unit{Dim: v.Dim, Factor: 1}}
	}
	return v
}
