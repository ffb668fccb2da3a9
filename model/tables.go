package model

import "math"

// table reads rows [[x, value], ...] with increasing x.
func (e *element) table(f field, xUnit, unit string) Table {
	cols := e.columns(f, xUnit, unit)
	if e.err != nil {
		return Table{X: []float64{0}, Z: []float64{0}}
	}
	return Table{X: cols[0], Z: cols[1]}
}

// columns reads rows of as many values as there are units spelled; the first column must
// increase.
func (e *element) columns(f field, spelled ...string) [][]float64 {
	what := e.what() + ": " + f.key
	cols := make([][]float64, len(spelled))
	for _, n := range e.items(f.node, f.at, what) {
		at := startOf(n)
		row := e.items(n, at, what+": row")
		if len(row) != len(spelled) {
			e.fail(at, "%s: row of %d values; %d are wanted", what, len(row), len(spelled))
			return cols
		}
		for j, cell := range row {
			u, _ := Units(spelled[j])
			v := e.quantity(field{at: startOf(cell), node: cell}, what, wanted{u, spelled[j]})
			if k := len(cols[0]) - 1; j == 0 && k >= 0 && !(v > cols[0][k]) {
				e.fail(at, "%s: %s comes after %s; the first column must increase", what,
					wanted{u, spelled[0]}.show(v), wanted{u, spelled[0]}.show(cols[0][k]))
			}
			cols[j] = append(cols[j], v)
		}
		if e.err != nil {
			return cols
		}
	}
	if len(cols[0]) == 0 {
		e.fail(f.at, "%s: empty; rows are wanted", what)
	}
	return cols
}

// list reads a list of increasing numbers.
func (e *element) list(f field, what, unit string) []float64 {
	u, _ := Units(unit)
	var list []float64
	for _, n := range e.items(f.node, f.at, what) {
		at := startOf(n)
		v := e.quantity(field{at: at, node: n}, what, wanted{u, unit})
		if k := len(list) - 1; k >= 0 && !(v > list[k]) {
			e.fail(at, "%s: %s comes after %s; it must increase", what, withUnit(v/u.Factor, unit), withUnit(list[k]/u.Factor, unit))
		}
		list = append(list, v)
	}
	if len(list) < 2 {
		e.fail(f.at, "%s: at least two values are wanted", what)
	}
	return list
}

// map2 reads {KEY_X: [...], KEY_Y: [...], KEY_Z: [[...], ...]}: rows over x, columns
// over y.
func (e *element) map2(f field, keys, spelled [3]string) Table {
	what := e.what() + ": " + f.key
	fields := e.entries(f.node, f.at, what)
	e.known(fields, what, keys[:]...)
	part := map[string]field{}
	for _, g := range fields {
		part[g.key] = g
	}
	for _, key := range keys {
		if _, ok := part[key]; !ok {
			e.fail(f.at, "%s: %s is missing", what, key)
			return Table{}
		}
	}
	t := Table{X: e.list(part[keys[0]], what+": "+keys[0], spelled[0]), Y: e.list(part[keys[1]], what+": "+keys[1], spelled[1])}
	u, _ := Units(spelled[2])
	what += ": " + keys[2]
	rows := e.items(part[keys[2]].node, part[keys[2]].at, what)
	if len(rows) != len(t.X) && e.err == nil {
		e.fail(part[keys[2]].at, "%s: %d rows; one for each of the %d values of %s is wanted", what, len(rows), len(t.X), keys[0])
	}
	for _, n := range rows {
		at := startOf(n)
		row := e.items(n, at, what)
		if len(row) != len(t.Y) && e.err == nil {
			e.fail(at, "%s: row of %d values; one for each of the %d values of %s is wanted", what, len(row), len(t.Y), keys[1])
		}
		for _, cell := range row {
			t.Z = append(t.Z, e.quantity(field{at: startOf(cell), node: cell}, what, wanted{u, spelled[2]}))
		}
	}
	return t
}

// steepest2 is the largest slope of a table of two variables along the first.
func (t Table) steepest2() float64 {
	s, c := 0.0, len(t.Y)
	for i := range len(t.X) - 1 {
		for j := range c {
			s = max(s, math.Abs(t.Z[(i+1)*c+j]-t.Z[i*c+j])/(t.X[i+1]-t.X[i]))
		}
	}
	return s
}
