package sched

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls in which a Timer sleeps, by name.
const (
	Timerfd   = "timerfd"   // timerfd_create(2): the kernel counts the grid points
	Nanosleep = "nanosleep" // clock_nanosleep(2): a hard timer for a real-time thread on PREEMPT_RT
)

// MaxSpin is the longest spin of a Timer; a quarter of its period is the other limit.
// A spinning thread keeps all other threads off its CPU.
const MaxSpin = time.Millisecond

// byClock is the Timer.fd of a timer without a timerfd: it sleeps in clock_nanosleep.
const byClock = -2

// minClockRead is less than the duration of any clock reading, ns. The length of a spin divided by
// minClockRead limits the readings of the spin.
const minClockRead = 10

// Timer is the Ticker of a run in real time. It sleeps until the absolute
// instants of the grid, so that it does not drift, in one of two system calls:
// reading a timerfd, whose expirations the kernel counts, or clock_nanosleep,
// after which the clock tells how many points have passed. Either way no grid
// point passes uncounted, however late the thread gets to run.
//
// The system calls are raw: the Go runtime takes the thread for one that
// computes, so the sleeping thread keeps its processor of the runtime and can
// continue at the wake-up at once. After 10 ms the runtime would preempt such a
// goroutine at its next function call; Wait and what it calls cannot be
// preempted (nosplit), and neither may be the loop around it. The price is that
// the runtime cannot stop the world, nor finish a garbage collection, before the
// loop ends or makes an ordinary call.
type Timer struct {
	fd     int // the timerfd, or byClock
	grid   Grid
	spin   int64  // time from the wake-up to the grid point, ns
	woken  int64  // last grid point with a wake-up
	passed int64  // last grid point that Wait has counted
	count  uint64 // expirations since the last read, written by the kernel
	spec   unix.ItimerSpec
	until  unix.Timespec
	errno  unix.Errno // error of the sleep; 0: none
}

// NewTimer returns a ticker of the given period, > 0, that sleeps in the named
// system call. It wakes up spin before each grid point and then reads the clock
// until the point has come, which hides the wake-up latency. spin is 0 (no spin) to
// a quarter of the period, at most MaxSpin. The caller closes the timer.
func NewTimer(sleep string, period, spin time.Duration) (*Timer, error) {
	switch {
	case period <= 0:
		return nil, fmt.Errorf("sched: period %v is not positive", period)
	case spin < 0 || spin > min(period/4, MaxSpin):
		return nil, fmt.Errorf("sched: spin %v: with a period of %v use 0 to %v", spin, period, min(period/4, MaxSpin))
	case sleep != Timerfd && sleep != Nanosleep:
		return nil, fmt.Errorf("sched: timer %q: use %s or %s", sleep, Timerfd, Nanosleep)
	}

	t := &Timer{fd: byClock, grid: Grid{Period: int64(period)}, spin: int64(spin)}
	if sleep == Timerfd {
		fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("sched: timer: %w", os.NewSyscallError("timerfd_create", err))
		}
		t.fd = fd
	}

	return t, nil
}

// Start places the grid: point 1 is due one period from now. Call it before Wait.
func (t *Timer) Start() error {
	t.woken, t.passed = 0, 0
	t.grid.Start = Now()
	if t.fd == byClock {
		return nil
	}
	t.spec.Interval = unix.NsecToTimespec(t.grid.Period)
	t.spec.Value = unix.NsecToTimespec(t.grid.Due(1) - t.spin)
	if err := unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &t.spec, nil); err != nil {
		return fmt.Errorf("sched: timer of %v: %w", time.Duration(t.grid.Period), os.NewSyscallError("timerfd_settime", err))
	}
	return nil
}

// Wait sleeps until the next grid point and returns the number of grid points passed
// since the last Wait, >= 1; 0 if the timer failed. A signal neither ends nor shifts
// the sleep.
//
//go:nosplit
func (t *Timer) Wait() int64 {
	if (t.woken <= t.passed || Now() >= t.grid.Due(t.woken+1)-t.spin) && !t.sleep() {
		return 0
	}
	last := max(t.woken, t.passed+1)
	if t.spin > 0 {
		// After a late wake-up the last of several points may not be due yet: the next
		// Wait returns this point.
		if now := t.spinUntil(t.grid.Due(t.passed + 1)); last > t.passed+1 && now < t.grid.Due(last) {
			last--
		}
	}

	n := last - t.passed
	t.passed = last
	return n
}

// sleep sleeps until the wake-up for the next grid point and sets woken to the last
// point whose wake-up was due meanwhile; false: the timer failed.
//
//go:nosplit
func (t *Timer) sleep() bool {
	var errno unix.Errno
	for {
		if t.fd == byClock {
			t.until = unix.NsecToTimespec(t.grid.Due(t.woken+1) - t.spin)
			_, _, errno = unix.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME,
				uintptr(unsafe.Pointer(&t.until)), 0, 0, 0)
		} else {
			_, _, errno = unix.RawSyscall(unix.SYS_READ, uintptr(t.fd), uintptr(unsafe.Pointer(&t.count)), unsafe.Sizeof(t.count))
		}

		if errno != unix.EINTR { // the instant is absolute: another call does not shift it
			break
		}
	}

	switch {
	case errno != 0:
		t.errno = errno
		return false
	case t.fd == byClock:
		t.woken = max(t.woken+1, (Now()+t.spin-t.grid.Start)/t.grid.Period)
	default:
		t.woken += int64(t.count)
	}

	return true
}

// spinUntil reads the clock until due, at most spin away, and returns the instant.
//
//go:nosplit
func (t *Timer) spinUntil(due int64) int64 {
	now := Now()
	for range t.spin / minClockRead {
		if now >= due {
			break
		}
		now = Now()
	}

	return now
}

// Err returns the error with which Wait returned 0, nil before.
func (t *Timer) Err() error {
	switch {
	case t.errno == 0:
		return nil
	case t.fd == byClock:
		return fmt.Errorf("sched: timer: %w", os.NewSyscallError("clock_nanosleep", t.errno))
	}

	return fmt.Errorf("sched: timer: %w", os.NewSyscallError("read", t.errno))
}

// Now returns the instant, ns on CLOCK_MONOTONIC.
//
//go:nosplit
func (t *Timer) Now() int64 { return Now() }

// Grid returns the grid that Start has placed.
//
//go:nosplit
func (t *Timer) Grid() Grid { return t.grid }

// Close releases the timer: Wait fails from now on.
func (t *Timer) Close() error {
	fd := t.fd
	t.fd = -1
	if fd == byClock {
		return nil
	}
	return os.NewSyscallError("close", unix.Close(fd))
}
