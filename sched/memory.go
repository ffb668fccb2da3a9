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

// maxPrefault is the largest mapping that prefault makes present, bytes. A larger mapping is a
// reservation of the runtime, such as the race detector's shadow or the arenas of a large heap; a
// tick does not touch it.
const maxPrefault = 256 << 20

// mapping is one line of /proc/PID/maps.
type mapping struct {
	start, end uint64 // addresses
	read       bool
	write      bool
	exec       bool
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
		m := mapping{start: start, end: end, read: f[1][0] == 'r', write: f[1][1] == 'w', exec: f[1][2] == 'x'}
		m.name = strings.Join(f[5:], " ")
		list = append(list, m)
	}

	return list
}

// advice returns the madvise(2) advice that makes the pages of m present; 0 for a mapping without
// access, of the kernel ([vvar], [vdso], [vsyscall]) or larger than maxPrefault.
func (m mapping) advice() int {
	switch {
	case m.end-m.start > maxPrefault, strings.HasPrefix(m.name, "[v"):
		return 0
	case m.write:
		return unix.MADV_POPULATE_WRITE
	case m.read:
		return unix.MADV_POPULATE_READ
	}

	return 0
}

// prefault makes the pages of the process present in the mappings that wanted selects, so that a first
// touch in the loop is no page fault, even without the right to lock memory. Errors are ignored: kernels before 5.14 do not know
// the advice, mappings may disappear meanwhile, and a run counts its page faults.
func prefault(wanted func(m mapping) bool) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for _, m := range parseMaps(string(text)) {
		if a := m.advice(); a != 0 && wanted(m) {
			_, _, _ = unix.RawSyscall(unix.SYS_MADVISE, uintptr(m.start), uintptr(m.end-m.start), uintptr(a))
			if m.read {
				touch(uintptr(m.start), uintptr(m.end))
			}
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

// lockMemory locks all present and future memory of the process; nil: done.
// It refuses to lock, and thereby to fill, more than half of the host's memory.
func lockMemory() *Missing {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		m := missingMemory(err.Error())
		return &m
	}

	var size uint64
	for _, m := range parseMaps(string(text)) {
		if m.read || m.write || m.exec {
			size += m.end - m.start
		}
	}

	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && size > uint64(info.Totalram)*uint64(info.Unit)/2 {
		return &Missing{
			Of:   ResourceMemory,
			What: fmt.Sprintf("memory cannot be locked: the process maps %d MB, more than half of the host's memory", size>>20),
			Help: "use a build without the race detector, or a smaller plant",
		}
	}

	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE); err != nil {
		m := missingMemory(os.NewSyscallError("mlockall", err).Error())
		return &m
	}

	return nil
}
