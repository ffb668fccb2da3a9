package rt

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of linux/futex.h.
const (
	futexWait    = 0       // FUTEX_WAIT, on memory shared between processes
	futexWaiters = 1 << 31 // FUTEX_WAITERS: the kernel must wake a waiter
	futexDied    = 1 << 30 // FUTEX_OWNER_DIED
)

// RegisterThreadExit makes the kernel mark the status block, and wake WaitThreadExit, when the
// calling thread ends for any reason. This is the earliest sign of the end: the parent learns of
// the end of a process only after its other threads ended and its memory was freed, 15 ms for 140
// MB of locked memory. The goroutine must be locked to its thread.
//
// The status block holds the thread's list of robust futexes (linux/futex.h). The list is empty,
// and its pending entry is ThreadExit: the kernel looks for the thread's id there when the thread
// ends.
func (p *StatusBlock) RegisterThreadExit() error {
	tid := uint64(unix.Gettid() | futexWaiters)
	p.ThreadExit.Store(tid<<32 | tid) // the first four bytes are the futex, in either byte order
	p.robustList[0].Store(uint64(uintptr(unsafe.Pointer(&p.robustList))))
	p.robustList[2].Store(uint64(uintptr(unsafe.Pointer(&p.ThreadExit))))
	_, _, errno := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(&p.robustList)), unsafe.Sizeof(p.robustList), 0)
	if errno != 0 {
		p.ThreadExit.Store(0)
	}
	if errno == unix.ENOSYS { // an emulator: WaitThreadExit knows nothing, the end of the process is seen instead
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("rt: thread %d: %w", unix.Gettid(), os.NewSyscallError("set_robust_list", errno))
	}
	return nil
}

// WaitThreadExit waits, at most d, for the end of the thread that called RegisterThreadExit. It
// returns known false at once if no thread has.
func (p *StatusBlock) WaitThreadExit(d time.Duration) (died, known bool) {
	life := p.exitFutex()
	if life == 0 {
		return false, false
	}
	t := unix.NsecToTimespec(int64(d))
	if life&futexDied == 0 { // the kernel waits only if the value is still the same
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&p.ThreadExit)), futexWait, uintptr(life),
			uintptr(unsafe.Pointer(&t)), 0, 0)
	}

	return p.exitFutex()&futexDied != 0, true
}

// exitFutex returns the futex: the first four bytes of ThreadExit.
func (p *StatusBlock) exitFutex() uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&p.ThreadExit)))
}
