package specialise

import (
	"fmt"
	"go/types"
	"math"
	"reflect"
	"strings"
)

// tickTable is what the tick looks up by an index.
type tickTable struct {
	name   string
	typ    types.Type
	rows   [][]any // nil: never looked at
	width  int     // of a row
	flat   bool    // one row
	masked bool    // its index, or that of its row, is masked
	wide   bool    // the index into a row is masked
}

// lookup is the scalar at a place of which the tick computes an index.
func (f *frame) lookup(at *place) *value {
	if at.index == nil {
		fam := at.family()
		return f.column(at, fam.at, plains(fam.list), at.typ, "")
	}
	d := f.data(at.parent)
	if n, ok := at.index.integer(); ok {
		if con, ok := d.column(int(n)); ok {
			return f.shared(con, at.typ)
		}
		of := at.parent.family().at
		if d.isRow(int(n)) {
			return f.converted(of, at.typ)
		}
		row := f.row(f.tickTable(at.parent, d, at.typ), of)
		return dynamic(fmt.Sprintf("%s[%d]", row, n), operand, at.typ)
	}
	if con, ok := d.all(); ok {
		return f.shared(con, at.typ)
	}
	if len(d.rows) == 1 && isIndex(d.rows[0]) {
		return f.converted(at.index, at.typ)
	}
	t := f.tickTable(at.parent, d, at.typ)
	name := t.name
	if len(d.rows) > 1 {
		name = f.row(t, at.parent.family().at)
	} else {
		t.flat = true
	}
	return dynamic(name+"["+t.inside(at.index)+"]", operand, at.typ)
}

// data are the numbers of an array, or of a family of arrays.
type data struct {
	rows   [][]any
	width  int
	common map[int]any // what all rows have in a column; column -1 is all
	differ map[int]bool
}

// data reads the numbers at a place, once.
func (s *spec) data(p *place) *data {
	key := p.cell()
	if d := s.numbers[key]; d != nil {
		return d
	}
	list := p.family().list
	d := &data{rows: make([][]any, len(list)), common: map[int]any{}, differ: map[int]bool{}}
	for i, m := range list {
		if m = pointed(m); !m.IsValid() {
			continue
		}
		d.width = max(d.width, m.Len())
		for e := range m.Len() {
			d.rows[i] = append(d.rows[i], plain(m.Index(e)))
		}
	}
	s.numbers[key] = d
	return d
}

// column is what all rows have there.
func (d *data) column(n int) (con any, ok bool) {
	return d.known(n, func() []any { return pick(d.rows, n) })
}

// isIndex reports whether every number is its own index.
func isIndex(list []any) bool {
	for i, n := range list {
		if n != any(int64(i)) {
			return false
		}
	}
	return true
}

// isRow reports whether what every row has there is the row's own index.
func (d *data) isRow(n int) bool {
	for i, r := range d.rows {
		if n < len(r) && r[n] != any(int64(i)) {
			return false
		}
	}
	return true
}

// all is what all numbers are.
func (d *data) all() (con any, ok bool) {
	return d.known(-1, func() (list []any) {
		for _, r := range d.rows {
			list = append(list, r...)
		}
		return list
	})
}

func (d *data) known(n int, list func() []any) (con any, ok bool) {
	if d.differ[n] {
		return nil, false
	}
	if con, ok = d.common[n]; ok {
		return con, true
	}
	if con, ok = common(list()); ok {
		d.common[n] = con
	} else {
		d.differ[n] = true
	}
	return con, ok
}

// inside is the text of an index into a row.
func (t *tickTable) inside(i *value) string {
	if i.ranged && i.lo >= 0 && i.hi < int64(t.width) {
		return i.text
	}
	t.wide = true
	return arith("&", i, constantValue(int64(power(t.width)-1), i.typ)).text
}

func (f *frame) shared(con any, typ types.Type) *value {
	if con == nil {
		return zeroOf(typ)
	}
	return constantValue(con, typ)
}

func plains(list []reflect.Value) (out []any) {
	for _, m := range list {
		if m.IsValid() {
			out = append(out, plain(m))
		} else {
			out = append(out, nil)
		}
	}
	return out
}

// pick is column n of rows.
func pick(rows [][]any, n int) (out []any) {
	for _, r := range rows {
		if n < len(r) {
			out = append(out, r[n])
		}
	}
	return out
}

// common is what all of a list are, where they can be reached.
func common(list []any) (con any, ok bool) {
	for _, c := range list {
		switch {
		case c == nil:
		case con == nil:
			con = c
		case !alike(con, c):
			return nil, false
		}
	}
	return con, true
}

// alike compares to the bit.
func alike(a, b any) bool {
	x, ok := a.(float64)
	y, also := b.(float64)
	if ok && also {
		return math.Float64bits(x) == math.Float64bits(y)
	}
	return a == b
}

// column is one of a list of constants, by an index.
func (f *frame) column(at *place, i *value, list []any, typ types.Type, suffix string) *value {
	if n, ok := i.integer(); ok {
		if int(n) >= len(list) {
			return zeroOf(typ)
		}
		return f.shared(list[n], typ)
	}
	if con, ok := common(list); ok {
		return f.shared(con, typ)
	}
	t := f.tableOf(at.cell()+suffix, [][]any{list}, len(list), typ)
	t.flat = true
	return dynamic(t.name+"["+t.inside(i)+"]", operand, typ)
}

func (f *frame) tickTable(of *place, d *data, typ types.Type) *tickTable {
	return f.tableOf(of.cell(), d.rows, d.width, typ)
}

func (f *frame) tableOf(key string, rows [][]any, width int, typ types.Type) *tickTable {
	if t := f.tables[key]; t != nil {
		return t
	}
	t := &tickTable{name: f.top(tableName(key)), typ: typ, rows: rows, width: width}
	f.tables[key] = t
	f.spec.list = append(f.spec.list, t)
	return t
}

// tableName makes a name of a path of fields and indices.
func tableName(key string) string {
	name := ""
	for _, part := range strings.FieldsFunc(key, func(r rune) bool { return strings.ContainsRune(".[]*", r) }) {
		if part != "k" && (part != "t" || name != "") {
			name += joined(name, part)
		}
	}
	if len(name) > 1 && name[0] == 't' && name[1] >= 'A' && name[1] <= 'Z' {
		name = name[1:] // of the tables
	}
	return strings.ToLower(name[:1]) + name[1:]
}

// top is a name that the package does not have yet.
func (s *spec) top(name string) string {
	for try, n := name, 2; ; n++ {
		if !s.used[try] {
			s.used[try] = true
			return try
		}
		try = fmt.Sprintf("%s_%d", name, n)
	}
}

// row is a pointer to a row of a table, one for each block of statements.
func (f *frame) row(t *tickTable, i *value) string {
	key := t.name + "@" + i.text
	for n := len(f.fn.rows) - 1; n >= 0; n-- {
		if name, ok := f.fn.rows[n][key]; ok {
			return name
		}
	}
	index := i.text
	if !(i.ranged && i.lo >= 0 && i.hi < int64(len(t.rows))) {
		t.masked = true
		index = arith("&", i, constantValue(int64(power(len(t.rows))-1), i.typ)).text
	}
	name := f.unique(t.name + "Row")
	f.emit(&stmt{kind: declare, names: []string{name}, right: "&" + t.name + "[" + index + "]", pure: true})
	f.fn.rows[len(f.fn.rows)-1][key] = name
	return name
}

// write is the declaration of a table.
func (t *tickTable) write(b *strings.Builder) (size int) {
	width, rows := t.width, len(t.rows)
	if t.wide {
		width = power(width)
	}
	if t.masked {
		rows = power(rows)
	}
	typ := goType(t.typ)
	line := func(row []any) {
		for i, c := range row {
			if i > 0 {
				b.WriteString(", ")
			}
			if c == nil {
				c = zeroOf(t.typ).con
			}
			b.WriteString(literal(c))
		}
	}
	if t.flat {
		fmt.Fprintf(b, "var %s = [%d]%s{", t.name, width, typ)
		line(t.rows[0])
		b.WriteString("}\n\n")
		return width * sizeOf(typ)
	}
	fmt.Fprintf(b, "var %s = [%d][%d]%s{\n", t.name, rows, width, typ)
	for _, r := range t.rows {
		b.WriteString("{")
		line(r)
		b.WriteString("},\n")
	}
	b.WriteString("}\n\n")
	return rows * width * sizeOf(typ)
}

func sizeOf(typ string) int {
	switch typ {
	case "bool", "int8", "uint8":
		return 1
	case "int32", "uint32":
		return 4
	}
	return 8
}
