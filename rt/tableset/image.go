package tableset

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"unsafe"
)

// alignment is the alignment of each block of an image, bytes: a cache line.
const alignment = 64

// image is a value and all that it points to: blocks of memory, and where they hold pointers.
type image struct {
	blocks   []block          // by address, disjoint
	pointers []unsafe.Pointer // places of pointers, in the blocks
	calls    []unsafe.Pointer // places of functions, in the root
	visited  map[place]bool
	root     unsafe.Pointer
}

// block is a part of the memory of this process.
type block struct {
	start unsafe.Pointer
	size  uintptr
	at    uintptr // place in the image, bytes
}

// place is a value at an address.
type place struct {
	at unsafe.Pointer
	of reflect.Type
}

// newImage collects what root, a pointer, points to. Its memory must not change as long as the image is
// used. It panics where the memory holds maps, channels or interfaces.
func newImage[T any](root *T) *image {
	m := &image{visited: map[place]bool{}, root: unsafe.Pointer(root)}
	m.pointTo(m.root, reflect.TypeFor[T](), 1, 1)
	slices.SortFunc(m.blocks, func(a, b block) int {
		return cmp.Or(cmp.Compare(uintptr(a.start), uintptr(b.start)), cmp.Compare(b.size, a.size))
	})
	disjoint := m.blocks[:0]
	for _, b := range m.blocks { // parts of one array become one block
		if n := len(disjoint); n > 0 && uintptr(b.start) < disjoint[n-1].end() {
			disjoint[n-1].size = max(disjoint[n-1].end(), b.end()) - uintptr(disjoint[n-1].start)
			continue
		}
		disjoint = append(disjoint, b)
	}
	m.blocks = disjoint

	at := uintptr(0)
	place := func(b *block) {
		b.at, at = at, (at+b.size+alignment-1)&^(alignment-1)
	}
	first := m.find(m.root)
	place(first)
	for i := range m.blocks {
		if b := &m.blocks[i]; b != first {
			place(b)
		}
	}
	return m
}

func (b *block) end() uintptr { return uintptr(b.start) + b.size }

// size returns the size of the image, bytes.
func (m *image) size() (n uintptr) {
	for _, b := range m.blocks {
		n = max(n, b.at+b.size)
	}
	return n
}

// pointTo notes room values of a type that a pointer or a slice points to; the first used ones are valid.
func (m *image) pointTo(at unsafe.Pointer, t reflect.Type, used, room int) {
	if at == nil || room == 0 || t.Size() == 0 {
		return
	}
	m.blocks = append(m.blocks, block{start: at, size: uintptr(room) * t.Size()})
	for i := range used {
		m.visit(unsafe.Add(at, uintptr(i)*t.Size()), t)
	}
}

// visit notes what the value at an address points to.
func (m *image) visit(at unsafe.Pointer, t reflect.Type) {
	if isFlat(t) || m.visited[place{at, t}] {
		return
	}
	m.visited[place{at, t}] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			m.visit(unsafe.Add(at, f.Offset), f.Type)
		}
	case reflect.Array:
		for i := range t.Len() {
			m.visit(unsafe.Add(at, uintptr(i)*t.Elem().Size()), t.Elem())
		}
	case reflect.Pointer:
		m.pointers = append(m.pointers, at)
		m.pointTo(*(*unsafe.Pointer)(at), t.Elem(), 1, 1)
	case reflect.Slice:
		s := (*struct {
			data       unsafe.Pointer
			used, room int
		})(at)
		m.pointers = append(m.pointers, at)
		m.pointTo(s.data, t.Elem(), s.used, s.room)
	case reflect.String:
		m.pointers = append(m.pointers, at)
		text := *(*string)(at)
		m.pointTo(unsafe.Pointer(unsafe.StringData(text)), reflect.TypeFor[byte](), 0, len(text))
	case reflect.Func: // belongs to one process; kernel.Sequence.UseSlots sets it
		m.calls = append(m.calls, at)
	default:
		panic(fmt.Sprintf("tableset: a %v cannot be handed over", t))
	}
}

// isFlat reports whether a value of a type holds no pointer.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if !isFlat(t.Field(i).Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return isFlat(t.Elem())
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}

// find returns the block that holds an address; nil: none.
func (m *image) find(at unsafe.Pointer) *block {
	i, found := slices.BinarySearchFunc(m.blocks, uintptr(at), func(b block, at uintptr) int {
		return cmp.Compare(uintptr(b.start), at)
	})
	if !found {
		i--
	}
	if i < 0 || uintptr(at) >= m.blocks[i].end() {
		return nil
	}
	return &m.blocks[i]
}

// write writes the image to memory that another process has at an address. Functions there stay.
func (m *image) write(to []byte, address uintptr) {
	word := func(at unsafe.Pointer) *uintptr {
		b := m.find(at)
		return (*uintptr)(unsafe.Pointer(&to[b.at+uintptr(at)-uintptr(b.start)]))
	}
	calls := make([]uintptr, len(m.calls))
	for i, at := range m.calls {
		calls[i] = *word(at)
	}
	for _, b := range m.blocks {
		copy(to[b.at:], unsafe.Slice((*byte)(b.start), b.size))
	}
	for _, p := range m.pointers {
		target, from := uintptr(0), *(*unsafe.Pointer)(p)
		switch b := m.find(from); {
		case from == nil:
		case b == nil: // an empty slice, which must not be nil
			target = address
		default:
			target = address + b.at + uintptr(from) - uintptr(b.start)
		}
		*word(p) = target
	}
	for i, at := range m.calls {
		*word(at) = calls[i]
	}
}

// layoutOf returns a number that differs between types that lie differently in memory.
func layoutOf(t reflect.Type) uint64 {
	h, seen := fnv.New64a(), map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		fmt.Fprintf(h, "%v %d ", t, t.Size())
		if seen[t] {
			return
		}
		seen[t] = true
		switch t.Kind() {
		case reflect.Struct:
			for f := range t.Fields() {
				fmt.Fprintf(h, "%s %d ", f.Name, f.Offset)
				add(f.Type)
			}
		case reflect.Pointer, reflect.Slice, reflect.Array:
			add(t.Elem())
		}
	}
	add(t)
	return h.Sum64()
}
