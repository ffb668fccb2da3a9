package specialise

import (
	"fmt"
	"go/types"
	"math"
	"reflect"
	"slices"
	"strings"
)

// tickTable is a constant table that the tick reads by an index.
type tickTable struct {
	name         string
	typ          types.Type
	rows         [][]any // nil: never read
	width        int     // elements of a row
	flat         bool    // one row
	rowMasked    bool    // the index of the row is masked: the number of rows is a power of two
	columnMasked bool    // the index into a row is masked: the width is a power of two
	room         int     // least width that an index into a row needs whose start is masked
}

// lookup returns the element at an index that the tick computes.
func (f *frame) lookup(at *place) *value {
	d, of := f.data(at.parent), at.parent.family().at
	if n, ok := at.index.integer(); ok {
		column := d.column(int(n))
		if con, ok := common(column); ok {
			return constantValue(con, at.typ)
		}
		if isIndex(column) {
			return f.converted(of, at.typ)
		}
		row := f.row(f.tableOf(at.parent.cell(), d.rows, at.typ), of)
		return dynamic(fmt.Sprintf("%s[%d]", row, n), operand, at.typ)
	}

	if d.uniform {
		return constantValue(d.same, at.typ)
	}
	if len(d.rows) == 1 && isIndex(d.rows[0]) {
		return f.converted(at.index, at.typ)
	}
	t := f.tableOf(at.parent.cell(), d.rows, at.typ)
	name := t.name
	if len(d.rows) > 1 {
		name = f.row(t, of)
	} else {
		t.flat = true
	}

	return dynamic(name+"["+t.inside(at.index)+"]", operand, at.typ)
}

// data are the numbers of an array, or of a family of arrays.
type data struct {
	rows    [][]any
	same    any // the value that all of them have, if uniform
	uniform bool
}

// data reads the numbers at a place, once.
func (s *spec) data(p *place) *data {
	key := p.cell()
	if d := s.numbers[key]; d != nil {
		return d
	}
	list := p.family().list
	d := &data{rows: make([][]any, len(list))}
	for i, m := range list {
		if m = pointed(m); m.IsValid() {
			for e := range m.Len() {
				d.rows[i] = append(d.rows[i], plain(m.Index(e)))
			}
		}
	}

	d.same, d.uniform = common(slices.Concat(d.rows...))
	s.numbers[key] = d
	return d
}

// column returns the elements of all rows at an index; nil for a shorter row.
func (d *data) column(n int) []any {
	list := make([]any, len(d.rows))
	for i, r := range d.rows {
		if n < len(r) {
			list[i] = r[n]
		}
	}

	return list
}

// isIndex reports whether every number equals its index.
func isIndex(list []any) bool {
	for i, n := range list {
		if n != nil && n != any(int64(i)) {
			return false
		}
	}

	return true
}

// inside returns the text of an index into a row.
func (t *tickTable) inside(i *value) string {
	if i.within(t.width) {
		return i.text
	}
	if i.bound > 0 {
		t.room = max(t.room, i.bound)
		return i.text
	}
	t.columnMasked = true
	return i.masked(t.width).text
}

// common returns the value that all reachable elements of a list have.
func common(list []any) (con any, ok bool) {
	for _, c := range list {
		switch {
		case c == nil:
		case con == nil:
			con = c
		case !sameBits(con, c):
			return nil, false
		}
	}

	return con, true
}

// sameBits reports whether two values have the same bits.
func sameBits(a, b any) bool {
	x, ok := a.(float64)
	y, also := b.(float64)
	if ok && also {
		return math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}

// columnOf returns number of the value at a place, such as the length of a slice. If the place can
// be several values, it is a constant they share or an element of a table.
func (f *frame) columnOf(at *place, typ types.Type, suffix string, number func(reflect.Value) any) *value {
	fam := at.family()
	list := make([]any, len(fam.list))
	for i, m := range fam.list {
		if m.IsValid() {
			list[i] = number(m)
		}
	}

	if n, ok := fam.at.integer(); ok {
		return constantValue(list[n], typ)
	}
	if con, ok := common(list); ok {
		return constantValue(con, typ)
	}
	t := f.tableOf(at.cell()+suffix, [][]any{list}, typ)
	t.flat = true
	return dynamic(t.name+"["+t.inside(fam.at)+"]", operand, typ)
}

// tableOf returns the table of a key; it makes the table at the first use.
func (f *frame) tableOf(key string, rows [][]any, typ types.Type) *tickTable {
	if t := f.tables[key]; t != nil {
		return t
	}
	t := &tickTable{name: f.unusedTopName(tableName(key)), typ: typ, rows: rows}
	for _, r := range rows {
		t.width = max(t.width, len(r))
	}
	f.tables[key] = t
	f.tableList = append(f.tableList, t)
	return t
}

// tableName makes a name from a path of fields and indices.
func tableName(key string) string {
	name := ""
	for _, part := range strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(".[]*", r) }) {
		if part != "k" && (part != "t" || name != "") {
			name += joined(name, part)
		}
	}

	if len(name) > 1 && name[0] == 't' && name[1] >= 'A' && name[1] <= 'Z' {
		name = name[1:] // without the t of the tables
	}
	return strings.ToLower(name[:1]) + name[1:]
}

// unusedTopName returns a package-level name that is not in use yet.
func (s *spec) unusedTopName(name string) string {
	for try, n := name, 2; ; n++ {
		if !s.used[try] {
			s.used[try] = true
			return try
		}

		try = fmt.Sprintf("%s_%d", name, n)
	}
}

// row returns a pointer to a row of a table, one for each block of statements.
func (f *frame) row(t *tickTable, i *value) string {
	key := t.name + "@" + i.text
	for n := len(f.fn.rows) - 1; n >= 0; n-- {
		if name, ok := f.fn.rows[n][key]; ok {
			return name
		}
	}

	index := i.text
	if !i.within(len(t.rows)) {
		t.rowMasked = true
		index = i.masked(len(t.rows)).text
	}

	name := f.unique(t.name + "Row")
	f.emit(&stmt{kind: declare, names: []string{name}, right: "&" + t.name + "[" + index + "]", pure: true})
	f.fn.rows[len(f.fn.rows)-1][key] = name
	return name
}

// write appends the declaration of a table and returns its size, bytes.
func (t *tickTable) write(b *strings.Builder) (size int) {
	width, rows := t.width, len(t.rows)
	if t.columnMasked {
		width = powerOfTwo(width)
	}
	width = max(width, t.room)
	if t.rowMasked {
		rows = powerOfTwo(rows)
	}
	typ := goType(t.typ)
	if t.flat {
		fmt.Fprintf(b, "var %s = [%d]%s{%s}\n\n", t.name, width, typ, t.list(t.rows[0]))
		return width * sizeOf(typ)
	}

	fmt.Fprintf(b, "var %s = [%d][%d]%s{\n", t.name, rows, width, typ)
	for _, r := range t.rows {
		fmt.Fprintf(b, "{%s},\n", t.list(r))
	}
	b.WriteString("}\n\n")
	return rows * width * sizeOf(typ)
}

// list returns the text of a row.
func (t *tickTable) list(row []any) string {
	var texts []string
	for _, c := range row {
		if c == nil {
			c = zeroOf(t.typ).con
		}
		texts = append(texts, literal(c))
	}

	return strings.Join(texts, ", ")
}
