// Package checkpoint owns the copy of the state of a running loop: the memory that its next ticks read.
//
// A Plan finds that memory once, before the first tick. Save copies it at one tick, in bounded time and without an
// allocation. Load writes a copy into values made from the same hand-over, so a record can begin in the middle of a
// run: its replay starts from the copy.
//
// The package does not know what the values mean, and does not decide when a record starts.
package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"reflect"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Plan is where the state of values lies in memory.
type Plan struct {
	blocks []block
	size   int // of a copy, bytes
	digest [sha256.Size]byte

	visited map[unsafe.Pointer]bool
	apart   bool   // the next part is of another allocation than the last block
	layout  []byte // description of types and sizes, input of digest; nil after New
}

// block is a part of memory without pointers.
type block struct{ bytes []byte }

// New returns the plan of the values that pointers point to. It follows pointers and slices, and leaves out strings,
// functions, interfaces, maps and fields with the tag `checkpoint:"-"`: what never changes, or is no state. A slice keeps its memory: its length may
// change up to its capacity.
func New(pointers ...any) *Plan {
	p := &Plan{visited: map[unsafe.Pointer]bool{}}
	for _, v := range pointers {
		p.add(reflect.ValueOf(v).UnsafePointer(), reflect.TypeOf(v).Elem())
	}
	p.digest = sha256.Sum256(p.layout)
	p.visited, p.layout = nil, nil
	return p
}

// add adds the value of a type at an address.
func (p *Plan) add(at unsafe.Pointer, t reflect.Type) {
	p.layout = fmt.Appendf(p.layout, "%s %d\n", t, t.Size())
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("checkpoint") != "-" {
				p.layout = append(p.layout, f.Name...)
				p.add(unsafe.Add(at, f.Offset), f.Type)
			}
		}
	case reflect.Array:
		p.elements(at, t.Elem(), t.Len())
	case reflect.Slice:
		s := reflect.NewAt(t, at).Elem()
		data := s.UnsafePointer()
		p.bytes(unsafe.Add(at, unsafe.Sizeof(at)), unsafe.Sizeof(s.Len())) // the length, behind the pointer
		if n := s.Cap(); data != nil && n > 0 {
			if !isFlat(t.Elem()) {
				n = s.Len()
			}
			p.apart = true
			p.elements(data, t.Elem(), n)
			p.apart = true
		}
	case reflect.Pointer:
		if to := *(*unsafe.Pointer)(at); to != nil && !p.visited[to] {
			p.visited[to] = true
			p.apart = true
			p.add(to, t.Elem())
			p.apart = true
		}
	case reflect.String, reflect.Func, reflect.Interface, reflect.Map, reflect.Chan, reflect.UnsafePointer:
	default:
		p.bytes(at, t.Size())
	}
}

// elements adds n values of a type that follow one another.
func (p *Plan) elements(at unsafe.Pointer, t reflect.Type, n int) {
	p.layout = fmt.Appendf(p.layout, "%d of %s %d\n", n, t, t.Size())
	if isFlat(t) {
		p.bytes(at, uintptr(n)*t.Size())
		return
	}
	for i := range n {
		p.add(unsafe.Add(at, uintptr(i)*t.Size()), t)
	}
}

// isFlat reports whether values of a type hold no pointer and no field that is left out.
func isFlat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			if f.Tag.Get("checkpoint") == "-" || !isFlat(f.Type) {
				return false
			}
		}
		return true
	case reflect.Array:
		return isFlat(t.Elem())
	}
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}

// bytes adds a part of memory. Parts of one allocation that touch become one.
func (p *Plan) bytes(at unsafe.Pointer, n uintptr) {
	if n == 0 {
		return
	}
	p.size += int(n)
	if len(p.blocks) > 0 && !p.apart {
		last := &p.blocks[len(p.blocks)-1]
		start := unsafe.SliceData(last.bytes)
		if uintptr(unsafe.Pointer(start))+uintptr(len(last.bytes)) == uintptr(at) {
			last.bytes = unsafe.Slice(start, len(last.bytes)+int(n))
			return
		}
	}
	p.apart = false
	p.blocks = append(p.blocks, block{unsafe.Slice((*byte)(at), n)})
}

// Size returns the size of a copy, bytes.
func (p *Plan) Size() int { return p.size }

// Digest identifies the layout of a copy: it differs between programs whose values lie differently in memory.
func (p *Plan) Digest() string { return hex.EncodeToString(p.digest[:]) }

// Save copies the state to memory of at least Size bytes.
//
//go:nosplit
func (p *Plan) Save(to []byte) {
	at := 0
	for i := range p.blocks {
		at += copy(to[at:], p.blocks[i].bytes)
	}
}

// ErrLayout means that a copy has another layout than the values that it is loaded into.
var ErrLayout = errors.New("the state has another layout")

// Load writes a copy into the values. The error is ErrLayout.
func (p *Plan) Load(from []byte, digest string) error {
	if digest != p.Digest() || len(from) != p.size {
		return ErrLayout
	}
	for i := range p.blocks {
		from = from[copy(p.blocks[i].bytes, from):]
	}
	return nil
}

// ErrSize means that a file has not the size of a Memory.
var ErrSize = errors.New("checkpoint: the file is no memory for a copy of the state")

// memorySize is the size of a Memory, bytes. Of a mapped one only what a copy needs stays.
const memorySize = 8 << 20

// Memory holds one copy, shared by a loop and its supervisor.
type Memory struct {
	bytes  []byte
	mapped bool
}

// head is the start of a Memory.
type head struct {
	size   uint64 // size of the copy, bytes; 0: there is no plan
	digest [sha256.Size]byte
}

// NewMemory returns memory of this process.
func NewMemory() *Memory { return &Memory{bytes: make([]byte, memorySize)} }

// CreateFile returns a sealed file for a Memory that two processes map.
func CreateFile() (*os.File, *Memory, error) {
	fd, err := unix.MemfdCreate("lockstep-state", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "lockstep-state")
	err = f.Truncate(memorySize)
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	m, mapErr := Map(f)
	if err = errors.Join(err, mapErr); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, m, nil
}

// Map maps the file of a Memory. The error is ErrSize for a file that CreateFile has not made.
func Map(f *os.File) (*Memory, error) {
	info, err := f.Stat()
	if err == nil && info.Size() != memorySize {
		err = ErrSize
	}
	if err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &Memory{b, true}, nil
}

func (m *Memory) head() *head { return (*head)(unsafe.Pointer(unsafe.SliceData(m.bytes))) }

// Use touches the memory for copies of a plan and unmaps the rest, which would be locked, too; false: it is too
// small. The process of the loop calls it before the first tick.
func (m *Memory) Use(p *Plan) bool {
	const at = unsafe.Sizeof(head{})
	if p.size > memorySize-int(at) {
		return false
	}
	p.Save(m.bytes[at:])
	h := m.head()
	h.size, h.digest = uint64(p.size), p.digest
	page := os.Getpagesize()
	if end := (int(at) + p.size + page - 1) / page * page; m.mapped && end < memorySize {
		rest := m.bytes[end:]
		if unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(rest)), uintptr(len(rest))) == nil {
			m.bytes = m.bytes[:end]
		}
	}
	return true
}

// Save copies the state of a plan that Use has taken.
//
//go:nosplit
func (m *Memory) Save(p *Plan) { p.Save(m.bytes[unsafe.Sizeof(head{}):]) }

// Used reports whether the loop makes copies.
func (m *Memory) Used() bool { return m.head().size != 0 }

// Copy returns the last copy and the digest of its layout; nil: the loop makes none.
func (m *Memory) Copy() (state []byte, digest string) {
	h := *m.head()
	if h.size == 0 || h.size > memorySize-uint64(unsafe.Sizeof(h)) {
		return nil, ""
	}
	return append(state, m.bytes[unsafe.Sizeof(h):][:h.size]...), hex.EncodeToString(h.digest[:])
}
