package specialise

import (
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"strings"
	"sync"
)

// place is a cell: in the tables, in the generated Kernel, or in an array that a function receives.
// It is a field or an element of its parent.
type place struct {
	parent     *place
	fieldIndex int    // index of a field in its parent
	index      *value // index of an element in its parent

	text  string // generated code, up to the last index
	sub   string // names of the fields after it, joined
	key   string // text with * for the indices that the tick computes
	wild  string // text with * for every index
	typ   types.Type
	fixed bool // nothing assigns to the place
	param bool // array of a parameter: its content is not known
	known bool // no index on the path is computed in the tick
	class int  // class of programs, from 1, to which the index is restricted; 0: none

	family func() family // values after New
}

// family lists the values that a place can stand for, and the index by which the tick selects one.
type family struct {
	list []reflect.Value // values; invalid where they cannot be reached
	at   *value          // index into list
}

// variablePlace returns the place of a variable.
func variablePlace(name string, typ types.Type, v reflect.Value) *place {
	one := family{list: []reflect.Value{v}, at: wholeNumber(0)}
	return &place{text: name, key: name, wild: name, typ: typ, known: true, family: func() family { return one }}
}

// partFamily returns the family of one part, such as a field, of every value of p's family.
func (p *place) partFamily(part func(reflect.Value) reflect.Value) func() family {
	return sync.OnceValue(func() family {
		from := p.family()
		out := family{at: from.at}
		for _, m := range from.list {
			if m = pointed(m); m.IsValid() {
				m = part(m)
			}
			out.list = append(out.list, m)
		}

		return out
	})
}

// full returns text and the fields after it.
func (p *place) full() string { return dotted(p.text, p.sub) }

// cell returns full with * for the indices that the tick computes.
func (p *place) cell() string { return dotted(p.key, p.sub) }

// shape returns full with * for every index.
func (p *place) shape() string { return dotted(p.wild, p.sub) }

// dotted joins a text and the fields after it.
func dotted(text, sub string) string {
	if sub == "" {
		return text
	}
	return text + "." + sub
}

// field returns field i of a struct, or of a pointer's target.
func (p *place) field(i int) *place {
	f := structOf(p.typ).Field(i)
	q := *p
	q.parent, q.fieldIndex, q.index, q.class, q.typ = p, i, nil, 0, f.Type()
	q.family = p.partFamily(func(v reflect.Value) reflect.Value { return v.Field(i) })
	if _, pointer := f.Type().Underlying().(*types.Pointer); pointer {
		q.fixed = true // a kernel points to nothing but its tables
	}
	if !f.Embedded() {
		q.sub += joined(q.sub, f.Name())
	}
	return &q
}

// pointed returns the target of a pointer, or v itself.
func pointed(v reflect.Value) reflect.Value {
	if v.IsValid() && v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

// joined returns name as the continuation of before in camel case: with a capital, unless before is
// empty.
func joined(before, name string) string {
	if before == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// element returns element i of a slice or array, or of a pointer's target array.
func (s *spec) element(p *place, i *value) *place {
	q := &place{
		parent: p, index: i, typ: elemOf(pointee(p.typ)), wild: p.shape() + "[*]",
		fixed: p.fixed, param: p.param, known: p.known,
	}
	n, ok := i.integer()
	if !ok {
		q.text, q.key = p.full()+"["+s.boundedIndex(p, i)+"]", p.cell()+"[*]"
		q.known, q.family = false, sync.OnceValue(func() family { return s.spread(p, i) })
		return q
	}

	index := fmt.Sprintf("[%d]", n)
	q.text, q.key = p.full()+index, p.cell()+index
	q.family = p.partFamily(func(v reflect.Value) reflect.Value {
		if n < 0 || int(n) >= v.Len() {
			return reflect.Value{}
		}
		return v.Index(int(n))
	})
	return q
}

// spread returns the family of the elements of all members of p, padded to one length.
func (s *spec) spread(p *place, i *value) (out family) {
	from, most := p.family(), s.arrayLength(p)
	for _, m := range from.list {
		m = pointed(m)
		for e := range most {
			if m.IsValid() && e < m.Len() {
				out.list = append(out.list, m.Index(e))
			} else {
				out.list = append(out.list, reflect.Value{})
			}
		}
	}

	if out.at = i; len(from.list) > 1 {
		out.at = arith(token.ADD, arith(token.MUL, from.at, wholeNumber(most)), i)
	}
	return out
}

// withIndices returns the same place with other values for its computed indices.
func (s *spec) withIndices(p *place, change func(*value) *value) *place {
	if p.parent == nil {
		return p
	}
	parent := s.withIndices(p.parent, change)
	if p.index == nil {
		if parent == p.parent {
			return p
		}
		return parent.field(p.fieldIndex)
	}

	index := p.index
	if index.con == nil {
		index = change(index)
	}
	if parent == p.parent && index == p.index {
		return p
	}
	q := s.element(parent, index)
	if p.class > 0 {
		q = s.ofClass(q, p.class-1)
	}
	return q
}

// pointee returns the target type of pointer type t, or t itself.
func pointee(t types.Type) types.Type {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		return ptr.Elem()
	}
	return t
}

// structOf returns the struct that t is or points to.
func structOf(t types.Type) *types.Struct { return pointee(t).Underlying().(*types.Struct) }

// elemOf returns the element type of an array or a slice.
func elemOf(t types.Type) types.Type {
	return t.Underlying().(interface{ Elem() types.Type }).Elem()
}

// elementIndex returns the index of element i of a slice in the array below it. Where the tick
// computes the start of the slice, the start is masked and the array is longer by the range of i.
// The compiler then sees all elements within bounds and computes the mask once.
func (f *frame) elementIndex(base, i *value) *value {
	at := base.at
	lo, hi, ok := i.bounds()
	if !ok || base.off.con != nil || base.off.ranged || at.param || lo < 0 || hi > maxPadding {
		return arith(token.ADD, base.off, i)
	}
	room := powerOfTwo(f.arrayLength(at))
	out := *arith(token.ADD, base.off.masked(room), i)
	out.bound = room + int(hi)
	return &out
}

// maxPadding is the number of elements by which an array may be extended.
const maxPadding = 1024
