package specialise

import (
	"fmt"
	"go/types"
	"reflect"
	"strings"
)

// place is where something lies: in what never changes, in the generated Kernel, or in an
// array that a function was given. It is a field or an element of its parent.
type place struct {
	parent *place
	nth    int    // of a field
	index  *value // of an element

	text  string // of the generated code, up to the last index
	sub   string // names of the fields behind that, joined
	key   string // text with * for what the tick computes
	typ   types.Type
	fixed bool // nothing can assign to it
	param bool // it is the array of a parameter: what it holds is not known
	one   reflect.Value
	many  func() family // where an index is computed in the tick
}

// family is one of several things of a kind, by an index that the tick computes.
type family struct {
	list []reflect.Value // those that cannot be reached are not valid
	at   *value
}

func (p *place) family() family {
	if p.many != nil {
		return p.many()
	}
	return family{list: []reflect.Value{p.one}, at: wholeNumber(0)}
}

// full is text and the fields behind it.
func (p *place) full() string { return dotted(p.text, p.sub) }

// cell is full with * for what the tick computes.
func (p *place) cell() string { return dotted(p.key, p.sub) }

func dotted(text, sub string) string {
	if sub == "" {
		return text
	}
	return text + "." + sub
}

// field is field i of a struct, or of what a pointer points to.
func (p *place) field(f *types.Var, i int) *place {
	q := *p
	q.parent, q.nth, q.index, q.typ = p, i, nil, f.Type()
	select1 := func(v reflect.Value) reflect.Value {
		if v = pointed(v); !v.IsValid() {
			return v
		}
		return v.Field(i)
	}
	if p.many == nil {
		q.one = select1(p.one)
	} else {
		q.many = once(func() (out family) {
			from := p.many()
			out.at = from.at
			for _, m := range from.list {
				out.list = append(out.list, select1(m))
			}
			return out
		})
	}
	if _, pointer := f.Type().Underlying().(*types.Pointer); pointer {
		q.fixed = true // what a kernel points to is its tables
	}
	if !f.Embedded() {
		q.sub += joined(q.sub, f.Name())
	}
	return &q
}

// pointed is what a pointer points to, or v itself.
func pointed(v reflect.Value) reflect.Value {
	if v.IsValid() && v.Kind() == reflect.Pointer {
		return v.Elem()
	}
	return v
}

func once(f func() family) func() family {
	var done *family
	return func() family {
		if done == nil {
			got := f()
			done = &got
		}
		return *done
	}
}

// joined is a name as it continues another.
func joined(before, name string) string {
	if before == "" {
		return name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

// element is element i of a slice or array.
func (s *spec) element(p *place, i *value, elem types.Type) *place {
	q := &place{parent: p, index: i, typ: elem, fixed: p.fixed, param: p.param}
	n, ok := i.integer()
	if !ok {
		q.text, q.key = p.full()+"["+s.bounded(p, i)+"]", p.cell()+"[*]"
		q.many = once(func() family { return spread(p, i) })
		return q
	}
	q.text, q.key = fmt.Sprintf("%s[%d]", p.full(), n), fmt.Sprintf("%s[%d]", p.cell(), n)
	at := func(v reflect.Value) reflect.Value {
		if v = pointed(v); !v.IsValid() || n < 0 || int(n) >= v.Len() {
			return reflect.Value{}
		}
		return v.Index(int(n))
	}
	switch {
	case p.param:
	case p.many == nil:
		q.one = at(p.one)
	default:
		q.many = once(func() (out family) {
			from := p.many()
			out.at = from.at
			for _, m := range from.list {
				out.list = append(out.list, at(m))
			}
			return out
		})
	}
	return q
}

// spread is the family of the elements of all members of p, which are filled up to one
// length.
func spread(p *place, i *value) (out family) {
	from, most := p.family(), 0
	for _, m := range from.list {
		if m = pointed(m); m.IsValid() {
			most = max(most, m.Len())
		}
	}
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
		out.at = arith("+", arith("*", from.at, wholeNumber(most)), i)
	}
	return out
}

// rebuilt is the same place with other values for what the tick computes.
func (s *spec) rebuilt(p *place, change func(*value) *value) *place {
	if p.parent == nil {
		return p
	}
	parent := s.rebuilt(p.parent, change)
	if p.index == nil {
		if parent == p.parent {
			return p
		}
		return parent.field(structOf(p.parent.typ).Field(p.nth), p.nth)
	}
	index := p.index
	if index.con == nil {
		index = change(index)
	}
	if parent == p.parent && index == p.index {
		return p
	}
	return s.element(parent, index, p.typ)
}

// structOf is the struct that t is or points to.
func structOf(t types.Type) *types.Struct {
	if ptr, ok := t.Underlying().(*types.Pointer); ok {
		t = ptr.Elem()
	}
	return t.Underlying().(*types.Struct)
}

// behind is the index of element i of a slice in the array below it. Where the slice begins
// in the tick only, that is masked, and the array longer by what i can be: so the compiler
// sees all elements within bounds and computes the mask once.
func (f *frame) behind(base, i *value) *value {
	at, lo, hi := base.at, i.lo, i.hi
	if n, ok := i.integer(); ok {
		lo, hi = n, n
	} else if !i.ranged {
		lo = -1
	}
	if base.off.con != nil || base.off.ranged || at.fixed || at.param || lo < 0 || hi > reach {
		return arith("+", base.off, i)
	}
	room := power(f.room(at))
	out := *arith("+", arith("&", base.off, constantValue(int64(room-1), base.off.typ)), i)
	out.within = room + int(hi)
	return &out
}

// reach is by how much an array may be made longer.
const reach = 256
