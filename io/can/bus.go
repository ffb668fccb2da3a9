package can

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// SO_MEMINFO fills an array of words: linux/sock_diag.h, SK_MEMINFO_VARS. The one
// at memInfoDrops is the number of frames dropped, modulo 2^32.
const (
	memInfo      = 9
	memInfoDrops = 8
)

// batch is the number of messages one system call receives.
const batch = 32

// Bus is one socket that carries frames. It is not safe for concurrent use.
type Bus struct {
	Stats Stats
	FD    bool // takes CAN FD frames: the interface's MTU is 72
	Off   bool // the controller has said that it is off the bus, and not yet that it is back

	listens bool // to error frames, and to nothing else: DialErrors
	inverts bool // its filters say what it does not receive: DialOthers

	fd    int
	drops uint32 // what SO_RXQ_OVFL last said
	stamp Stamp  // of the message that take has read

	// What the kernel reads and writes; the addresses are set once, by open.
	tx      Frame
	rx      [batch]Frame
	iov     [batch]unix.Iovec
	control [batch][11]uint64 // cmsgs: a uint32 in 24 bytes, three timespecs in 64
	msgs    [batch]unix.Mmsghdr
	poll    unix.PollFd
	now     unix.Timespec // zero: poll does not wait
	info    [memInfo]uint32
}

// Stats counts what happened on a bus since it was opened. Trouble on a bus is
// counted, never an error: the next tick comes either way.
type Stats struct {
	Rx         uint64 // frames received
	Tx         uint64 // frames handed to the kernel
	TxDropped  uint64 // frames not sent, whatever the reason
	RxOverflow uint64 // frames the kernel dropped because the receive queue was full: told with the next frame, or by Settle
	BadSize    uint64 // messages that are no frame: wrong size, or length beyond the size
	Down       uint64 // calls that found the interface down or the other end closed
	Errors     uint64 // calls that failed for any other reason
	Offs       uint64 // how often the controller went off the bus
}

// open makes a Bus of a socket; it owns fd.
func open(fd int) *Bus {
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

// Stamp is when a frame came in, ns since 1970; 0 where nobody has noted it, as on
// a pair.
type Stamp struct {
	Soft int64 // by the kernel, on CLOCK_REALTIME
	Hard int64 // by the controller, on a clock of its own that only began as that one
}

// Recv moves received frames into dst and returns how many: 0 when there are
// none, when the bus is down and when the other end is closed. It does not
// block or allocate, and reads at most len(dst) messages, good or bad.
//
//go:nosplit
func (b *Bus) Recv(dst []Frame) int { return b.RecvAt(dst, nil) }

// RecvAt is Recv that also tells when the frames came in: at is nil, or as long as
// dst.
//
//go:nosplit
func (b *Bus) RecvAt(dst []Frame, at []Stamp) int {
	n := 0
	for left := len(dst); left > 0; left -= batch {
		want := min(left, batch)
		got := b.receive(want)
		closed := got > 0 && b.msgs[got-1].Len == 0 && b.closed()
		for i := range got {
			if closed && b.msgs[i].Len == 0 {
				continue
			}
			if b.take(&dst[n], i) {
				if n < len(at) {
					at[n] = b.stamp
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

// receive fills the first messages of b.msgs, at most want, and returns how many.
//
//go:nosplit
func (b *Bus) receive(want int) int {
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
		b.fail(errno)
	}
	return 0
}

// take copies message i into dst and tells whether it is a frame.
//
//go:nosplit
func (b *Bus) take(dst *Frame, i int) bool {
	m := &b.msgs[i]
	b.stamp = Stamp{}
	b.told(i)
	f := &b.rx[i]
	classic := m.Len == sizeClassic && f.Len <= 8
	fd := m.Len == sizeFD && f.Len <= 64
	if m.Hdr.Flags&unix.MSG_TRUNC != 0 || !classic && !fd {
		b.Stats.BadSize++
		return false
	}
	if f.ID&ERR != 0 && !b.listens {
		b.says(f.ID)
		return false
	}
	*dst = Frame{ID: f.ID, Len: f.Len}
	if fd { // kernels before 6.1 leave FDF to the size
		dst.Flags = f.Flags&(FlagBRS|FlagESI) | FlagFDF
	}
	copy(dst.Data[:f.Len], f.Data[:])
	return true
}

// says takes in an error frame: nothing of it is the plant's. It comes in order with
// the frames, and its absence costs nothing.
//
//go:nosplit
func (b *Bus) says(id uint32) {
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

// told reads what the kernel tells about message i: its drop count, cumulative
// modulo 2^32, and when the message came in.
//
//go:nosplit
func (b *Bus) told(i int) {
	left := uint64(b.msgs[i].Hdr.Controllen)
	at := unsafe.Pointer(&b.control[i])
	for range 2 { // as many as bind asks for
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

// Settle counts what the kernel has dropped since the last frame it delivered:
// it tells a drop with the next frame only, and after the last one none comes.
// It does not allocate. Kernels before 4.12 do not know the question.
func (b *Bus) Settle() {
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

// closed tells whether the other end of a pair is gone. An empty message alone
// does not: it reads like the end of the stream.
//
//go:nosplit
func (b *Bus) closed() bool {
	b.poll.Revents = 0
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&b.poll)), 1,
		uintptr(unsafe.Pointer(&b.now)), 0, 0, 0)
	return errno == 0 && n == 1 && b.poll.Revents&(unix.POLLRDHUP|unix.POLLHUP) != 0
}

// Send hands f to the kernel. It does not block or allocate; false means that
// the frame is dropped and counted: the queue is full, the interface is down,
// the other end is closed, or f is no frame this bus can carry.
//
//go:nosplit
func (b *Bus) Send(f *Frame) bool {
	if f.Len > 64 {
		b.Stats.TxDropped++
		b.Stats.Errors++
		return false
	}
	b.tx = *f
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
		b.fail(errno)
	}
	return false
}

// fail counts a call that failed.
//
//go:nosplit
func (b *Bus) fail(errno unix.Errno) {
	switch errno {
	case unix.ENETDOWN, unix.ENODEV, unix.ENXIO, unix.EPIPE, unix.ECONNRESET, unix.ENOTCONN:
		b.Stats.Down++
		b.Off = false // a controller whose interface comes up starts anew
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

// Close closes the socket; from then on Recv and Send count errors. A second
// Close is an error.
func (b *Bus) Close() error {
	if b.fd < 0 {
		return errors.New("can: close: the bus is closed")
	}
	fd := b.fd
	b.fd, b.poll.Fd = -1, -1
	return os.NewSyscallError("close", unix.Close(fd))
}
