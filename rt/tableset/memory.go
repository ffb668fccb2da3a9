package tableset

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/model/kernel"
	"lockstep/rt"
)

// Slots is the number of sets of kernels for which there is room: one may be in use while the other is written.
const Slots = 2

// MaxSet is the largest number of kernels in a set.
const MaxSet = 64

// maxText is the longest text that a slot holds besides its kernels, bytes.
const maxText = 16<<10 - 8

// Memory is room for two sets of kernels, shared by the target and its supervisor.
type Memory struct {
	head  *head
	slots [Slots][]byte // 8 bytes length of the text, the text, the images of the kernels
	set   int           // kernels in a set
	room  int           // for an image, bytes
}

// head is the first page of the memory.
type head struct {
	layout  atomic.Uint64 // layout of a kernel in the target; 0: the target has not mapped the memory
	address atomic.Uint64 // of the first slot in the target
	set     atomic.Uint64 // kernels in a set
}

const (
	headSize  = 4096
	imageFrom = maxText + 8 // in a slot, bytes
)

// New returns a memory for sets of kernels like k, each a quarter larger, and the file that holds it, for a
// child to inherit. A set has set kernels.
func New(k *kernel.Kernel, set int) (*os.File, *Memory, error) {
	if set < 1 || set > MaxSet {
		return nil, nil, fmt.Errorf("tableset: %d kernels in a set; 1 to %d are possible", set, MaxSet)
	}
	slot := imageFrom + set*((int(newImage(k).size())*5/4+64<<10)&^(alignment-1))
	f, err := rt.SealedFile("lockstep-tables", 0, func(f *os.File) error { return f.Truncate(int64(headSize + Slots*slot)) })
	if err != nil {
		return nil, nil, fmt.Errorf("tableset: memory of %d bytes: %w", Slots*slot, err)
	}
	m, err := mapSets(f, func(*head) int { return set })
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	m.head.set.Store(uint64(set))
	return f, m, nil
}

// Map maps the memory in f, which the process has inherited or opened.
func Map(f *os.File) (*Memory, error) {
	return mapSets(f, func(h *head) int { return int(min(h.set.Load(), MaxSet+1)) })
}

// mapSets maps the memory; setSize returns the number of kernels in a set.
func mapSets(f *os.File, setSize func(*head) int) (*Memory, error) {
	info, err := f.Stat()
	if err == nil && info.Size() < headSize+Slots*imageFrom {
		err = fmt.Errorf("%d bytes are too few", info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("tableset: %w", err)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("tableset: memory of %d bytes: %w", info.Size(), os.NewSyscallError("mmap", err))
	}
	_ = unix.Madvise(mem, unix.MADV_POPULATE_WRITE) // no page fault later; Linux 5.14
	m := &Memory{head: (*head)(unsafe.Pointer(&mem[0]))}
	slot := (len(mem) - headSize) / Slots
	m.set = setSize(m.head)
	if m.set < 1 || m.set > MaxSet || slot < imageFrom+m.set*alignment {
		return nil, fmt.Errorf("tableset: %d kernels in a set of %d bytes", m.set, slot)
	}
	m.room = (slot - imageFrom) / m.set &^ (alignment - 1)
	for i := range m.slots {
		m.slots[i] = mem[headSize+i*slot:][:slot:slot]
	}
	return m, nil
}

// Kernels tells the supervisor where this process, the target, has mapped the memory, and returns the
// kernels in the slots, set after set, for kernel.Sequence.UseSlots. They are valid when Write has written them.
func (m *Memory) Kernels() (list []*kernel.Kernel) {
	m.head.address.Store(uint64(uintptr(unsafe.Pointer(&m.slots[0][0]))))
	m.head.layout.Store(layoutOf(reflect.TypeFor[kernel.Kernel]()))
	for _, s := range m.slots {
		for i := range m.set {
			list = append(list, (*kernel.Kernel)(unsafe.Pointer(&s[imageFrom+i*m.room])))
		}
	}
	return list
}

// Reasons to refuse a kernel.
var (
	errText   = fmt.Errorf("the parameters in effect have more than %d bytes of text", maxText)
	errLayout = errors.New("the target is of another version of lockstep than its supervisor")
)

// Write writes a set of kernels and a text to a slot that the target does not use. It leaves out a kernel that
// is nil: that of a phase that is over. An error says why the set cannot be handed over.
func (m *Memory) Write(slot int, set []*kernel.Kernel, text string) error {
	to := m.slots[slot]
	switch {
	case m.head.layout.Load() != layoutOf(reflect.TypeFor[kernel.Kernel]()):
		return errLayout
	case len(text) > maxText:
		return errText
	}
	images := make([]*image, len(set))
	for i, k := range set {
		if k == nil {
			continue
		}
		if images[i] = newImage(k); images[i].size() > uintptr(m.room) {
			return fmt.Errorf("its tables need %d KiB; the run has room for %d KiB", images[i].size()>>10, m.room>>10)
		}
	}
	for i, image := range images {
		if image != nil {
			at := imageFrom + i*m.room
			image.write(to[at:][:m.room], uintptr(m.head.address.Load())+uintptr(slot*len(to)+at))
		}
	}
	*(*uint64)(unsafe.Pointer(&to[0])) = uint64(len(text))
	copy(to[8:], text)
	return nil
}

// Text returns the text of a slot that was written.
func (m *Memory) Text(slot int) string {
	s := m.slots[slot]
	n := min(*(*uint64)(unsafe.Pointer(&s[0])), maxText)
	return string(s[8:][:n])
}
