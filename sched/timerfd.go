package sched

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timerfd is the Ticker of a run in real time: a timerfd that expires at the
// absolute instants of the grid, timerfd_create(2). The kernel counts the
// expirations, so that no grid point passes uncounted however late the process
// gets to run.
//
// Wait tells the Go scheduler that it sleeps, so that a second processor of the
// runtime (GOMAXPROCS >= 2, which Thread.Enter sees to) is idle and free at the
// wake-up. A raw system call would keep its processor, and the scheduler would
// take the goroutine for one that computes without end and preempt it every
// 10 ms; that is the better way only for a loop that cannot be preempted.
type Timerfd struct {
	fd   int
	grid Grid
	spec unix.ItimerSpec
	buf  [8]byte // the expirations, in the host's byte order
}

// NewTimerfd returns a ticker of the given period, > 0. Close it.
func NewTimerfd(period time.Duration) (*Timerfd, error) {
	if period <= 0 {
		return nil, fmt.Errorf("sched: period %v is not positive", period)
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sched: timer: %w", os.NewSyscallError("timerfd_create", err))
	}
	return &Timerfd{fd: fd, grid: Grid{Period: int64(period)}}, nil
}

// Start arms the timer: grid point 1 is due one period from now.
func (t *Timerfd) Start() error {
	t.grid.Start = Now()
	t.spec.Interval = unix.NsecToTimespec(t.grid.Period)
	t.spec.Value = unix.NsecToTimespec(t.grid.Due(1))
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &t.spec, nil); err != nil {
		return fmt.Errorf("sched: timer of %v: %w", time.Duration(t.grid.Period), os.NewSyscallError("timerfd_settime", err))
	}
	return nil
}

// Wait sleeps until the next grid point and returns how many have passed since
// the last Wait, >= 1. A signal does not end it.
func (t *Timerfd) Wait() (int64, error) {
	for {
		_, err := unix.Read(t.fd, t.buf[:])
		if err == nil {
			return int64(binary.NativeEndian.Uint64(t.buf[:])), nil
		}
		if err != unix.EINTR {
			return 0, fmt.Errorf("sched: timer: %w", os.NewSyscallError("read", err))
		}
	}
}

// Now returns the instant, ns on CLOCK_MONOTONIC.
func (t *Timerfd) Now() int64 { return Now() }

// Grid returns the grid that Start has placed.
func (t *Timerfd) Grid() Grid { return t.grid }

// Close releases the timer.
func (t *Timerfd) Close() error {
	return os.NewSyscallError("close", unix.Close(t.fd))
}
