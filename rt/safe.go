package rt

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// supervisorWatch is what the loop knows of the supervisor's process.
type supervisorWatch struct {
	pid  uint64 // Identity of the process watched; 0: none
	fd   int    // pidfd of the process; -1: none
	gone int64  // grid point at which its end was first seen; 0: it runs
	poll unix.PollFd
	now  unix.Timespec // zero: poll does not wait
}

// end ends the run; the first reason stays. If the bench declares safe values for this end, they
// are sent at once and then in the frames' cycles.
//
//go:nosplit
func (l *Loop) end(r Reason) {
	if l.reason != NotEnded {
		return
	}
	l.reason = r
	l.status.Reason.Store(uint64(r))
	if l.cfg.Safe.appliesTo(r) {
		l.shutdownTicks, l.urgent = l.cfg.Safe.Ticks, true
	}
}

// goSafe enters the safe state: from now on the bus carries the safe values, while the plant
// follows the clock. The run cannot leave the safe state; the first reason stays.
//
//go:nosplit
func (l *Loop) goSafe(r Reason) {
	if l.safe {
		return
	}
	l.safe, l.urgent = true, true
	l.status.SafeTick.Store(uint64(l.k + l.behind + 1))
	l.status.SafeReason.Store(uint64(r))
}

// shutdown serves n grid points of a run that has ended: it sends the safe values only.
//
//go:nosplit
func (l *Loop) shutdown(n int64) {
	l.safe = true
	l.behind += n
	l.send(l.k+l.behind, true)
	l.shutdownTicks -= n
}

// superviseRun ends the run, or enters the safe state, on a request in the status block, the loss
// of the supervisor or the loss of a bus. It makes at most three system calls.
//
//go:nosplit
func (l *Loop) superviseRun() {
	switch l.status.Stop.Load() {
	case 0:
	case StopSafe:
		l.goSafe(AddressLost)
	case StopShutdown:
		l.end(Shutdown)
	default:
		l.end(Stopped)
	}

	if l.supervisorGone() {
		l.reactToLoss(l.cfg.Supervisor.Action, SupervisorGone)
	}
	off := uint64(0)
	for b, bus := range l.buses {
		if bus.Off {
			off |= 1 << b
		}
	}

	if l.status.BusOff.Store(off); off != 0 {
		l.reactToLoss(l.cfg.Bus.Action, BusLost)
	}
}

//go:nosplit
func (l *Loop) reactToLoss(a Action, r Reason) {
	switch a {
	case GoSafe:
		l.goSafe(r)
	case GoEnd:
		l.end(r)
	}
}

// supervisorGone reports whether the supervisor ended at least Config.Supervisor.AfterNs ago and no
// other supervisor has taken over.
//
//go:nosplit
func (l *Loop) supervisorGone() bool {
	w := &l.supervisor
	if pid := l.status.Supervisor.Load(); pid != w.pid {
		w.takeOver(pid)
	}
	if w.pid == 0 {
		return false
	}
	if w.gone == 0 && w.hasEnded() {
		w.gone = l.k + l.behind
	}
	return w.gone != 0 && (l.k+l.behind-w.gone)*int64(l.cfg.Period) >= l.cfg.Supervisor.AfterNs
}

// takeOver watches another process as the supervisor.
//
//go:nosplit
func (w *supervisorWatch) takeOver(pid uint64) {
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

// hasEnded reports whether the process has ended. It asks by process id if there is no pidfd:
// before kernel 5.3, or if the process ended before it was watched.
//
//go:nosplit
func (w *supervisorWatch) hasEnded() bool {
	if w.fd < 0 {
		_, _, errno := unix.RawSyscall(unix.SYS_KILL, uintptr(w.pid), 0, 0)
		return errno == unix.ESRCH
	}

	w.poll = unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&w.poll)), 1,
		uintptr(unsafe.Pointer(&w.now)), 0, 0, 0)
	return errno == 0 && n == 1
}
