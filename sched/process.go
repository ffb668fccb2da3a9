package sched

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ProcessOpener opens processes by their ids; it is the memory in which Open works.
type ProcessOpener struct {
	path [32]byte  // /proc/PID/stat, with a final zero
	stat [512]byte // beginning of that file, up to the start time at least
}

// Open returns a pidfd of the process with an id that started at began, in clock ticks since boot
// modulo 2^32, as in /proc/PID/stat; 0: not known. It also returns the start time that it has read;
// 0: it cannot read it. The error is unix.ESRCH if that process has ended, also where a later process
// has its id, and unix.ENOSYS on a kernel without pidfds (before 5.3). A start time that cannot be
// read is not compared.
//
// Open allocates nothing and makes at most five system calls.
//
//go:nosplit
func (o *ProcessOpener) Open(pid int, began uint32) (fd int, now uint32, errno unix.Errno) {
	opened, _, errno := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(uint32(pid)), 0, 0)
	// After the opening: a later process that has taken the id is noticed, too.
	now = o.startTime(uint32(pid))
	if began != 0 && now != 0 && now != began {
		if errno == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, opened, 0, 0)
		}
		return -1, now, unix.ESRCH
	}
	if errno != 0 {
		return -1, now, errno
	}
	return int(opened), now, 0
}

// startTime returns when a process started, in clock ticks since boot modulo 2^32; 0: not known.
//
//go:nosplit
func (o *ProcessOpener) startTime(pid uint32) uint32 {
	o.setPath(pid)
	dir := unix.AT_FDCWD
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&o.path)),
		unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&o.stat)), uintptr(len(o.stat)))
	_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	if errno != 0 {
		return 0
	}
	return startInStat(o.stat[:n])
}

// setPath writes the path of the file with the start time of a process.
//
//go:nosplit
func (o *ProcessOpener) setPath(pid uint32) {
	n := copy(o.path[:], "/proc/")
	digits := 1
	for rest := pid; rest >= 10; rest /= 10 {
		digits++
	}
	for i := n + digits - 1; i >= n; i-- {
		o.path[i] = '0' + byte(pid%10)
		pid /= 10
	}
	n += digits
	n += copy(o.path[n:], "/stat")
	o.path[n] = 0
}

// startInStat returns field 22 of the beginning of a stat file, proc_pid_stat(5), modulo 2^32; 0: the
// field is not there. The fields are counted from the last parenthesis, which ends field 2.
//
//go:nosplit
func startInStat(text []byte) (start uint32) {
	at := -1
	for i, c := range text {
		if c == ')' {
			at = i
		}
	}
	if at < 0 {
		return 0
	}
	field := 2
	for _, c := range text[at:] {
		switch {
		case c == ' ' && field == 22:
			return start
		case c == ' ':
			field++
		case field == 22 && c >= '0' && c <= '9':
			start = start*10 + uint32(c-'0')
		}
	}
	return 0
}
