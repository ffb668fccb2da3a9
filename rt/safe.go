package rt

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// supervision is what the loop knows of the process that started it.
type supervision struct {
	pid  uint64 // Identity of the one fd is of; 0: none
	fd   int    // of the process
	gone int64  // grid point at which it was first seen to have ended; 0: it has not
	poll unix.PollFd
	now  unix.Timespec // zero: poll does not wait
}

// end ends the run; the first reason stays. The safe values follow, where the
// bench has some for this end: at once and in the frames' cycles.
//
//go:nosplit
func (l *Loop) end(r Reason) {
	if l.reason != NotEnded {
		return
	}
	l.reason = r
	l.page.Reason.Store(uint64(r))
	if l.cfg.Safe.follows(r) {
		l.left, l.urgent = l.cfg.Safe.Ticks, true
	}
}

// goSafe takes the bus to the safe state: from now on it carries the safe values,
// while the plant follows the clock. There is no way back; the first reason stays.
//
//go:nosplit
func (l *Loop) goSafe(r Reason) {
	if l.safe {
		return
	}
	l.safe, l.urgent = true, true
	l.page.SafeTick.Store(uint64(l.k + l.owed + 1))
	l.page.SafeReason.Store(uint64(r))
}

// farewell serves n grid points of a run that is over: the safe values only.
//
//go:nosplit
func (l *Loop) farewell(n int64) {
	l.safe = true
	l.owed += n
	l.send(l.k+l.owed, true)
	l.left -= n
}

// supervise looks whether the run is to end, and whether something it needs has
// gone. It takes at most three system calls.
//
//go:nosplit
func (l *Loop) supervise() {
	switch l.page.Stop.Load() {
	case 0:
	case StopSafe:
		l.goSafe(AddressLost)
	case StopShutdown:
		l.end(Shutdown)
	default:
		l.end(Stopped)
	}
	if l.supervisorGone() {
		l.lost(l.cfg.Supervisor.Action, SupervisorGone)
	}
	off := uint64(0)
	for b, bus := range l.buses {
		if bus.Off {
			off |= 1 << b
		}
	}
	if l.page.BusOff.Store(off); off != 0 {
		l.lost(l.cfg.Bus.Action, BusLost)
	}
}

//go:nosplit
func (l *Loop) lost(a Action, r Reason) {
	switch a {
	case GoSafe:
		l.goSafe(r)
	case GoEnd:
		l.end(r)
	}
}

// supervisorGone says that the supervisor has ended, and so long ago that
// Config.Supervisor applies. Another one may have taken its place meanwhile.
//
//go:nosplit
func (l *Loop) supervisorGone() bool {
	w := &l.watch
	if pid := l.page.Supervisor.Load(); pid != w.pid {
		w.adopt(pid)
	}
	if w.pid == 0 {
		return false
	}
	if w.gone == 0 && w.ended() {
		w.gone = l.k + l.owed
	}
	return w.gone != 0 && (l.k+l.owed-w.gone)*int64(l.cfg.Period) >= l.cfg.Supervisor.AfterNs
}

// adopt turns to another process.
//
//go:nosplit
func (w *supervision) adopt(pid uint64) {
	if w.pid != 0 && w.fd >= 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(w.fd), 0, 0)
	}
	w.pid, w.fd, w.gone = pid, -1, 0
	if pid == 0 {
		return
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(uint32(pid)), 0, 0)
	if errno == 0 {
		w.fd = int(fd)
	}
}

// ended says that the process has ended. Without a descriptor of it, on a kernel
// before 5.3 or because it ended before it was adopted, the process id tells.
//
//go:nosplit
func (w *supervision) ended() bool {
	if w.fd < 0 {
		_, _, errno := unix.RawSyscall(unix.SYS_KILL, uintptr(w.pid), 0, 0)
		return errno == unix.ESRCH
	}
	w.poll = unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&w.poll)), 1, uintptr(unsafe.Pointer(&w.now)), 0, 0, 0)
	return errno == 0 && n == 1
}
