package can

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SO_MEMINFO fills an array of 32-bit values: linux/sock_diag.h, SK_MEMINFO_VARS. The
// value at memInfoDrops is the number of frames dropped, modulo 2^32.
const (
	memInfoLen   = 9
	memInfoDrops = 8
)

// batch is the number of messages one system call receives.
const batch = 32

// Bus sends and receives frames on one socket. It is not safe for concurrent use.
type Bus struct {
	Stats Stats
	FD    bool   // the bus carries CAN FD frames: the interface's MTU is 72
	Off   bool   // the controller reported bus-off, and no restart since
	Times *Times // arrivals in virtual time of the frames of a pair; nil: there are none

	errorsOnly bool // the socket receives error frames only: DialErrors
	inverted   bool // the filters name the frames not received: DialMonitor

	wire *wireEnd // of a bus by wire; nil: the bus carries frames

	fd    int
	drops uint32 // last value of SO_RXQ_OVFL, frames modulo 2^32
	stamp Stamp  // time stamps of the message that readFrame read last

	// Memory that the kernel reads and writes; newBus sets the addresses once.
	tx      Frame
	rx      [batch]Frame
	iov     [batch]unix.Iovec
	control [batch][11]uint64 // cmsgs: a uint32 in 24 bytes, three timespecs in 64
	msgs    [batch]unix.Mmsghdr
	poll    unix.PollFd
	now     unix.Timespec // zero: poll does not wait
	info    [memInfoLen]uint32
}

// Stats counts frames and failures on a bus since it was opened. A failure on a bus is
// counted and never returned as an error: the next tick comes either way.
type Stats struct {
	Rx         uint64 // frames received
	Tx         uint64 // frames handed to the kernel
	TxDropped  uint64 // frames not sent, whatever the reason
	RxOverflow uint64 // frames the kernel dropped from a full receive queue; updated with the next frame or by CountDrops
	BadSize    uint64 // messages that are not a frame: wrong size, or length beyond the size
	Down       uint64 // calls that found the interface down or the other end closed
	Errors     uint64 // calls that failed for any other reason
	Offs       uint64 // transitions of the controller to bus-off
}

// newBus makes a Bus of a socket; it owns fd.
func newBus(fd int) *Bus {
	b := &Bus{fd: fd}
	for i := range b.msgs {
		b.iov[i].Base = (*byte)(unsafe.Pointer(&b.rx[i]))
		b.iov[i].SetLen(sizeFD)
		h := &b.msgs[i].Hdr
		h.Iov = &b.iov[i]
		h.SetIovlen(1)
		h.Control = (*byte)(unsafe.Pointer(&b.control[i]))
	}

	b.poll = unix.PollFd{Fd: int32(fd), Events: unix.POLLRDHUP}
	return b
}

// Stamp is the reception time of a frame, ns since 1970; 0 where none is known, as on
// a pair. On a pair with Bus.Times, Soft is that of virtual time, ns since the start.
type Stamp struct {
	Soft int64 // software stamp of the kernel, CLOCK_REALTIME, ns
	Hard int64 // hardware stamp of the controller, on its own free-running clock, ns
}

// Times are the arrivals of the frames that one end of a pair has sent and the other end in the same
// process has not received, in virtual time.
type Times struct {
	list []int64 // ns since the start
	read int     // entries read
}

// Add adds the arrival of the frame that was sent last, ns since the start.
func (t *Times) Add(at int64) {
	if t.read == len(t.list) {
		t.list, t.read = t.list[:0], 0
	}
	t.list = append(t.list, at)
}

// next returns the arrival of the next frame; 0: it is not known.
//
//go:nosplit
func (t *Times) next() int64 {
	if t == nil || t.read == len(t.list) {
		return 0
	}
	t.read++
	return t.list[t.read-1]
}

// Recv moves received frames into dst and returns how many: 0 when there are
// none, when the bus is down and when the other end is closed. It does not
// block or allocate, and reads at most len(dst) messages, good or bad.
//
//go:nosplit
func (b *Bus) Recv(dst []Frame) int { return b.RecvAt(dst, nil) }

// RecvAt is Recv with reception times: at is nil or as long as dst, and at[i] is the
// stamp of dst[i].
//
//go:nosplit
func (b *Bus) RecvAt(dst []Frame, at []Stamp) int {
	if b.wire != nil {
		return b.wire.receive(b, dst, at)
	}
	n := 0
	for left := len(dst); left > 0; left -= batch {
		want := min(left, batch)
		got := b.receiveMessages(want)
		closed := got > 0 && b.msgs[got-1].Len == 0 && b.closed()
		for i := range got {
			if closed && b.msgs[i].Len == 0 {
				continue
			}
			arrival := b.Times.next()
			if b.readFrame(&dst[n], i) {
				if n < len(at) {
					at[n] = b.stamp
					if arrival != 0 {
						at[n].Soft = arrival
					}
				}
				n++
			}
		}

		if closed {
			b.Stats.Down++
			break
		}

		if got < want {
			break
		}
	}

	b.Stats.Rx += uint64(n)
	return n
}

// receiveMessages reads up to want messages into b.msgs and returns how many.
//
//go:nosplit
func (b *Bus) receiveMessages(want int) int {
	for i := range want {
		h := &b.msgs[i].Hdr
		h.SetControllen(len(b.control[i]) * 8)
		h.Flags = 0
	}

	n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(b.fd),
		uintptr(unsafe.Pointer(&b.msgs[0])), uintptr(want), unix.MSG_DONTWAIT, 0, 0)
	if errno == 0 {
		return int(n)
	}
	if errno != unix.EAGAIN {
		b.countFailure(errno)
	}
	return 0
}

// readFrame copies message i into dst and reports whether it is a frame.
//
//go:nosplit
func (b *Bus) readFrame(dst *Frame, i int) bool {
	m := &b.msgs[i]
	b.stamp = Stamp{}
	b.readControl(i)
	f := &b.rx[i]
	classic := m.Len == sizeClassic && f.Len <= 8
	fd := m.Len == sizeFD && f.Len <= 64
	if m.Hdr.Flags&unix.MSG_TRUNC != 0 || !classic && !fd {
		b.Stats.BadSize++
		return false
	}

	if f.ID&ERR != 0 && !b.errorsOnly {
		b.applyBusState(f.ID)
		return false
	}

	*dst = Frame{ID: f.ID, Len: f.Len}
	if fd { // kernels before 6.1 leave FDF to the size
		dst.Flags = f.Flags&(FlagBRS|FlagESI) | FlagFDF
	}
	copy(dst.Data[:f.Len], f.Data[:])
	return true
}

// applyBusState updates b.Off from an error frame with identifier id. Error frames
// arrive in order with the data frames; none is passed on to the plant.
//
//go:nosplit
func (b *Bus) applyBusState(id uint32) {
	switch {
	case id&unix.CAN_ERR_BUSOFF != 0:
		if !b.Off {
			b.Stats.Offs++
		}
		b.Off = true
	case id&unix.CAN_ERR_RESTARTED != 0:
		b.Off = false
	}
}

// readControl reads the control data of message i: the kernel's drop count, cumulative
// modulo 2^32, and the time stamps.
//
//go:nosplit
func (b *Bus) readControl(i int) {
	left := uint64(b.msgs[i].Hdr.Controllen)
	at := unsafe.Pointer(&b.control[i])
	for range 2 { // bind asks for two kinds of control data
		h := (*unix.Cmsghdr)(at)
		size := uint64(h.Len)
		if left < unix.SizeofCmsghdr || size < unix.SizeofCmsghdr || size > left || h.Level != unix.SOL_SOCKET {
			return
		}
		data := unsafe.Add(at, unix.SizeofCmsghdr) // a multiple of 8 on every architecture with 64 bits
		switch {
		case h.Type == unix.SO_RXQ_OVFL && size >= unix.SizeofCmsghdr+4:
			drops := *(*uint32)(data)
			b.Stats.RxOverflow += uint64(drops - b.drops)
			b.drops = drops
		case h.Type == unix.SO_TIMESTAMPING && size >= unix.SizeofCmsghdr+3*uint64(unsafe.Sizeof(unix.Timespec{})):
			t := (*[3]unix.Timespec)(data)
			b.stamp.Soft = int64(t[0].Sec)*1e9 + int64(t[0].Nsec)
			b.stamp.Hard = int64(t[2].Sec)*1e9 + int64(t[2].Nsec)
		}

		size = (size + 7) &^ 7
		if size >= left {
			return
		}
		left, at = left-size, unsafe.Add(at, size)
	}
}

// CountDrops adds to Stats.RxOverflow the frames dropped since the last frame received:
// the kernel reports a drop with the next frame only, and none follows the last one.
// It does not allocate. It does nothing on kernels before 4.12, which lack SO_MEMINFO.
func (b *Bus) CountDrops() {
	size := uint32(unsafe.Sizeof(b.info))
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(b.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&b.info[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 || size <= 4*memInfoDrops {
		return
	}
	if more := b.info[memInfoDrops] - b.drops; int32(more) > 0 {
		b.Stats.RxOverflow += uint64(more)
		b.drops = b.info[memInfoDrops]
	}
}

// closed reports whether the other end of a pair is closed. An empty message alone does
// not mean so: recvmmsg returns length 0 for both.
//
//go:nosplit
func (b *Bus) closed() bool {
	b.poll.Revents = 0
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&b.poll)), 1,
		uintptr(unsafe.Pointer(&b.now)), 0, 0, 0)
	return errno == 0 && n == 1 && b.poll.Revents&(unix.POLLRDHUP|unix.POLLHUP) != 0
}

// Send passes f to the kernel. It does not block or allocate; false means that
// the frame is dropped and counted: the queue is full, the interface is down,
// the other end is closed, or this bus cannot carry f. A bus by wire keeps f for Flush.
//
//go:nosplit
func (b *Bus) Send(f *Frame) bool {
	if f.Len > 64 || f.Flags&FlagLong != 0 {
		b.Stats.TxDropped++
		b.Stats.Errors++
		return false
	}
	b.tx = *f
	if b.wire != nil {
		return b.wire.put(b)
	}
	size := uintptr(sizeFD)
	if f.FD() {
		b.tx.Flags |= FlagFDF
	} else {
		size = sizeClassic
		b.tx.Flags, b.tx.Res0, b.tx.Res1 = 0, 0, 0
	}

	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(b.fd),
		uintptr(unsafe.Pointer(&b.tx)), size, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno == 0 && n == size {
		b.Stats.Tx++
		return true
	}

	b.Stats.TxDropped++
	if errno != unix.EAGAIN && errno != unix.ENOBUFS {
		b.countFailure(errno)
	}
	return false
}

// countFailure counts a call that failed.
//
//go:nosplit
func (b *Bus) countFailure(errno unix.Errno) {
	switch errno {
	case unix.ENETDOWN, unix.ENODEV, unix.ENXIO, unix.EPIPE, unix.ECONNRESET, unix.ENOTCONN, unix.EHOSTUNREACH, unix.ENETUNREACH:
		b.Stats.Down++
		b.Off = false // the controller restarts error-active when its interface comes up
	default:
		b.Stats.Errors++
	}
}

// Fd is the bus's file descriptor, -1 after Close.
func (b *Bus) Fd() int { return b.fd }

// File returns a duplicate of the socket, to be handed to another process; the
// caller closes it.
func (b *Bus) File() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(b.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("can: duplicate fd %d: %w", b.fd, os.NewSyscallError("fcntl", err))
	}
	return os.NewFile(uintptr(fd), fmt.Sprintf("can:fd:%d", fd)), nil
}

// Close closes the socket; Recv and Send count errors afterwards. A second
// Close returns an error.
func (b *Bus) Close() error {
	if b.fd < 0 {
		return errors.New("can: close: the bus is closed")
	}
	b.unmapShared()
	fd := b.fd
	b.fd, b.poll.Fd = -1, -1
	return os.NewSyscallError("close", unix.Close(fd))
}
