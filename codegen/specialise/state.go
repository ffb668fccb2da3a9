package specialise

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// field is a field of a generated struct.
type field struct {
	typ  string // type of a number, or the name of a struct
	size int    // length of an array; 0: not an array
}

// state returns the text of the kernel's struct and of the function that sets its initial values,
// and the size of a kernel, bytes.
func (s *spec) state() (text string, size int) {
	keys := slices.Sorted(maps.Keys(s.shapes))
	keys = slices.DeleteFunc(keys, func(key string) bool { return !s.assigned[shapePrefix+key] || !s.read[shapePrefix+key] })
	structs := map[string]map[string]field{}
	for _, key := range keys {
		s.layOut(structs, key)
	}

	var b strings.Builder
	b.WriteString("// Kernel steps one plant.\n")
	s.writeStruct(&b, "Kernel", structs["Kernel"])
	for _, name := range slices.Sorted(maps.Keys(structs)) {
		if name == "Event" {
			b.WriteString(eventText)
		}
		if name != "Kernel" {
			s.writeStruct(&b, name, structs[name])
		}
	}

	b.WriteString("// create sets the initial values of a new kernel.\n//\n//go:nosplit\n")
	b.WriteString("func (k *Kernel) create() {\n")
	for _, key := range keys {
		for _, at := range s.placesOfShape(s.shapes[key]) {
			if con := plain(at.family().list[0]); !sameBits(con, zeroOf(at.typ).con) {
				fmt.Fprintf(&b, "%s = %s\n", at.full(), literal(con))
			}
		}
	}

	b.WriteString("}\n")
	return b.String(), bytesOf(structs, field{typ: "Kernel"})
}

const eventText = `// Event is one transition: its time, s; the element, an index into Elements; its states before
// and after, as a mode (-1 slips backward, 0 locked, 1 slips forward, 2 free, 3 impact) or a
// region.
`

// placesOfShape returns the places with the shape of p.
func (s *spec) placesOfShape(p *place) (list []*place) {
	if p.parent == nil {
		return []*place{p}
	}
	for _, q := range s.placesOfShape(p.parent) {
		if p.index == nil {
			list = append(list, q.field(p.fieldIndex))
			continue
		}

		for i := range s.arrayLength(q) {
			list = append(list, s.element(q, wholeNumber(i)))
		}
	}

	return list
}

// layOut adds the field of a shape of cells to its struct. If the struct is an element of an array,
// it adds the array to the struct that contains it, up to the Kernel.
func (s *spec) layOut(structs map[string]map[string]field, key string) {
	p := s.shapes[key]
	typ := goType(p.typ)
	for key != s.root.key {
		dot := strings.LastIndexByte(key, '.')
		name, indexed := strings.CutSuffix(key[dot+1:], "[*]")
		f := field{typ: typ}
		if indexed {
			f.size = max(s.sizes[key[:len(key)-3]], s.padded[key[:len(key)-3]], 1) // C has no empty array
		}
		for key = key[:dot]; p.index == nil && p.parent != nil || p.shape() != key; {
			p = p.parent
		}

		typ = p.typ.(*types.Named).Obj().Name()
		if typ != "Kernel" && typ != "Event" { // these are exported
			typ = strings.ToLower(typ)
		}
		if structs[typ] == nil {
			structs[typ] = map[string]field{}
		}
		structs[typ][name] = f
	}
}

// writeStruct appends the declaration of a struct.
func (s *spec) writeStruct(b *strings.Builder, name string, fields map[string]field) {
	fmt.Fprintf(b, "type %s struct {\n", name)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch f := fields[name]; {
		case f.size == 0:
			fmt.Fprintf(b, "%s %s\n", name, f.typ)
		case s.elementList(name) != "":
			fmt.Fprintf(b, "%s [%d]%s // %s\n", name, f.size, f.typ, s.elementList(name))
		default:
			fmt.Fprintf(b, "%s [%d]%s\n", name, f.size, f.typ)
		}
	}

	b.WriteString("}\n\n")
}

// bytesOf returns the size of a field, bytes.
func bytesOf(structs map[string]map[string]field, f field) (n int) {
	if fields, ok := structs[f.typ]; ok {
		for _, part := range fields {
			n += bytesOf(structs, part)
		}
	} else {
		n = sizeOf(f.typ)
	}

	return n * max(f.size, 1)
}

// sizeOf returns the size of a number of a type, bytes.
func sizeOf(typ string) int {
	return int(sizes.Sizeof(types.Universe.Lookup(typ).Type()))
}
