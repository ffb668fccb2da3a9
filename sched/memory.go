package sched

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sizes of memory that the tick does not reach, bytes.
const (
	// A larger mapping, unless it is the heap, is a reservation such as the race detector's shadow.
	maxMapping = 256 << 20
	// A larger part of an anonymous mapping that nothing has touched when the loop starts is a reservation:
	// the stack of a thread, an index of the runtime.
	maxUntouched = 1 << 20
	// The margin stays at both ends of such a part.
	untouchedMargin = 128 << 10
)

// LockedMemory is the memory that a run locks at most, bytes, unless its plant has tables of several
// MB. The run itself asks the kernel for what it needs.
const LockedMemory = 64 << 20

// mapping is one line of /proc/PID/maps.
type mapping struct {
	start, end uint64 // addresses
	read       bool
	write      bool
	exec       bool
	shared     bool
	name       string // file or [name]; empty: anonymous
}

// parseMaps reads the text of /proc/PID/maps, proc_pid_maps(5); it leaves out
// lines that it cannot read.
func parseMaps(text string) []mapping {
	var list []mapping
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 5 || len(f[1]) < 4 {
			continue
		}
		lo, hi, _ := strings.Cut(f[0], "-")
		start, err1 := strconv.ParseUint(lo, 16, 64)
		end, err2 := strconv.ParseUint(hi, 16, 64)
		if err1 != nil || err2 != nil || end < start {
			continue
		}
		m := mapping{start: start, end: end, read: f[1][0] == 'r', write: f[1][1] == 'w', exec: f[1][2] == 'x', shared: f[1][3] == 's'}
		m.name = strings.Join(f[5:], " ")
		list = append(list, m)
	}

	return list
}

// advice returns the madvise(2) advice that makes the pages of m present; 0 for a mapping without
// access or of the kernel ([vvar], [vdso], [vsyscall]).
func (m mapping) advice() int {
	switch {
	case strings.HasPrefix(m.name, "[v"):
		return 0
	case m.write:
		return unix.MADV_POPULATE_WRITE
	case m.read:
		return unix.MADV_POPULATE_READ
	}

	return 0
}

// reachable lists the memory of the process that the tick may reach: the heap, files, shared mappings, and
// what has been touched in all others or is near it. The tick may be the first to touch a large slice, or
// a table of a generated kernel.
func reachable() ([]mapping, error) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	const near = 64 << 30 // the runtime places the arenas of the heap one after the other
	heap := uint64(uintptr(unsafe.Pointer(new([64]byte))))
	var list []mapping
	for _, m := range parseMaps(string(text)) {
		switch {
		case m.advice() == 0:
		case m.shared || strings.HasPrefix(m.name, "/") || m.start < heap+near && heap < m.end+near:
			list = append(list, m)
		case m.end-m.start <= maxMapping:
			list = append(list, m.parts(m.touched())...)
		}
	}
	return list, nil
}

// touched returns for each page of an anonymous mapping whether it is present; nil if unknown.
func (m mapping) touched() []bool {
	list := make([]bool, (m.end-m.start)/uint64(os.Getpagesize()))
	entries := make([]byte, len(list))
	_, _, errno := unix.RawSyscall(unix.SYS_MINCORE, uintptr(m.start), uintptr(m.end-m.start), uintptr(unsafe.Pointer(&entries[0])))
	if errno != 0 {
		return nil
	}
	for i := range list {
		list[i] = entries[i]&1 != 0
	}
	return list
}

// parts lists m without its large untouched parts.
func (m mapping) parts(touched []bool) []mapping {
	if touched == nil {
		return []mapping{m}
	}
	size := uint64(os.Getpagesize())
	var list []mapping
	part := m
	part.end = m.start
	for i := range len(touched) + 1 {
		at := m.start + uint64(i)*size
		if i < len(touched) && !touched[i] {
			continue
		}
		if at-part.end > maxUntouched {
			if part.end > m.start {
				part.end += untouchedMargin
				list = append(list, part)
			}
			part.start = at - untouchedMargin
		}
		part.end = min(at+size, m.end)
	}
	return append(list, part)
}

// prefault makes pages of the process present, so that a first touch in the loop is no page fault,
// even without the right to lock memory. Errors are ignored: kernels before 5.14 do not know
// the advice, mappings may disappear meanwhile, and a run counts its page faults.
func prefault(list []mapping) {
	for _, m := range list {
		_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), uintptr(m.advice()))
		if m.read {
			touch(uintptr(m.start), uintptr(m.end))
		}
	}
}

// touched sums the bytes read by touch, so that the compiler keeps the reads.
var touched byte

// touch reads a byte of every page. On kernels before 5.14 only this makes pages present. User-mode
// Linux maps a page, and counts a fault, at its first use even if the page is present. A mapping
// that has been removed is skipped.
//
//go:norace
func touch(start, end uintptr) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _ = recover() }()
	for at := start; at < end; at += 4096 {
		touched += **(**byte)(unsafe.Pointer(&at))
	}
}

// lockMemory locks memory of the process; nil: done. It refuses to lock, and thereby to fill, more
// than half of the host's memory.
func lockMemory(list []mapping) *Missing {
	var size uint64
	for _, m := range list {
		size += m.end - m.start
	}

	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && size > uint64(info.Totalram)*uint64(info.Unit)/2 {
		return &Missing{
			Of:   ResourceMemory,
			What: fmt.Sprintf("memory cannot be locked: the run needs %d MB, more than half of the host's memory", size>>20),
			Help: "use a smaller plant",
		}
	}

	for _, m := range list {
		if _, _, errno := unix.RawSyscall(unix.SYS_MLOCK, uintptr(m.start), uintptr(m.end-m.start), 0); errno != 0 {
			_ = unix.Munlockall() // a part alone would keep no promise
			m := missingMemory(fmt.Sprintf("mlock of %d MB: %v", (size>>20)+1, errno))
			return &m
		}
	}

	return nil
}

// keepPresent makes the memory that the tick may reach present and locks it; nil: locked.
func keepPresent() (missing *Missing) {
	for range 2 { // a mapping may disappear meanwhile: the second list is without it
		list, err := reachable()
		if err != nil {
			m := missingMemory(err.Error())
			return &m
		}
		missing = lockMemory(list)
		prefault(list)
		if missing == nil {
			break
		}
	}
	return missing
}
