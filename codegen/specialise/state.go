package specialise

import (
	"fmt"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// state writes the kernel's struct and the function that sets what it begins with.
func (s *spec) state() (text string, size int) {
	root := &layout{fields: map[string]*layout{}, of: map[string]*layout{}}
	keys := slices.Sorted(maps.Keys(s.shapes))
	keys = slices.DeleteFunc(keys, func(key string) bool { return !s.any[key] || !s.read["any "+key] })
	for _, key := range keys {
		root.add(s, strings.Split(key, ".")[1:], "k", s.shapes[key])
	}
	var b strings.Builder
	b.WriteString("// Kernel steps one plant.\ntype Kernel struct {\n")
	root.write(s, &b)
	b.WriteString("}\n\n")
	for _, name := range slices.Sorted(maps.Keys(root.of)) {
		if name == "Event" {
			b.WriteString("// Event is one transition: its time, s; the element, an index into Elements; what it was and\n// became, as a mode (-1 slips backward, 0 stuck, 1 slips forward, 2 free, 3 struck) or a region.\n")
		}
		b.WriteString("type " + name + " struct {\n")
		root.of[name].write(s, &b)
		b.WriteString("}\n\n")
	}
	b.WriteString("// create sets what a new kernel begins with.\n//\n//go:nosplit\nfunc (k *Kernel) create() {\n")
	for _, key := range keys {
		for _, c := range cells(s.shapes[key]) {
			if con := plain(c.value); !alike(con, zeroOf(s.shapes[key].typ).con) {
				fmt.Fprintf(&b, "%s = %s\n", c.text, literal(con))
			}
		}
	}
	b.WriteString("}\n")
	return b.String(), root.total()
}

// cell is a number in the kernel as New left it.
type cell struct {
	text, sub string
	value     reflect.Value
}

// cells are all that a place would be with other indices.
func cells(p *place) (list []cell) {
	if p.parent == nil {
		return []cell{{text: p.text, value: p.one}}
	}
	for _, c := range cells(p.parent) {
		v := pointed(c.value)
		if p.index == nil {
			f := v.Type().Field(p.nth)
			if !f.Anonymous {
				c.sub += joined(c.sub, f.Name)
			}
			c.value = v.Field(p.nth)
			if p.typ.Underlying().String() != "" && c.value.Kind() != reflect.Struct && c.sub != "" {
				c.text, c.sub = dotted(c.text, c.sub), ""
			}
			list = append(list, c)
			continue
		}
		for i := range v.Len() {
			list = append(list, cell{text: dotted(c.text, c.sub) + "[" + strconv.Itoa(i) + "]", value: v.Index(i)})
		}
	}
	return list
}

// layout is a struct of the generated package, or an array of such, or of numbers.
type layout struct {
	fields map[string]*layout
	typ    string             // of a number, or the name of a struct
	size   int                // of an array; 0 for none
	bytes  int                // of one
	of     map[string]*layout // structs by name, of all
}

// add adds what a path of fields and indices leads to.
func (l *layout) add(s *spec, path []string, key string, at *place) {
	name, indexed := strings.CutSuffix(path[0], "[*]")
	f := l.fields[name]
	if f == nil {
		f = &layout{of: l.of}
		l.fields[name] = f
	}
	key += "." + name
	if indexed {
		f.size = max(f.size, s.sizes[key], s.padded[key], 1) // C has no array of nothing
		key += "[*]"
	}
	if len(path) == 1 {
		f.typ = goType(at.typ)
		f.bytes = sizeOf(f.typ)
		return
	}
	p := at
	for strings.Count(wild(p.cell()), ".") > strings.Count(key, ".") || p.index == nil {
		p = p.parent
	}
	f.typ = structName(p.typ)
	if l.of[f.typ] == nil {
		l.of[f.typ] = &layout{fields: map[string]*layout{}, of: l.of}
	}
	l.of[f.typ].add(s, path[1:], key, at)
}

// structName is the generated name of a struct.
func structName(t types.Type) string {
	name := t.String()[strings.LastIndex(t.String(), ".")+1:]
	if name == "Event" {
		return name // the package shows it
	}
	return strings.ToLower(name)
}

func (l *layout) write(s *spec, b *strings.Builder) {
	for _, name := range slices.Sorted(maps.Keys(l.fields)) {
		f := l.fields[name]
		text := f.typ
		if f.size > 0 {
			text = fmt.Sprintf("[%d]%s", f.size, f.typ)
			if about := s.listed(name); about != "" {
				text += " // " + about
			}
		}
		b.WriteString(name + " " + text + "\n")
	}
}

// total is how many bytes a struct takes.
func (l *layout) total() (n int) {
	for _, f := range l.fields {
		one := f.bytes
		if of := l.of[f.typ]; of != nil {
			one = of.total()
		}
		n += one * max(f.size, 1)
	}
	return n
}
