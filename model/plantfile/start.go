package plantfile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/network"
	"lockstep/model/units"
)

// startGroup is what a start preset gives: the one of a quantity, or one choice.
type startGroup struct {
	what   string                    // location in the file, for errors
	fields map[string]yamlfile.Field // set, locked, inputs
	params map[string]units.Value    // names in its expressions
	by     string                    // assignment that chooses the group; "": it is not chosen
}

// groupKeys are the keys of a startGroup.
var groupKeys = []string{"set", "locked", "inputs"}

// Start chooses presets of the section start for all later calls of Load, which checks them. Their
// start conditions replace those of the elements.
func (d *Draft) Start(list []Assignment) { d.start = list }

// readStart reads the presets, and gives inputs and elements what the chosen ones say.
func (l *loader) readStart(f yamlfile.Field) {
	l.startParams, l.startKeys = map[yamlfile.Node]map[string]units.Value{}, map[string][]yamlfile.Field{}
	entries := l.optional(f, "start")
	var names []string
	for _, f := range entries {
		names = append(names, f.Key)
	}
	for i, a := range l.start {
		switch {
		case !slices.Contains(names, a.Name):
			l.FailAt(f.At, "start %v: the plant has no start preset %q%s; it has %s",
				a.located(), a.Name, units.Meant(a.Name, names), cmp.Or(strings.Join(names, ", "), "none"))
		case slices.ContainsFunc(l.start[:i], func(b Assignment) bool { return a.Name == b.Name }):
			l.FailAt(f.At, "start %v: %s is given twice", a.located(), a.Name)
		}
	}

	for _, f := range entries {
		what := fmt.Sprintf("start: %s", f.Key)
		if _, taken := l.global.params[f.Key]; taken || f.Key == "pi" || !units.IsName(f.Key, false) {
			l.FailAt(f.KeyAt, "%s: the name is that of a parameter, or not a name (letters, digits and _)", what)
		}
		isUnit := func(g yamlfile.Field) bool { return g.Key == "unit" }
		if slices.ContainsFunc(l.FieldsOf(f, what), isUnit) {
			l.readStartQuantity(f, what)
		} else {
			l.readStartChoices(f, what)
		}
	}

	given := map[string]string{}
	for _, g := range l.groups {
		l.chooseGroup(g, given)
	}
}

// chosen returns the assignment to a preset. If another preset is chosen, it is the default of this one.
func (l *loader) chosen(name string, missing yamlfile.Field) (a Assignment, ok bool) {
	if i := slices.IndexFunc(l.start, func(a Assignment) bool { return a.Name == name }); i >= 0 {
		return l.start[i], true
	}
	if missing.IsMissing() || len(l.start) == 0 {
		return a, false
	}
	return Assignment{Name: name, Value: l.Text(missing, "start: "+name+": default")}, true
}

// readStartQuantity reads "v: {unit: km/h, min: 0, max: 60, set: {car.v_start: v}}".
func (l *loader) readStartQuantity(f yamlfile.Field, what string) {
	g := startGroup{what: what, params: maps.Clone(l.global.params)}
	g.fields = l.Section(f, what, append([]string{"unit", "min", "max", "default"}, groupKeys...)...)
	u := g.fields["unit"]
	want, err := units.ParseWanted(l.Text(u, what+": unit"))
	if err != nil {
		l.FailAt(u.At, "%s: %s", what, units.Reason(err))
	}
	port := units.Port{Name: f.Key, Unit: want.SI, Declared: declared(want)}
	if l.readRange(&port, g.fields, what, want); math.IsInf(port.Min, 0) || math.IsInf(port.Max, 0) {
		l.FailAt(f.At, "%s: a quantity needs min and max", what)
	}
	l.Network.Presets = append(l.Network.Presets, network.Preset{Port: port})

	v := units.Value{SI: port.Max, Dim: want.Dim, Bare: want.TakesBare()}
	if a, ok := l.chosen(f.Key, g.fields["default"]); ok {
		typed, err := units.Evaluate(a.Value, l.global.params)
		if err != nil {
			l.FailAt(f.KeyAt, "start %v: %s", a.located(), l.global.explain(err))
		}
		if v.SI, err = typed.Typed(a.Value, want); err != nil {
			l.FailAt(f.KeyAt, "start %v: %s", a.located(), units.Reason(err))
		}
		if !(v.SI >= port.Min && v.SI <= port.Max) {
			l.FailAt(f.KeyAt, "start %v: %s is outside %s", a.located(), want.Format(v.SI), want.FormatRange(port.Min, port.Max))
		}
		g.by = a.String()
	}

	g.params[f.Key] = v
	l.groups = append(l.groups, g)
}

// readStartChoices reads "gear: {default: 1, 1: {locked: [clutch1]}, 2: {locked: [clutch2]}}".
func (l *loader) readStartChoices(f yamlfile.Field, what string) {
	var names []string
	var missing yamlfile.Field
	first, driven := len(l.groups), map[string]bool{} // inputs that the choices name
	for _, c := range l.FieldsOf(f, what) {
		if c.Key == "default" {
			missing = c
			continue
		}
		g := startGroup{what: what + ": " + c.Key, params: l.global.params}
		g.fields = l.Section(c, g.what, groupKeys...)
		names, l.groups = append(names, c.Key), append(l.groups, g)
		for _, in := range l.optional(g.fields["inputs"], g.what+": inputs") {
			driven[in.Key] = true
		}
	}

	l.Network.Presets = append(l.Network.Presets, network.Preset{Port: units.Port{Name: f.Key}, Choices: names})
	a, ok := l.chosen(f.Key, missing)
	if !ok {
		return
	}
	i := slices.Index(names, a.Value)
	if i < 0 {
		l.FailAt(f.KeyAt, "start %v: %s has no choice %q%s; it has %s",
			a.located(), f.Key, a.Value, units.Meant(a.Value, names), strings.Join(names, ", "))
	}
	l.groups[first+i].by = a.String()
	for name := range driven {
		if i, ok := l.inputs[name]; ok {
			l.Network.Signals[i].Source = network.Constant(l.Network.Inputs[i].DeclaredUnit().Zero)
		}
	}
}

// chooseGroup checks the inputs of a group, and gives inputs and elements what a chosen group says. given
// holds the group that gives a value, by the name of the value.
func (l *loader) chooseGroup(g startGroup, given map[string]string) {
	take := func(f yamlfile.Field) bool {
		l.startParams[f.Node] = g.params
		if g.by == "" {
			return false
		}
		if other, twice := given[f.Key]; twice {
			l.FailAt(f.KeyAt, "%s: start %s gives %s, too", g.what, other, f.Key)
		}
		given[f.Key] = g.by
		return true
	}

	for _, f := range l.optional(g.fields["inputs"], g.what+": inputs") {
		what := fmt.Sprintf("%s: inputs: %s", g.what, f.Key)
		i, ok := l.inputs[f.Key]
		if !ok {
			l.FailAt(f.KeyAt, "%s: the plant has no such input%s", what, units.Meant(f.Key, slices.Collect(maps.Keys(l.inputs))))
		}
		use, port := take(f), l.Network.Inputs[i].Port
		want := port.DeclaredUnit()
		v := l.global.sized(f, what, want)
		if !(v >= port.Min && v <= port.Max) {
			l.FailAt(f.At, "%s: %s is outside %s", what, want.Format(v), want.FormatRange(port.Min, port.Max))
		}
		if use {
			l.Network.Signals[i].Source = network.Constant(v)
		}
	}

	for _, f := range l.optional(g.fields["set"], g.what+": set") {
		if take(f) {
			name, key := cutKey(f.Key)
			f.Key = key
			l.startKeys[name] = append(l.startKeys[name], f)
		}
	}
}

// cutKey parts "left.rim.w_start" into the name of the element and its key.
func cutKey(s string) (name, key string) {
	i := max(0, strings.LastIndexByte(s, '.'))
	return s[:i], strings.TrimPrefix(s[i:], ".")
}

// withStartKeys returns the entries of an element with those of the chosen presets.
func (l *loader) withStartKeys(e *element.Element, entries []yamlfile.Field) []yamlfile.Field {
	list := l.startKeys[e.Name]
	for _, f := range list {
		e.Fields[f.Key] = f
	}
	kept := slices.DeleteFunc(slices.Clone(entries), func(f yamlfile.Field) bool {
		return slices.ContainsFunc(list, func(g yamlfile.Field) bool { return f.Key == g.Key })
	})
	return append(kept, list...)
}

// finishStart checks the elements and keys that the presets name, and orders the start conditions: those
// of chosen presets before those of the elements, which give way.
func (l *loader) finishStart() {
	starts := l.Network.Starts
	for _, g := range l.groups {
		for _, f := range l.optional(g.fields["set"], g.what+": set") {
			name, key := l.checkStartKey(&g, f)
			for i := range starts {
				if s := &starts[i]; g.by != "" && s.Element == name && s.Key == key {
					s.Preset = g.by
				}
			}
		}
		if f, ok := g.fields["locked"]; ok {
			for _, item := range l.Items(f, g.what+": locked") {
				if c := l.locked(&g, item); g.by != "" {
					starts = append(starts, c)
				}
			}
		}
	}

	if len(l.start) > 0 {
		order := func(s network.StartCondition) int {
			switch {
			case s.Preset != "":
				return 1
			case s.Yields:
				return 2
			}
			return 0
		}
		for i := range starts {
			starts[i].Yields = starts[i].Preset == "" && strings.HasSuffix(starts[i].Key, "_start")
		}
		slices.SortStableFunc(starts, func(a, b network.StartCondition) int { return order(a) - order(b) })
	}
	l.Network.Starts = starts
}

// checkStartKey checks an entry of set: ELEMENT.KEY, and the unit of its value.
func (l *loader) checkStartKey(g *startGroup, f yamlfile.Field) (name, key string) {
	what := g.what + ": set: " + f.Key
	name, key = cutKey(f.Key)
	i := slices.IndexFunc(l.Elements, func(e *element.Element) bool { return e.Name == name })
	if i < 0 {
		l.FailAt(f.KeyAt, "%s: the plant has no element %q%s", what, name, units.Meant(name, slices.Collect(maps.Keys(l.elements))))
	}
	e := l.Elements[i]
	var keys []string
	for _, p := range e.Kind.Parameters {
		p = p.In(e.Domain)
		if strings.HasSuffix(p.Key, "_start") {
			keys = append(keys, p.Key)
		}
		if p.Key == key && strings.HasSuffix(key, "_start") {
			l.global.sized(f, what, units.Want(p.Unit))
			return name, key
		}
	}

	has := "no start value"
	if len(keys) > 0 {
		has = strings.Join(keys, ", ")
	}
	l.FailAt(f.KeyAt, "%s: %q is not a start value of type %s, which has %s", what, key, e.Kind.Name, has)
	return "", ""
}

// locked returns the condition that a friction element does not slip.
func (l *loader) locked(g *startGroup, f yamlfile.Field) network.StartCondition {
	name := l.Text(f, g.what+": locked")
	var known []string
	for _, k := range l.Network.Frictions {
		if known = append(known, k.Name); k.Name == name {
			unit, key := "rad/s", "w_rel"
			if k.Translational {
				unit, key = "m/s", "v_rel"
			}
			return network.StartCondition{Element: name, Key: key, At: f.At, Row: k.Rel, Speed: true, Unit: unit, Preset: g.by}
		}
	}

	l.FailAt(f.At, "%s: locked: the plant has no friction element %q%s", g.what, name, units.Meant(name, known))
	return network.StartCondition{}
}
