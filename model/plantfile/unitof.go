package plantfile

import (
	"slices"

	"lockstep/io/yamlfile"
	"lockstep/model/element"
	"lockstep/model/units"
)

// resolveUnits finds the units of the signals of elements whose types have GivesAs, before an element
// reads a signal. In a closed loop one of the other signals decides. A unit that nothing decides is that
// of the numbers, 1.
func (l *loader) resolveUnits() {
	l.unitsOpen = map[int]bool{}
	var open []*element.Element
	for _, e := range l.Elements {
		if e.Kind.GivesAs != nil {
			l.unitsOpen[e.OwnSignal] = true
			open = append(open, e)
		}
	}
	decide := func(anyway bool) (changed bool) {
		open = slices.DeleteFunc(open, func(e *element.Element) bool {
			u, known := e.Kind.GivesAs(e)
			if !known && (!anyway || changed) {
				return false
			}
			l.Network.Signals[e.OwnSignal].Unit, changed = u, true
			delete(l.unitsOpen, e.OwnSignal)
			return true
		})
		return changed
	}
	for len(open) > 0 {
		if !decide(false) {
			decide(true)
		}
	}
}

// signalUnit returns the unit of a signal, if it is known.
func (l *loader) signalUnit(i int) (units.Unit, bool) {
	return l.Network.Signals[i].Unit, !l.unitsOpen[i]
}

// ValueUnit returns the unit of a value over time: that of its signal, or of the first number in it that has
// one. known is false where all are numbers without a unit.
func (in *scope) ValueUnit(f yamlfile.Field, what string) (u units.Unit, known bool) {
	if text, ok := yamlfile.ScalarText(f.Node); ok {
		return in.scalarUnit(f, text, what)
	}
	switch {
	case yamlfile.IsList(f.Node):
		for _, g := range in.Items(f, what) {
			if u, known = in.ValueUnit(g, what); known {
				break
			}
		}
	case yamlfile.IsMapping(f.Node):
		for _, g := range in.FieldsOf(f, what) {
			switch {
			case known:
			case g.Key == "product":
				u, known = in.productUnit(g, what)
			case g.Key == "units" && yamlfile.IsList(g.Node):
				if list := in.Texts(g, what); len(list) == 2 {
					w, err := units.ParseWanted(list[1])
					u, known = w.Unit, err == nil
				}
			case g.Key == "table" && yamlfile.IsList(g.Node):
				u, known = in.columnUnit(g, what)
			case slices.Contains([]string{"sum", "constant", "step", "ramp", "sine", "pulse", "trapezoid", "height",
				"amplitude", "offset"}, g.Key):
				u, known = in.ValueUnit(g, what)
			}
		}
	}
	return u, known
}

// scalarUnit returns the unit of a name or a number.
func (in *scope) scalarUnit(f yamlfile.Field, text, what string) (units.Unit, bool) {
	if b, ok := in.signals[text]; ok {
		return b.scope.ValueUnit(b.field, b.what)
	}
	if i, _ := in.signalNamed(text); i >= 0 {
		return in.signalUnit(i)
	}
	v, err := units.Evaluate(text, in.params)
	if err != nil || v.Bare {
		return units.Unit{}, false
	}
	u, err := units.Parse(v.Spelled())
	if err != nil {
		return units.SIUnit(v.Dim), true
	}
	return units.Unit{Factor: 1, Dim: u.Dim, SI: u.SI}, true
}

// productUnit returns the unit of a product; factors without a unit are numbers.
func (in *scope) productUnit(f yamlfile.Field, what string) (u units.Unit, known bool) {
	for _, g := range in.Items(f, what) {
		of, ok := in.ValueUnit(g, what)
		if !ok {
			continue
		}
		u, known = in.times(g, what, u, of), true
	}
	return u, known
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
func (in *scope) columnUnit(f yamlfile.Field, what string) (u units.Unit, known bool) {
	for _, row := range in.Items(f, what) {
		if !yamlfile.IsList(row.Node) {
			continue
		}
		if cells := in.Items(row, what); len(cells) > 0 {
			if u, known = in.ValueUnit(cells[len(cells)-1], what); known {
				break
			}
		}
	}
	return u, known
}
