package element

import (
	"lockstep/model"
	"lockstep/model/syntax"
	"lockstep/model/units"
)

// Table reads rows [[x, value], ...] with increasing x.
func (e *Element) Table(f syntax.Field, xUnit, unit string) model.Table {
	cols := e.Columns(f, xUnit, unit)
	if e.Err != nil {
		return model.Table{X: []float64{0}, Z: []float64{0}}
	}
	return model.Table{X: cols[0], Z: cols[1]}
}

// Columns reads rows of as many values as there are units spelled; the first column must
// increase.
func (e *Element) Columns(f syntax.Field, spelled ...string) [][]float64 {
	what := e.What() + ": " + f.Key
	cols := make([][]float64, len(spelled))
	for _, n := range e.Items(f.Node, f.At, what) {
		at := syntax.StartOf(n)
		row := e.Items(n, at, what+": row")
		if len(row) != len(spelled) {
			e.Fail(at, "%s: row of %d values; %d are wanted", what, len(row), len(spelled))
			return cols
		}
		for j, cell := range row {
			v := e.Quantity(syntax.Field{At: syntax.StartOf(cell), Node: cell}, what, units.Want(spelled[j]))
			if k := len(cols[0]) - 1; j == 0 && k >= 0 && !(v > cols[0][k]) {
				e.Fail(at, "%s: %s comes after %s; the first column must increase", what,
					units.Want(spelled[0]).Format(v), units.Want(spelled[0]).Format(cols[0][k]))
			}
			cols[j] = append(cols[j], v)
		}
		if e.Err != nil {
			return cols
		}
	}
	if len(cols[0]) == 0 {
		e.Fail(f.At, "%s: empty; rows are wanted", what)
	}
	return cols
}

// list reads a list of increasing numbers.
func (e *Element) list(f syntax.Field, what, unit string) []float64 {
	u, _ := units.Parse(unit)
	var list []float64
	for _, n := range e.Items(f.Node, f.At, what) {
		at := syntax.StartOf(n)
		v := e.Quantity(syntax.Field{At: at, Node: n}, what, units.Want(unit))
		if k := len(list) - 1; k >= 0 && !(v > list[k]) {
			e.Fail(at, "%s: %s comes after %s; it must increase", what, units.Format(v/u.Factor, unit), units.Format(list[k]/u.Factor, unit))
		}
		list = append(list, v)
	}
	if len(list) < 2 {
		e.Fail(f.At, "%s: at least two values are wanted", what)
	}
	return list
}

// Map2 reads {KEY_X: [...], KEY_Y: [...], KEY_Z: [[...], ...]}: rows over x, columns
// over y.
func (e *Element) Map2(f syntax.Field, keys, spelled [3]string) model.Table {
	what := e.What() + ": " + f.Key
	fields := e.Entries(f.Node, f.At, what)
	e.CheckKeys(fields, what, keys[:]...)
	part := map[string]syntax.Field{}
	for _, g := range fields {
		part[g.Key] = g
	}
	for _, key := range keys {
		if _, ok := part[key]; !ok {
			e.Fail(f.At, "%s: %s is missing", what, key)
			return model.Table{}
		}
	}
	t := model.Table{X: e.list(part[keys[0]], what+": "+keys[0], spelled[0]), Y: e.list(part[keys[1]], what+": "+keys[1], spelled[1])}
	what += ": " + keys[2]
	rows := e.Items(part[keys[2]].Node, part[keys[2]].At, what)
	if len(rows) != len(t.X) && e.Err == nil {
		e.Fail(part[keys[2]].At, "%s: %d rows; one for each of the %d values of %s is wanted", what, len(rows), len(t.X), keys[0])
	}
	for _, n := range rows {
		at := syntax.StartOf(n)
		row := e.Items(n, at, what)
		if len(row) != len(t.Y) && e.Err == nil {
			e.Fail(at, "%s: row of %d values; one for each of the %d values of %s is wanted", what, len(row), len(t.Y), keys[1])
		}
		for _, cell := range row {
			t.Z = append(t.Z, e.Quantity(syntax.Field{At: syntax.StartOf(cell), Node: cell}, what, units.Want(spelled[2])))
		}
	}
	return t
}

// Numbers reads a list.
func (e *Element) Numbers(f syntax.Field, unit string) []float64 {
	what := e.What() + ": " + f.Key
	var list []float64
	for _, n := range e.Items(f.Node, f.At, what) {
		list = append(list, e.Quantity(syntax.Field{At: syntax.StartOf(n), Node: n}, what, units.Want(unit)))
	}
	return list
}
