package rt

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/sched"
)

// supervisorWatch is what the loop knows of the supervisor's process.
type supervisorWatch struct {
	who    uint64 // Identity of the process watched; 0: none
	fd     int    // pidfd of the process, noPidfd or endedProcess
	gone   int64  // grid point at which its end was first seen; 0: it runs
	opener sched.ProcessOpener
	poll   unix.PollFd
	now    unix.Timespec // zero: poll does not wait
}

// Values of supervisorWatch.fd.
const (
	noPidfd      = -1 // the kernel gives none: before 5.3
	endedProcess = -2 // the process had ended before it was watched
)

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
// of the supervisor or the loss of a bus. It makes one system call,
// and six more when another supervisor takes over.
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

	if off != l.status.BusOff.Load() { // a store costs more than a load
		l.status.BusOff.Store(off)
	}
	if off != 0 {
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
	if who := l.status.Supervisor.Load(); who != w.who {
		w.takeOver(who)
	}
	if w.who == 0 {
		return false
	}
	if w.gone == 0 && w.hasEnded() {
		w.gone = l.k + l.behind
	}
	return w.gone != 0 && (l.k+l.behind-w.gone)*int64(l.cfg.Period) >= l.cfg.Supervisor.AfterNs
}

// takeOver watches another process as the supervisor. A later process with the same id is not
// watched: its start time differs.
//
//go:nosplit
func (w *supervisorWatch) takeOver(who uint64) {
	if w.who != 0 && w.fd >= 0 {
		_, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(w.fd), 0, 0)
	}
	w.who, w.fd, w.gone = who, noPidfd, 0
	if who == 0 {
		return
	}
	switch fd, _, errno := w.opener.Open(SplitIdentity(who)); errno {
	case 0:
		w.fd = fd
	case unix.ESRCH:
		w.fd = endedProcess
	}
}

// hasEnded reports whether the process has ended. It asks by process id if there is no pidfd.
//
//go:nosplit
func (w *supervisorWatch) hasEnded() bool {
	switch w.fd {
	case endedProcess:
		return true
	case noPidfd:
		pid, _ := SplitIdentity(w.who)
		_, _, errno := unix.RawSyscall(unix.SYS_KILL, uintptr(pid), 0, 0)
		return errno == unix.ESRCH
	}

	w.poll = unix.PollFd{Fd: int32(w.fd), Events: unix.POLLIN}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&w.poll)), 1,
		uintptr(unsafe.Pointer(&w.now)), 0, 0, 0)
	return errno == 0 && n == 1
}
