package sched

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Usage is what the kernel counts of one thread, from its beginning.
type Usage struct {
	Minor       int64 // page faults: the page was in memory
	Major       int64 // page faults: the page had to be read
	Voluntary   int64 // context switches: the thread slept
	Involuntary int64 // context switches: another one took its CPU
}

// Read reads the counts of the calling thread, getrusage(2).
//
//go:nosplit
func (u *Usage) Read() {
	var ru unix.Rusage
	_, _, _ = unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&ru)), 0) // cannot fail for the thread itself
	u.Minor, u.Major = int64(ru.Minflt), int64(ru.Majflt)
	u.Voluntary, u.Involuntary = int64(ru.Nvcsw), int64(ru.Nivcsw)
}

// Faults returns the page faults of the process so far: minor ones (the page
// was in memory) and major ones (it had to be read), getrusage(2).
func Faults() (minor, major int64) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, 0 // cannot fail for the process itself
	}
	return int64(ru.Minflt), int64(ru.Majflt)
}
