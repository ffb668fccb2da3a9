package element

import (
	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Items reads a list; what names it in messages, behind the element.
func (e *Element) Items(f Field, what string) []Field {
	return e.Reader.Items(f, e.What()+": "+what)
}

// Entries reads a mapping.
func (e *Element) Entries(f Field, what string) []Field {
	return e.FieldsOf(f, e.What()+": "+what)
}

// Numbers reads a list of numbers.
func (e *Element) Numbers(key string) []float64 {
	p := e.declared(key)
	return e.NumbersOf(e.entry(p), p)
}

// NumbersOf reads a list of numbers, each as p declares them.
func (e *Element) NumbersOf(f Field, p Parameter) (list []float64) {
	for _, g := range e.Items(f, p.Key) {
		list = append(list, e.value(g, p))
	}
	return list
}

// IsScalar tells whether a key has one value: not a list, a mapping or rows.
func (e *Element) IsScalar(key string) bool {
	f, _ := e.Field(key)
	_, ok := yamlfile.ScalarText(f.Node)
	return ok
}

// Table reads rows [[x, value], ...] with increasing x.
func (e *Element) Table(key string) model.Table {
	cols := e.Columns(key)
	return model.Table{X: cols[0], Z: cols[1]}
}

// Constant is a table of one value.
func Constant(v float64) model.Table { return model.Table{X: []float64{0}, Z: []float64{v}} }

// Columns reads rows of as many values as the parameter has units; the first column must increase.
func (e *Element) Columns(key string) [][]float64 {
	p := e.declared(key)
	f, spelled := e.entry(p), p.Units()
	cols := make([][]float64, len(spelled))
	for _, g := range e.Items(f, p.Key) {
		row := e.Items(g, p.Key+": row")
		if len(row) != len(spelled) {
			e.Refuse(g.At, "%s: row of %d values; %d are wanted", p.Key, len(row), len(spelled))
		}
		for j, cell := range row {
			column := p
			if column.Unit = spelled[j]; j < len(row)-1 {
				column.Bound = Any
			}
			v := e.value(cell, column)
			if j == 0 {
				e.mustIncrease(g.At, p.Key, "the first column", cols[0], v, spelled[0])
			}
			cols[j] = append(cols[j], v)
		}
	}

	if len(cols[0]) == 0 {
		e.Refuse(f.At, "%s: empty; rows are wanted", p.Key)
	}
	return cols
}

// mustIncrease refuses v unless it is above the last of those before.
func (e *Element) mustIncrease(at network.Pos, what, which string, before []float64, v float64, unit string) {
	if k := len(before) - 1; k >= 0 && !(v > before[k]) {
		want := units.Want(unit)
		e.Refuse(at, "%s: %s comes after %s; %s must increase", what, want.Format(v), want.Format(before[k]), which)
	}
}

// axis reads a list of at least two increasing numbers.
func (e *Element) axis(f Field, p Parameter) (list []float64) {
	for _, g := range e.Items(f, p.Key) {
		v := e.value(g, p)
		e.mustIncrease(g.At, p.Key, "it", list, v, p.Unit)
		list = append(list, v)
	}

	if len(list) < 2 {
		e.Refuse(f.At, "%s: at least two values are wanted", p.Key)
	}
	return list
}

// Map2 reads {KEY_X: [...], KEY_Y: [...], KEY_Z: [[...], ...]}: rows over x, columns
// over y.
func (e *Element) Map2(key string, keys [3]string) model.Table {
	p := e.declared(key)
	f := e.entry(p)
	fields := e.Section(f, e.What()+": "+p.Key, keys[:]...)
	part := [3]Parameter{}
	for i, key := range keys {
		if _, ok := fields[key]; !ok {
			e.Refuse(f.At, "%s: %s is missing", p.Key, key)
		}
		part[i] = Parameter{Key: p.Key + ": " + key, Unit: p.Units()[i]}
	}

	var t model.Table
	t.X = e.axis(fields[keys[0]], part[0])
	t.Y = e.axis(fields[keys[1]], part[1])
	z, what := fields[keys[2]], part[2].Key
	rows := e.Items(z, what)
	if len(rows) != len(t.X) {
		e.Refuse(z.At, "%s: %d rows; one for each of the %d values of %s is wanted", what, len(rows), len(t.X), keys[0])
	}
	for _, g := range rows {
		row := e.NumbersOf(g, part[2])
		if len(row) != len(t.Y) {
			e.Refuse(g.At, "%s: row of %d values; one for each of the %d values of %s is wanted",
				what, len(row), len(t.Y), keys[1])
		}

		t.Z = append(t.Z, row...)
	}

	return t
}
