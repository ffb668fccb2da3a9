package plantfile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// scope resolves names: those of the plant, or of one use of an assembly.
type scope struct {
	*loader
	assembly string // name of the assembly; "": the plant
	prefix   string // prefix of the names of its elements and nodes: "left."
	params   map[string]units.Value
	signals  map[string]binding // signals that the use passes
	flanges  map[string]binding // flanges that the use connects
	outer    *scope
	depth    int
}

// binding is a signal or flange that a use passes to its assembly.
type binding struct {
	name  string // name of the node in the scope around the use
	what  string
	field yamlfile.Field
	scope *scope
}

// definition is an entry of the section assemblies.
type definition struct {
	name       string
	parameters []yamlfile.Field
	signals    []yamlfile.Field
	flanges    []yamlfile.Field
	elements   []yamlfile.Field
	open       bool // the assembly is being expanded
}

const maxNesting = 8

// FullName returns a name in the whole plant. A flange of the assembly may continue behind a dot with
// a node of a body.
func (s *scope) FullName(name string) string {
	if outer, rest, ok := s.flangeNamed(name); ok {
		return s.outer.FullName(outer.name + rest)
	}
	return s.prefix + name
}

func (l *loader) readAssemblies(f yamlfile.Field) {
	l.assemblies, l.used = map[string]*definition{}, map[string]bool{}
	for _, f := range l.optional(f, "assemblies") {
		what := fmt.Sprintf("assembly %q", f.Key)
		if !units.IsName(f.Key, false) {
			l.FailAt(f.KeyAt, "%s: not a name (letters, digits and _)", what)
		}
		if slices.ContainsFunc(l.kinds, func(k element.Kind) bool { return k.Name == f.Key }) {
			l.FailAt(f.KeyAt, "%s: an element type has the same name", what)
		}
		d := &definition{name: f.Key}
		part := l.Section(f, what, "parameters", "signals", "flanges", "elements")
		d.parameters = l.optional(part["parameters"], what+": parameters")
		d.signals = l.formal(part["signals"], what+": signals")
		d.flanges = l.formal(part["flanges"], what+": flanges")
		d.elements = l.optional(part["elements"], what+": elements")
		if len(d.elements) == 0 {
			l.FailAt(f.KeyAt, "%s: it has no elements", what)
		}
		taken := []string{"type"}
		for _, g := range slices.Concat(d.parameters, d.signals, d.flanges) {
			if slices.Contains(taken, g.Key) || g.Key == "pi" || !units.IsName(g.Key, false) {
				l.FailAt(g.KeyAt, "%s: %q is taken, or not a name (letters, digits and _)", what, g.Key)
			}
			taken = append(taken, g.Key)
		}

		l.assemblies[f.Key] = d
	}
}

// formal reads a list of names.
func (l *loader) formal(f yamlfile.Field, what string) []yamlfile.Field {
	if f.Key == "" {
		return nil
	}
	var list []yamlfile.Field
	for _, g := range l.Items(f, what) {
		list = append(list, yamlfile.Field{Key: l.Text(g, what), KeyAt: g.At, At: g.At})
	}
	return list
}

// use adds the elements of an assembly in place of an element.
func (outer *scope) use(e *element.Element, d *definition, at network.Pos, entries []yamlfile.Field) {
	what := e.What()
	if d.open {
		outer.FailAt(at, "%s: assembly %q contains itself", what, d.name)
	}
	s := &scope{
		loader: outer.loader, assembly: d.name, prefix: e.Name + ".", outer: outer, depth: outer.depth + 1,
		signals: map[string]binding{}, flanges: map[string]binding{}, params: maps.Clone(outer.global.params),
	}
	if s.depth > maxNesting {
		outer.FailAt(at, "%s: assemblies are nested deeper than %d", what, maxNesting)
	}
	known := []string{"type"}
	for _, g := range slices.Concat(d.flanges, d.signals, d.parameters) {
		known = append(known, g.Key)
	}
	outer.CheckKeys(entries, fmt.Sprintf("%s: assembly %q", what, d.name), known...)
	hand := func(key, meaning string) binding {
		f, ok := e.Fields[key]
		if !ok {
			outer.FailAt(e.At, "%s: assembly %q needs %s (%s)", what, d.name, key, meaning)
		}
		return binding{what: what + ": " + key, field: f, scope: outer}
	}

	for _, g := range d.flanges {
		b := hand(g.Key, "the name of a node")
		b.name = outer.Text(b.field, b.what)
		s.flanges[g.Key] = b
	}

	for _, g := range d.signals {
		s.signals[g.Key] = hand(g.Key, "a value over time")
	}
	outer.bind(e, d, s)
	outer.used[e.Name] = true
	d.open = true
	outer.expand(d.elements, s)
	d.open = false
}

// bind evaluates the parameters of a use: given ones in the scope around it, other ones with their
// defaults in the assembly.
func (outer *scope) bind(e *element.Element, d *definition, s *scope) {
	for _, p := range d.parameters {
		what := fmt.Sprintf("assembly %q: parameter %q", d.name, p.Key)
		text, _ := yamlfile.ScalarText(p.Node)
		given, ok := e.Fields[p.Key]
		if !ok && text == "" {
			e.Refuse(e.At, "assembly %q needs parameter %s", d.name, p.Key)
		}
		var base units.Value
		if text != "" {
			base = s.parameter(p, what)
		}
		s.params[p.Key] = base
		if !ok {
			continue
		}
		v := outer.parameter(given, e.What()+": "+p.Key)
		if text != "" {
			if v, ok = v.Like(base); !ok {
				e.Refuse(given.At, "%s: unit %s does not fit, the assembly has %s", p.Key, v.Spelled(), base.Spelled())
			}
		}

		s.params[p.Key] = v
	}
}

// Quantity evaluates a scalar and returns it in SI.
func (s *scope) Quantity(f yamlfile.Field, what string, want units.Wanted) float64 {
	s.asked[f.Node] = want
	text := s.Text(f, what)
	params, preset := s.startParams[f.Node]
	if !preset {
		params = s.params
	}
	v, err := units.Evaluate(text, params)
	if err != nil {
		s.FailAt(f.At, "%s: %s", what, s.explain(err))
	}
	x, err := v.In(want)
	if want.NeedsUnit {
		x, err = v.Typed(text, want)
	}
	switch {
	case errors.As(err, new(*units.MissingUnit)):
		s.FailAt(f.At, "%s: %v", what, err)
	case err != nil:
		s.FailAt(f.At, "%s: %q: %v", what, text, err)
	}
	return x
}

// sized reads a quantity and refuses one that is larger than the sizes of its unit.
func (s *scope) sized(f yamlfile.Field, what string, want units.Wanted) float64 {
	x, most := s.Quantity(f, what, want), units.SizesOf(want.Unit).Most
	if !(math.Abs(x) <= most) {
		s.FailAt(f.At, "%s: %s is outside %s", what, want.Format(x), want.FormatRange(-most, most))
	}
	return x
}

// option reads a quantity of a section as sized does, and returns missing for a missing key.
func (s *scope) option(section map[string]yamlfile.Field, key, what string, want units.Wanted, missing float64) float64 {
	f, ok := section[key]
	if !ok {
		return missing
	}
	return s.sized(f, what+": "+key, want)
}

// parameter evaluates a parameter.
func (s *scope) parameter(f yamlfile.Field, what string) units.Value {
	v, err := units.Evaluate(s.Text(f, what), s.params)
	if err == nil && (math.IsNaN(v.SI) || math.IsInf(v.SI, 0)) {
		err = fmt.Errorf("%g is not a finite number", v.SI)
	}
	if err != nil {
		hint := ""
		if errors.As(err, new(*units.UnknownName)) {
			hint = "; a parameter may use those above it"
		}
		s.FailAt(f.At, "%s: %s%s", what, s.explain(err), hint)
	}

	s.asked[f.Node] = units.Wanted{}
	if !v.Bare {
		s.asked[f.Node] = units.Wanted{Unit: units.Unit{Dim: v.Dim, Factor: 1}}
	}
	return v
}

// explain returns the text of an error; for an unknown name with the nearest known one.
func (s *scope) explain(err error) string {
	var unknown *units.UnknownName
	if !errors.As(err, &unknown) {
		return err.Error()
	}
	known := slices.Sorted(maps.Keys(s.params))
	for _, in := range s.Network.Inputs {
		known = append(known, in.Name)
	}
	known = append(known, slices.Sorted(maps.Keys(s.provided))...)
	return err.Error() + units.Meant(unknown.Name, known)
}

// whole reads a whole number from low to high.
func (s *scope) whole(f yamlfile.Field, what string, low, high int) int {
	v := s.Quantity(f, what, units.Want("1"))
	if !(v >= float64(low) && v <= float64(high) && v == math.Trunc(v)) {
		s.FailAt(f.At, "%s %g is not a whole number from %d to %d", what, v, low, high)
	}
	return int(v)
}
