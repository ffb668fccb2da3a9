package sched

import (
	"debug/elf"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
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

// reachable lists the memory of the process that the tick may reach: the used part of the heap, files, shared
// mappings, and what has been touched in all others or is near it. The tick may be the first to touch a large slice, or
// a table of a generated kernel.
func reachable() ([]mapping, error) {
	unused := firstUnused() // may make the heap grow
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	heap := uint64(uintptr(unsafe.Pointer(new([64]byte))))
	// The runtime places the arenas of the heap one after the other, far from all else. Where the address
	// space is small, as in user-mode Linux, they lie among the stacks, and only the first one counts.
	near := uint64(64 << 30)
	if heap < 1<<38 {
		near = 0
	}
	var list []mapping
	for _, m := range parseMaps(string(text)) {
		switch {
		case m.advice() == 0:
		case m.start <= unused && unused < m.end:
			list = append(list, m.used(unused))
		case m.shared || strings.HasPrefix(m.name, "/") || m.start < heap+near && heap < m.end+near:
			list = append(list, m)
		case m.end-m.start <= maxMapping:
			list = append(list, m.parts(m.touched())...)
		}
	}
	return list, nil
}

// firstUnused returns the first address of the heap that nothing uses; 0 if unknown. The runtime takes the lowest
// free address for a slice that is larger than what it keeps free per processor, 512 KiB. Where it has collected
// no garbage, as in a target, all free memory lies behind what is used.
func firstUnused() uint64 {
	var stats debug.GCStats
	if debug.ReadGCStats(&stats); stats.NumGC > 0 {
		return 0
	}
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(make([]byte, 576<<10)))))
}

// used returns the heap m from its first touched page up to a margin behind unused. The runtime leaves a random
// part at its beginning free, up to 4 MiB.
func (m mapping) used(unused uint64) mapping {
	size := uint64(os.Getpagesize())
	first := max(0, slices.Index(m.touched(), true))
	m.start, m.end = m.start+uint64(first)*size, min(m.end, (unused+untouchedMargin)/size*size)
	return m
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
		_ = m.populate()
		if m.read {
			touch(uintptr(m.start), uintptr(m.end))
		}
	}
}

// populate makes the pages of m present, on kernels since 5.14.
func (m mapping) populate() error {
	_, _, errno := unix.RawSyscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), uintptr(m.advice()))
	if errno != 0 {
		return errno
	}
	return nil
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

// tickPackages are the packages whose code a tick runs: those of lockstep, below its module, and others,
// without those of the runtime. The rest of the executable starts the run, reads files or draws charts.
var tickPackages = [2][]string{
	{"io/can", "io/sigmap", "model/kernel", "rt", "rt/fault", "rt/target", "sched"},
	{"main", "golang.org/x/sys/unix", "math", "math/bits", "sync/atomic", "syscall", "internal/abi", "internal/bytealg", "internal/cpu"},
}

// module is the path below which the packages of lockstep lie.
var module = strings.TrimSuffix(reflect.TypeFor[mapping]().PkgPath(), "sched")

// isOfTick reports whether a tick may run a function, by its name in the executable. Compilers compare
// values of a type by a function type:.eq.NAME. It does not allocate: a start asks for thousands of functions.
func isOfTick(function string) bool {
	function = strings.TrimPrefix(function, "type:.eq.")
	plain, _, _ := strings.Cut(function, "[") // without type arguments
	folder := strings.LastIndexByte(plain, '/') + 1
	name, _, _ := strings.Cut(function[folder:], ".")
	path := function[:folder+len(name)]
	if own, ok := strings.CutPrefix(path, module); ok {
		return slices.Contains(tickPackages[0], own)
	}
	return path == "runtime" || strings.HasPrefix(path, "internal/runtime/") || slices.Contains(tickPackages[1], path)
}

// codePart is the granularity at which code counts, bytes. The kernel maps a file around a fault by as
// much.
const codePart = 16 << 10

// code lists the parts of an executable mapping that hold functions of the tick, by the function table
// of the runtime. Code that is not of Go counts. A generated target is of the tick's packages as a whole.
func (m mapping) code() (list []mapping) {
	if strings.HasSuffix(module, "internal/") {
		return []mapping{m}
	}
	const step = 512 // bytes; the functions of a package lie together, and each look-up may allocate
	for at := m.start; at < m.end; at += codePart {
		end := min(at+codePart, m.end)
		for pc := at; pc < end; pc += step {
			if f := runtime.FuncForPC(uintptr(pc)); f != nil && !isOfTick(f.Name()) {
				continue
			}
			if n := len(list); n > 0 && list[n-1].end == at {
				list[n-1].end = end
			} else {
				part := m
				part.start, part.end = at, end
				list = append(list, part)
			}
			break
		}
	}
	return list
}

// without lists m without the whole pages from start to end.
func (m mapping) without(start, end uint64) []mapping {
	size := uint64(os.Getpagesize())
	start, end = (start+size-1)/size*size, end/size*size
	if start >= end || start < m.start || end > m.end {
		return []mapping{m}
	}
	before, after := m, m
	before.end, after.start = start, end
	return slices.DeleteFunc([]mapping{before, after}, func(p mapping) bool { return p.start == p.end })
}

// wholePages returns the addresses of the pages that hold nothing but data; two equal ones: there are none.
func wholePages(data []byte) (start, end uint64) {
	size, first := uint64(os.Getpagesize()), uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data))))
	start = (first + size - 1) / size * size
	return start, max(start, (first+uint64(len(data)))/size*size)
}

// withoutUnused lists m without the pages that hold nothing but data of the executable in unused.
func (m mapping) withoutUnused(unused [][]byte) []mapping {
	parts := []mapping{m}
	for _, data := range unused {
		var rest []mapping
		for _, part := range parts {
			rest = append(rest, part.without(wholePages(data))...)
		}
		parts = rest
	}
	return parts
}

// reachableByTick lists reachable without the code of other packages, without the runtime's table of
// functions, which stack growth, tracebacks and garbage collection read, and without unused data of the
// executable.
func reachableByTick(unused [][]byte) ([]mapping, error) {
	all, err := reachable()
	if err != nil {
		return nil, err
	}
	exe, _ := os.Executable()
	table := &elf.Section{}
	if f, err := elf.Open("/proc/self/exe"); err == nil {
		defer f.Close()
		if s := f.Section(".gopclntab"); s != nil {
			table = s
		}
	}
	var list []mapping
	for _, m := range all {
		parts := []mapping{m}
		switch {
		case m.name != exe:
		case m.write:
			parts = m.withoutUnused(unused)
		case m.exec:
			parts = m.code()
		default:
			parts = m.without(table.Addr, table.Addr+table.Size)
		}
		list = append(list, parts...)
	}
	// What start-up has used of the rest need not stay; the file has it.
	for _, m := range all {
		if m.name == exe && !m.write {
			_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), unix.MADV_DONTNEED)
		}
	}
	for _, data := range unused {
		start, end := wholePages(data)
		_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, uintptr(start), uintptr(end-start), unix.MADV_DONTNEED)
	}
	return list, nil
}

// keepPresent makes the memory that the tick may reach present and locks it; nil: locked. It drops
// unused, data of the executable that nothing writes and the tick does not reach.
func keepPresent(unused [][]byte) (missing *Missing) {
	for range 2 { // a mapping may disappear meanwhile: the second list is without it
		list, err := reachableByTick(unused)
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
