package plantfile

import (
	"slices"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/units"
)

// resolveUnits finds the units of the signals of elements whose types have GivesAs, before an element
// reads a signal. A unit waits for the units from which it follows. In a loop whose signals all wait, the
// signal whose name comes first has the unit that follows if the open units are 1. The units do not
// depend on the order of the elements.
func (l *loader) resolveUnits() {
	l.unitsOpen = map[int]bool{}
	var open, guessed []*element.Element
	for _, e := range l.Elements {
		if e.Kind.GivesAs != nil {
			l.unitsOpen[e.OwnSignal] = true
			open = append(open, e)
		}
	}
	slices.SortFunc(open, func(a, b *element.Element) int { return strings.Compare(a.Name, b.Name) })
	for len(open) > 0 {
		n, waits := len(open), map[int][]int{}
		open = slices.DeleteFunc(open, func(e *element.Element) bool {
			l.waitsFor = nil
			u, s := e.Kind.GivesAs(e)
			if waits[e.OwnSignal] = l.waitsFor; s == element.UnitOpen {
				return false
			}
			l.setSignalUnit(e, u)
			return true
		})
		if len(open) < n {
			continue
		}
		i := slices.IndexFunc(open, func(e *element.Element) bool { return reaches(waits, e.OwnSignal) })
		u, _ := open[i].Kind.GivesAs(open[i])
		l.setSignalUnit(open[i], u)
		guessed = append(guessed, open[i])
		open = slices.Delete(open, i, i+1)
	}
	for _, e := range guessed {
		is := l.Network.Signals[e.OwnSignal].Unit
		if u, _ := e.Kind.GivesAs(e); u.Dim != is.Dim {
			e.Refuse(e.At, "the units in a loop of signals contradict each other: %s is in %s and in %s", e.Name, is.SI, u.SI)
		}
	}
}

// setSignalUnit sets the unit of the signal of an element.
func (l *loader) setSignalUnit(e *element.Element, u units.Unit) {
	l.Network.Signals[e.OwnSignal].Unit = u
	delete(l.unitsOpen, e.OwnSignal)
}

// reaches reports whether signal i waits for itself, by the signals for which each signal waits.
func reaches(waits map[int][]int, i int) bool {
	seen := map[int]bool{}
	for list := waits[i]; len(list) > 0 && !seen[i]; {
		next := list[len(list)-1]
		if list = list[:len(list)-1]; !seen[next] {
			seen[next] = true
			list = slices.Concat(list, waits[next])
		}
	}
	return seen[i]
}

// ValueUnit returns the unit of a value over time: that of its signal, or of the first value in it that has
// one.
func (in *scope) ValueUnit(f yamlfile.Field, what string) (u units.Unit, s element.UnitState) {
	if text, ok := yamlfile.ScalarText(f.Node); ok {
		return in.scalarUnit(f, text, what)
	}
	switch {
	case yamlfile.IsList(f.Node):
		return firstUnit(in.Items(f, what), what, in.ValueUnit)
	case yamlfile.IsMapping(f.Node):
		return firstUnit(in.FieldsOf(f, what), what, in.entryUnit)
	}
	return u, s
}

// unitOf returns the unit of an entry; what names it in errors.
type unitOf = func(f yamlfile.Field, what string) (units.Unit, element.UnitState)

// firstUnit returns the unit of the first of entries that has one; open if the unit of one of them is.
func firstUnit(list []yamlfile.Field, what string, of unitOf) (u units.Unit, all element.UnitState) {
	for _, g := range list {
		u, s := of(g, what)
		if s == element.UnitKnown {
			return u, s
		}
		all = max(all, s)
	}
	return units.Unit{}, all
}

// entryUnit returns the unit of a value that has an entry of its mapping.
func (in *scope) entryUnit(f yamlfile.Field, what string) (u units.Unit, s element.UnitState) {
	switch f.Key {
	case "product":
		return in.productUnit(f, what)
	case "units":
		if !yamlfile.IsList(f.Node) {
			return u, s
		}
		if list := in.Texts(f, what); len(list) == 2 {
			if w, err := units.ParseWanted(list[1]); err == nil {
				return w.Unit, element.UnitKnown
			}
		}
	case "table":
		if yamlfile.IsList(f.Node) {
			return in.columnUnit(f, what)
		}
	case "sum", "constant", "step", "ramp", "sine", "pulse", "trapezoid", "height", "amplitude", "offset":
		return in.ValueUnit(f, what)
	}
	return u, s
}

// scalarUnit returns the unit of a name or a number.
func (in *scope) scalarUnit(f yamlfile.Field, text, what string) (units.Unit, element.UnitState) {
	if b, ok := in.signals[text]; ok {
		return b.scope.ValueUnit(b.field, b.what)
	}
	if i, _ := in.signalNamed(text); i >= 0 {
		if in.unitsOpen[i] {
			in.waitsFor = append(in.waitsFor, i)
			return units.Unit{}, element.UnitOpen
		}
		return in.Network.Signals[i].Unit, element.UnitKnown
	}
	v, err := units.Evaluate(text, in.params)
	if err != nil || v.Bare {
		return units.Unit{}, element.UnitBare
	}
	u, err := units.Parse(v.Spelled())
	if err != nil {
		return units.SIUnit(v.Dim), element.UnitKnown
	}
	return units.Unit{Factor: 1, Dim: u.Dim, SI: u.SI}, element.UnitKnown
}

// productUnit returns the unit of a product; factors without a unit are numbers. It is open while that of
// one factor is.
func (in *scope) productUnit(f yamlfile.Field, what string) (u units.Unit, all element.UnitState) {
	for _, g := range in.Items(f, what) {
		of, s := in.ValueUnit(g, what)
		if s == element.UnitKnown {
			u = in.times(g, what, u, of)
		}
		if all != element.UnitOpen && s != element.UnitBare {
			all = s
		}
	}
	return u, all
}

// times returns the unit of a product.
func (in *scope) times(f yamlfile.Field, what string, u, of units.Unit) units.Unit {
	product, err := u.Product(of, false)
	if err != nil {
		in.FailAt(f.At, "%s: %s", what, units.Reason(err))
	}
	return product
}

// columnUnit returns the first unit in the last column of rows.
func (in *scope) columnUnit(f yamlfile.Field, what string) (units.Unit, element.UnitState) {
	var column []yamlfile.Field
	for _, row := range in.Items(f, what) {
		if !yamlfile.IsList(row.Node) {
			continue
		}
		if cells := in.Items(row, what); len(cells) > 0 {
			column = append(column, cells[len(cells)-1])
		}
	}
	return firstUnit(column, what, in.ValueUnit)
}
