package element

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"lockstep/io/yamlfile"
	"lockstep/model"
	"lockstep/model/network"
	"lockstep/model/units"
)

// Parameter declares a key of an element type, for its reading and for the guide. In "ROT|TRANS" the
// first spelling is for elements that turn, the second for those that move.
type Parameter struct {
	Key     string
	Form    Form
	Unit    string   // SI; for rows one per column, joined by ", "
	Default string   // number or word; "": the key is required; other text: the element sets the default
	Bound   Bound    // bound of a number, of each number in a list, of the last column of rows
	Least   float64  // least size of such a number in SI, where the bound excludes 0; 0: that of its unit
	Most    float64  // largest size of such a number in SI; 0: that of its unit
	Words   []string // accepted words; nil: any
	Meaning string   // noun phrase

	relative bool // factor or difference: a temperature cannot be in degC
}

// Form is the notation of a value.
type Form string

const (
	AsNumber     Form = "number"
	OverTime     Form = "over time" // number, waveform, or name of a signal
	AsRows       Form = "rows"      // rows of numbers; the first column increases
	AsList       Form = "list"
	AsMap        Form = "map"
	AsWord       Form = "word"
	NumberRows   Form = "number or rows"
	NumberList   Form = "number or list"
	ListOverTime Form = "list over time" // list of values over time
)

// Of declares a parameter of form f; missing is its default.
func (f Form) Of(key, unit, missing string, b Bound, meaning string) Parameter {
	return Parameter{Key: key, Form: f, Unit: unit, Default: missing, Bound: b, Meaning: meaning}
}

// Word declares a parameter that accepts one of words.
func Word(key, missing, meaning string, words ...string) Parameter {
	return Parameter{Key: key, Form: AsWord, Default: missing, Meaning: meaning, Words: words}
}

// Flag declares a parameter that accepts true and false.
func Flag(key, missing, meaning string) Parameter {
	return Word(key, missing, meaning, "true", "false")
}

// Bound is the valid range of a number, as text for the guide.
type Bound string

const (
	Any         Bound = ""
	Positive    Bound = "> 0"
	NotNegative Bound = ">= 0"
	Nonzero     Bound = "not 0"
	AtLeastOne  Bound = ">= 1"
	Share       Bound = "0 to 1"
	Fraction    Bound = "> 0 to 1"
)

// wrong describes why a number is outside the bound; "" if it is inside.
func (b Bound) wrong(x float64) string {
	switch {
	case b == Positive && !(x > 0):
		return "is not positive"
	case b == NotNegative && !(x >= 0):
		return "is negative"
	case b == Nonzero && !(x < 0 || x > 0):
		return "is zero"
	case b == AtLeastOne && !(x >= 1):
		return "is below 1"
	case b == Share && !(x >= 0 && x <= 1):
		return "is outside 0 to 1"
	case b == Fraction && !(x > 0 && x <= 1):
		return "is outside 0 to 1, 0 not included"
	}

	return ""
}

// In returns the parameter in the spelling of domain d.
func (p Parameter) In(d network.Domain) Parameter {
	p.Key, p.Default, p.Meaning = d.Spell(p.Key), d.Spell(p.Default), d.Spell(p.Meaning)
	list := p.Units()
	for i, unit := range list {
		list[i] = d.Spell(unit)
	}
	p.Unit = strings.Join(list, ", ")
	return p
}

// Units returns the units of the columns of rows, or the one unit of a number.
func (p Parameter) Units() []string { return strings.Split(p.Unit, ", ") }

// declared returns the parameter with a key; key has the rotational spelling.
func (e *Element) declared(key string) Parameter {
	for _, p := range e.Kind.Parameters {
		if network.Rotational.Spell(p.Key) == key {
			p = p.In(e.Domain)
			if unit, ok := e.units[key]; ok {
				p.Unit = unit
			}
			p.relative = p.relative || e.relative[key]
			return p
		}
	}
	panic("element: " + e.Kind.Name + " does not declare " + key)
}

// declares reports whether the type has a parameter with a key.
func (e *Element) declares(key string) bool {
	return slices.ContainsFunc(e.Kind.Parameters, func(p Parameter) bool { return network.Rotational.Spell(p.Key) == key })
}

// Field returns the entry of a key for reading, and whether the file gives it.
func (e *Element) Field(key string) (Field, bool) { return e.use(e.declared(key)) }

// use returns the entry of a parameter, and marks it as read.
func (e *Element) use(p Parameter) (Field, bool) {
	f, ok := e.Fields[p.Key]
	if ok {
		if e.used == nil {
			e.used = map[string]bool{}
		}
		e.used[p.Key] = true
	}
	return f, ok
}

// CheckUsed refuses a key whose value the type has not read.
func (e *Element) CheckUsed() {
	for _, p := range e.Kind.Parameters {
		p = p.In(e.Domain)
		if f, ok := e.Fields[p.Key]; ok && !e.used[p.Key] {
			e.Refuse(f.KeyAt, "%s has no effect with the other keys of this %s; leave it out (%s)",
				p.Key, e.Kind.Name, p.Meaning)
		}
	}
}

// given returns the entry of a key without reading it, and whether the file gives it.
func (e *Element) given(key string) (Field, bool) {
	f, ok := e.Fields[e.declared(key).Key]
	return f, ok
}

// Has reports whether the file gives a key.
func (e *Element) Has(key string) bool {
	_, ok := e.given(key)
	return ok
}

// Place returns the position of the value of a key; of the element if the key is missing.
func (e *Element) Place(key string) network.Pos {
	if f, ok := e.given(key); ok {
		return f.At
	}
	return e.At
}

// UnitOf returns the unit of a key.
func (e *Element) UnitOf(key string) string { return e.declared(key).Unit }

// entry returns the entry of a required key.
func (e *Element) entry(p Parameter) Field {
	f, ok := e.use(p)
	if !ok {
		needs := p.Meaning
		switch {
		case p.Words != nil:
			needs = strings.Join(p.Words, ", ")
		case p.Form == AsRows:
			needs = "rows " + needs + "; " + p.Unit
		case p.Unit != "" && p.Unit != "1":
			needs += ", " + p.Unit
		}
		if p.Form == OverTime {
			needs += ", or the name of an input"
		}
		e.Refuse(e.At, "%s needs %s (%s)", e.Kind.Name, p.Key, needs)
	}
	return f
}

// Number reads a number. A missing key gives the declared default; without a default it is an error.
func (e *Element) Number(key string) float64 {
	p := e.declared(key)
	missing, err := strconv.ParseFloat(p.Default, 64)
	if err != nil {
		e.entry(p)
	}
	return e.NumberOr(key, missing)
}

// NumberOr reads a number and returns missing for a missing key.
func (e *Element) NumberOr(key string, missing float64) float64 {
	p := e.declared(key)
	f, ok := e.use(p)
	if !ok {
		return missing
	}
	return e.value(f, p)
}

// value reads a number in the last unit of p and checks the bound.
func (e *Element) value(f Field, p Parameter) float64 {
	list := p.Units()
	unit := list[len(list)-1]
	x := e.Quantity(f, e.What()+": "+p.Key, p.want(unit))
	if wrong := p.Bound.wrong(x); wrong != "" {
		e.Refuse(f.At, "%s %s %s (%s)", p.Key, units.Format(x, unit), wrong, p.Meaning)
	}
	if p.outside(x) {
		e.Refuse(f.At, "%s %s is outside %s (%s)", p.Key, units.Format(x, unit), units.WithUnit(p.Range(), unit), p.Meaning)
	}
	return x
}

// ReadStart reads a start condition from a key, if the file gives the key.
func (e *Element) ReadStart(key string, s network.StartCondition) {
	if f, ok := e.Field(key); ok {
		p := e.declared(key)
		s.Key, s.Unit, s.Value, s.At = p.Key, p.Unit, e.value(f, p), f.At
		e.AddStart(s)
	}
}

// ReadNodeStart reads the initial speed and the initial angle (position) of node n from two keys.
func (e *Element) ReadNodeStart(n int, speed, place string) {
	e.ReadStart(speed, network.StartCondition{Row: network.RowOf(n), Speed: true})
	e.ReadStart(place, network.StartCondition{Row: network.RowOf(n)})
}

// SetUnit sets the SI unit, which follows from other keys, of keys and of quantities in Kind.Adds.
func (e *Element) SetUnit(unit string, keys ...string) {
	if e.units == nil {
		e.units = map[string]string{}
	}
	for _, key := range keys {
		e.units[key] = unit
	}
}

// ForbidCelsius makes the values of keys factors or differences, which cannot be in degC.
func (e *Element) ForbidCelsius(keys ...string) {
	if e.relative == nil {
		e.relative = map[string]bool{}
	}
	for _, key := range keys {
		e.relative[key] = true
	}
}

// want returns a unit of p for reading.
func (p Parameter) want(unit string) units.Wanted {
	if p.relative {
		return units.Want(unit).Difference()
	}
	return units.Want(unit)
}

// UnitGiven returns the unit of the first of the keys whose value has one. Otherwise the unit is 1, and the
// state is UnitOpen if the unit of one of the keys is not found yet.
func (e *Element) UnitGiven(keys ...string) (units.Unit, UnitState) {
	all := UnitBare
	for _, key := range keys {
		if f, ok := e.given(key); ok {
			u, s := e.ValueUnit(f, e.What()+": "+e.declared(key).Key)
			if s == UnitKnown {
				return u, s
			}
			all = max(all, s)
		}
	}
	return units.SIUnit(units.Dim{}), all
}

// ColumnUnit returns the first unit in the last column of rows; 1 if the column has none.
func (e *Element) ColumnUnit(key string) units.Unit {
	if f, _ := e.given(key); yamlfile.IsList(f.Node) {
		for _, row := range e.Items(f, key) {
			if !yamlfile.IsList(row.Node) {
				continue
			}
			if cells := e.Items(row, key); len(cells) > 0 {
				if u, s := e.ValueUnit(cells[len(cells)-1], e.What()+": "+key); s == UnitKnown {
					return u
				}
			}
		}
	}
	return units.SIUnit(units.Dim{})
}

// Measured reads a value over time in its own unit and returns it with the unit; a number without a unit
// has the unit 1.
func (e *Element) Measured(key string) (network.Form, units.Unit) {
	u, _ := e.UnitGiven(key)
	e.SetUnit(u.SI, key)
	return network.SignalOf(e.Waveform(key)), u
}

// Waveform reads a value over time and returns the index of its signal. The bound is checked against
// the known range of the signal.
func (e *Element) Waveform(key string) int {
	p := e.declared(key)
	return e.waveform(e.entry(p), p)
}

// Entry returns the entry of a required key.
func (e *Element) Entry(key string) Field { return e.entry(e.declared(key)) }

// MeasuredItem reads item i of a list of values over time in its own unit.
func (e *Element) MeasuredItem(key string, i int, f Field) network.Form {
	p := e.declared(key)
	p.Key += strconv.Itoa(i + 1)
	u, s := e.ValueUnit(f, e.What()+": "+p.Key)
	if p.Unit = "1"; s == UnitKnown {
		p.Unit = u.SI
	}
	return network.SignalOf(e.waveform(f, p))
}

// Waveforms reads a list of values over time and returns the indices of their signals.
func (e *Element) Waveforms(key string) (list []int) {
	p := e.declared(key)
	for i, f := range e.Items(e.entry(p), p.Key) {
		item := p
		item.Key += strconv.Itoa(i + 1)
		list = append(list, e.waveform(f, item))
	}
	return list
}

// waveform reads the value over time of an entry.
func (e *Element) waveform(f Field, p Parameter) int {
	i := e.Signal(f, e.What()+": "+p.Key, e.Name+"."+p.Key, p.want(p.Unit))
	low, high := e.Network.Range(i)
	if p.Bound == NotNegative {
		e.DeferCheck(func() {
			if low, _ := e.Network.Range(i); low < 0 && !math.IsInf(low, 0) {
				e.Refuse(f.At, "%s can be %s; it must not be negative (%s)", p.Key, units.Format(low, p.Unit), p.Meaning)
			}
		})
	}
	switch {
	case p.Bound == Positive && !(high > 0):
		e.Refuse(f.At, "%s %s is never positive; a %s transmits nothing then",
			p.Key, units.Format(high, p.Unit), e.Kind.Name)
	case !math.IsInf(low, 0) && !math.IsInf(high, 0) && !(max(math.Abs(low), math.Abs(high)) <= p.sizes().Most):
		e.Refuse(f.At, "%s goes from %s to %s; %s is wanted (%s)", p.Key, units.Format(low, p.Unit),
			units.Format(high, p.Unit), units.WithUnit(p.Range(), p.Unit), p.Meaning)
	case p.Bound == Share && !math.IsInf(low, 0) && !math.IsInf(high, 0) && !(low >= 0 && high <= 1):
		e.Refuse(f.At, "%s goes from %g to %g; a share of 0 to 1 is wanted", p.Key, low, high)
	}
	return i
}

// OptionalWaveform reads a value over time and returns its signal; nil for a missing key.
func (e *Element) OptionalWaveform(key string) network.Form {
	if !e.Has(key) {
		return nil
	}
	return network.SignalOf(e.Waveform(key))
}

// Per returns trans for an element that moves, else rot.
func (e *Element) Per(rot, trans string) string { return e.Domain.Per(rot, trans) }

// Word reads a word; a missing key gives the declared default.
func (e *Element) Word(key string) string {
	p := e.declared(key)
	if p.Default != "" && !e.Has(key) {
		return p.Default
	}
	f := e.entry(p)
	text := e.Text(f, e.What()+": "+p.Key)
	if p.Words != nil && !slices.Contains(p.Words, text) {
		e.Refuse(f.At, "%s: %q is none of %s%s", p.Key, text, strings.Join(p.Words, ", "), units.Meant(text, p.Words))
	}
	return text
}

// Flag reads true or false, as Word does.
func (e *Element) Flag(key string) bool { return e.Word(key) == "true" }

// Forbid refuses keys that the file gives; why continues the error after the key.
func (e *Element) Forbid(why string, keys ...string) {
	for _, key := range keys {
		if f, ok := e.given(key); ok {
			e.Refuse(f.KeyAt, "%s %s", f.Key, why)
		}
	}
}

// Together reports whether the file gives both keys; one alone is an error.
func (e *Element) Together(a, b string) bool {
	for _, key := range []string{a, b} {
		if f, ok := e.given(key); ok && e.Has(a) != e.Has(b) {
			e.Refuse(f.KeyAt, "%s and %s go together", a, b)
		}
	}

	return e.Has(a)
}

// CheckSpelling refuses keys in the spelling of the other domain.
func (e *Element) CheckSpelling() {
	other := network.Rotational
	if e.Domain != network.Translational {
		other = network.Translational
	}
	for _, p := range e.Kind.Parameters {
		wrong, right := other.Spell(p.Key), e.Domain.Spell(p.Key)
		if f, ok := e.Fields[wrong]; ok && wrong != right {
			e.Refuse(f.KeyAt, "it is %s; %s is wanted", e.Domain, right)
		}
	}
}

// Items reads a list; what names the list in errors.
func (e *Element) Items(f Field, what string) []Field {
	return e.Reader.Items(f, e.What()+": "+what)
}

// Numbers reads a list of numbers.
func (e *Element) Numbers(key string) []float64 {
	p := e.declared(key)
	return e.NumbersOf(e.entry(p), p)
}

// NumbersOf reads a list of numbers with the unit and the bound of p.
func (e *Element) NumbersOf(f Field, p Parameter) (list []float64) {
	for _, g := range e.Items(f, p.Key) {
		list = append(list, e.value(g, p))
	}
	return list
}

// IsScalar reports whether the value of a key is a single one, not a list or a mapping.
func (e *Element) IsScalar(key string) bool {
	f, _ := e.given(key)
	_, ok := yamlfile.ScalarText(f.Node)
	return ok
}

// Table reads rows [[x, value], ...] with increasing x.
func (e *Element) Table(key string) model.Table {
	cols := e.Columns(key)
	return model.Table{X: cols[0], Z: cols[1]}
}

// NumberOrTable reads a number as a table with one value, or rows.
func (e *Element) NumberOrTable(key string) model.Table {
	if e.IsScalar(key) {
		return Constant(e.Number(key))
	}
	return e.Table(key)
}

// Constant returns a table with one value.
func Constant(v float64) model.Table { return model.Table{X: []float64{0}, Z: []float64{v}} }

// Columns reads rows with one value per unit of the parameter and returns them by column; the first
// column must increase.
func (e *Element) Columns(key string) [][]float64 {
	p := e.declared(key)
	f, spelled := e.entry(p), p.Units()
	cols := make([][]float64, len(spelled))
	e.CheckRows(f, e.What()+": "+p.Key, len(spelled))
	for _, g := range e.Items(f, p.Key) {
		row := e.Items(g, p.Key+": row")
		if len(row) != len(spelled) {
			e.Refuse(g.At, "%s: row of %d values; %d are wanted", p.Key, len(row), len(spelled))
		}
		for j, cell := range row {
			column := p
			if column.Unit = spelled[j]; j < len(row)-1 {
				column.Bound, column.Least, column.Most = Any, 0, 0
			}
			v := e.value(cell, column)
			if j == 0 {
				e.MustIncrease(g.At, p.Key, "the first column", cols[0], v, spelled[0])
			}
			cols[j] = append(cols[j], v)
		}
	}

	if len(cols[0]) == 0 {
		e.Refuse(f.At, "%s: empty; rows are wanted", p.Key)
	}
	return cols
}

// MustIncrease refuses v unless it is above the last of the values before, by the least size of its unit.
func (e *Element) MustIncrease(at network.Pos, what, which string, before []float64, v float64, unit string) {
	k, want := len(before)-1, units.Want(unit)
	if k < 0 {
		return
	}
	if !(v > before[k]) {
		e.Refuse(at, "%s: %s comes after %s; %s must increase", what, want.Format(v), want.Format(before[k]), which)
	}
	if least := units.SizesOf(want.Unit).Least; !(v-before[k] >= least) {
		e.Refuse(at, "%s: %s is only %s after %s; at least %s lie between two values", what, want.Format(v),
			want.Format(v-before[k]), want.Format(before[k]), want.Format(least))
	}
}

// axis reads a list of at least two increasing numbers.
func (e *Element) axis(f Field, p Parameter) (list []float64) {
	for _, g := range e.Items(f, p.Key) {
		v := e.value(g, p)
		e.MustIncrease(g.At, p.Key, "it", list, v, p.Unit)
		list = append(list, v)
	}

	if len(list) < 2 {
		e.Refuse(f.At, "%s: at least two values are wanted", p.Key)
	}
	return list
}

// Map2 reads a table of two variables, {KEY_X: [...], KEY_Y: [...], KEY_Z: [[...], ...]}, with one
// row per value of x and one column per value of y.
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
			e.Refuse(g.At, "%s: row of %d values; one for each of the %d values of %s is wanted%s",
				what, len(row), len(t.Y), keys[1], e.DecimalAdvice(g))
		}

		t.Z = append(t.Z, row...)
	}

	return t
}
