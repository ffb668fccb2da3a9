package can

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"lockstep/io/wire"
)

// Prefixes of the names of buses by wire: "udp:192.0.2.7:5005" and "shm:brake-box".
const (
	udpPrefix = "udp:"
	shmPrefix = "shm:"
)

// sharedFolder holds the memory of "shm:NAME" as the file NAME.
const sharedFolder = "/dev/shm/"

// IsWire reports whether a bus of that name carries process images (package wire) to and from a box, not frames.
func IsWire(name string) bool {
	return strings.HasPrefix(name, udpPrefix) || strings.HasPrefix(name, shmPrefix)
}

// CheckWire returns why no bus by wire has that name; nil: one can.
func CheckWire(name string) error {
	if text, ok := strings.CutPrefix(name, udpPrefix); ok {
		if _, err := boxAddress(text); err != nil {
			return err
		}
	}
	if text, ok := strings.CutPrefix(name, shmPrefix); ok && !legalSharedName(text) {
		return fmt.Errorf("%.60q is not the name of a file in %s: 1 to 64 letters, digits, \".\", \"_\" and \"-\"", text, sharedFolder)
	}
	return nil
}

// WireName returns the one spelling of the name of a bus by wire, so that a box has one reservation. Other names are
// returned as they are.
func WireName(name string) string {
	if text, ok := strings.CutPrefix(name, udpPrefix); ok {
		if a, err := boxAddress(text); err == nil {
			return udpPrefix + a.String()
		}
	}
	return name
}

func legalSharedName(name string) bool {
	const room = 15 // of LegalName
	for len(name) > room && len(name) <= 64 && LegalName("x"+name[:room-1]) {
		name = "x" + name[room-1:]
	}
	return LegalName(name)
}

// boxAddress reads the address of a box. A group of hosts is none: each answers from its own address.
func boxAddress(text string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(text)
	to := a.Addr().Unmap()
	group := to.IsMulticast() || to == netip.AddrFrom4([4]byte{255, 255, 255, 255})
	if err != nil || a.Port() == 0 || !to.IsValid() || to.IsUnspecified() || to.Zone() != "" || group {
		return a, fmt.Errorf("%.60q is not ADDRESS:PORT of a box, like 192.0.2.7:5005 or [fd00::7]:5005", text)
	}
	return netip.AddrPortFrom(to, a.Port()), nil
}

// wireEnd is the end of a bus by wire. The messages of an image are frames for the callers of the bus: Send collects
// them, and Flush sends them as one image.
type wireEnd struct {
	out     wire.Outgoing
	pending bool   // out has messages that are not sent
	counter uint64 // of the next image; 0: none was sent

	in    wire.Image // image received last
	read  wire.Image // scratch
	check wire.Check
	take  []uint32 // messages that are received

	peer    [unix.SizeofSockaddrInet6]byte // address of the box
	peerLen uint32                         // 0: the address is not known
	shared  *sharedMemory                  // nil: datagrams
	stat    unix.Stat_t                    // scratch of isWhole
	seen    uint64                         // sequence number of the slot read last

	// Memory that the kernel reads and writes.
	tx    [wire.Size]byte
	rx    [batch][wire.Size]byte
	names [batch][unix.SizeofSockaddrInet6]byte

	// Indirect calls, at which the linker's sum of the stack begins anew: see rt/calls.go.
	receive func(b *Bus, dst []Frame, at []Stamp) int
	put     func(b *Bus) bool
	send    func(b *Bus, tick, age int64) bool
}

// sharedMemory is struct wire_shared of io/wire/c/wire.h, as words.
type sharedMemory struct{ out, in sharedSlot }

type sharedSlot struct {
	sequence uint64 // odd while the image is written
	_        [7]uint64
	image    [wire.Size / 8]uint64
	_        [(2048 - 64 - wire.Size) / 8]uint64
}

const sharedSize = 4096

// sharedMode are the rights of a file that is made: those of its user and group.
const sharedMode = 0o660

var _ [sharedSize]byte = [unsafe.Sizeof(sharedMemory{})]byte{}

// useWire makes b the end of a bus by wire.
func (b *Bus) useWire() {
	e := &wireEnd{receive: (*Bus).recvDatagrams, put: (*Bus).putMessage, send: (*Bus).sendImage, take: wire.Received[:]}
	b.wire, b.FD = e, true
	for i := range b.msgs {
		b.iov[i].Base = &e.rx[i][0]
		b.iov[i].SetLen(wire.Size)
		b.msgs[i].Hdr.Name = &e.names[i][0]
	}
}

// WireCounts returns the counts of a bus by wire; nil: the bus carries frames.
//
//go:nosplit
func (b *Bus) WireCounts() *wire.Counts {
	if b.wire == nil {
		return nil
	}
	return &b.wire.check.Counts
}

// UseWire sets the box of a bus by wire, which Dial and Share do not know of an inherited socket: name is that of
// Dial. Messages that pass none of the filters are not received, and an image is delayed from limit ns on. It does
// nothing on other buses.
func (b *Bus) UseWire(name string, filters []Filter, limit int64) error {
	e := b.wire
	if e == nil {
		return nil
	}
	e.take, e.check.LimitNs = nil, limit
	for _, id := range wire.Received {
		for _, f := range filters {
			if id&f.Mask == f.ID&f.Mask {
				e.take = append(e.take, id)
				break
			}
		}
	}
	text, ok := strings.CutPrefix(name, udpPrefix)
	if !ok {
		return nil
	}
	a, err := boxAddress(text)
	if err != nil {
		return fmt.Errorf("can: %s: %w", name, err)
	}
	binary.BigEndian.PutUint16(e.peer[2:], a.Port())
	if a.Addr().Is4() {
		binary.NativeEndian.PutUint16(e.peer[0:], unix.AF_INET)
		at := a.Addr().As4()
		copy(e.peer[4:], at[:])
		e.peerLen = unix.SizeofSockaddrInet4
		return nil
	}
	binary.NativeEndian.PutUint16(e.peer[0:], unix.AF_INET6)
	at := a.Addr().As16()
	copy(e.peer[8:], at[:])
	e.peerLen = unix.SizeofSockaddrInet6
	return nil
}

// dialWire opens a bus by wire.
func dialWire(name string) (*Bus, error) {
	if err := CheckWire(name); err != nil {
		return nil, fmt.Errorf("can: dial %s: %w", name, err)
	}
	text, isUDP := strings.CutPrefix(name, udpPrefix)
	fd, err := -1, error(nil)
	if isUDP {
		a, _ := boxAddress(text)
		fd, err = openUDP(a.Addr().Is4())
	} else {
		fd, err = openShared(sharedFolder + strings.TrimPrefix(name, shmPrefix))
	}
	if err != nil {
		return nil, fmt.Errorf("can: dial %s: %w", name, err)
	}
	b, err := wrapFD(fd)
	if err == nil {
		err = b.UseWire(name, []Filter{{}}, 0)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("can: dial %s: %w", name, err)
	}
	return b, nil
}

// imageStamps are the time stamps of images.
const imageStamps = unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE

// openUDP opens a datagram socket on any free port: a box answers to the address from which it gets images.
func openUDP(v4 bool) (int, error) {
	domain, any := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{})
	if v4 {
		domain, any = unix.AF_INET, &unix.SockaddrInet4{}
	}
	fd, err := unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	// An emulator lacks both options. The counter of the images shows what is lost, and without a stamp they act at the tick.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, imageStamps)
	if err := os.NewSyscallError("bind", unix.Bind(fd, any)); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// openShared opens the file of a shared memory, and makes it if it is missing. An existing file is opened without
// O_CREAT: the kernel refuses that for the file of another user in a folder of all users (fs.protected_regular). A
// file of another size is the memory of another program.
func openShared(path string) (int, error) {
	const flags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	fd, err := unix.Open(path, flags, 0)
	if err == unix.ENOENT {
		if fd, err = unix.Open(path, flags|unix.O_CREAT, sharedMode); err == nil {
			_ = unix.Fchmod(fd, sharedMode) // the mask of this process may keep the group of the driver out
		}
	}
	if err == unix.ELOOP {
		return -1, fmt.Errorf("%s is a symbolic link: remove it, or name another file", path)
	}
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var st unix.Stat_t
	err = os.NewSyscallError("fstat", unix.Fstat(fd, &st))
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%s is not a regular file: name another one", path)
	case st.Size == 0:
		err = os.NewSyscallError("ftruncate", unix.Ftruncate(fd, sharedSize))
	case st.Size != sharedSize:
		err = fmt.Errorf("%s has %d bytes, the memory of a box has %d: remove the file, or name another one", path, st.Size, sharedSize)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// mapShared makes b the end of a bus in shared memory.
func (b *Bus) mapShared() error {
	var st unix.Stat_t
	if err := unix.Fstat(b.fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != sharedSize {
		return fmt.Errorf("fd %d is neither a socket nor the memory of a box", b.fd)
	}
	data, err := unix.Mmap(b.fd, 0, sharedSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	b.useWire()
	b.wire.shared = (*sharedMemory)(unsafe.Pointer(&data[0]))
	b.wire.receive = (*Bus).recvShared
	b.wire.seen = atomic.LoadUint64(&b.wire.shared.in.sequence) // older than the run
	return nil
}

// unmapShared ends the mapping.
func (b *Bus) unmapShared() {
	if b.wire != nil && b.wire.shared != nil {
		_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(b.wire.shared)), sharedSize))
		b.wire.shared = nil
		b.wire.receive = (*Bus).recvDatagrams // fails on the closed descriptor
	}
}

// putMessage stores b.tx, a message of the next image.
//
//go:nosplit
func (b *Bus) putMessage() bool {
	if !b.wire.out.Put(b.tx.ID, &b.tx.Data) {
		b.Stats.TxDropped++
		b.Stats.Errors++
		return false
	}
	b.wire.pending = true
	b.Stats.Tx++
	return true
}

// Flush sends the messages since the last call as one image, with the time of the tick, ns on CLOCK_MONOTONIC, and
// the age of the values then, ns. Without messages it sends nothing. It does nothing on other buses. It does not
// block or allocate; false: the image is dropped and counted.
//
//go:nosplit
func (b *Bus) Flush(tick, age int64) bool {
	if b.wire == nil || !b.wire.pending {
		return true
	}
	return b.wire.send(b, tick, age)
}

// sendImage sends the image. Its first counter is the time, so that it is far above that of any sender before it.
//
//go:nosplit
func (b *Bus) sendImage(tick, age int64) bool {
	e := b.wire
	e.pending = false
	if e.counter == 0 {
		e.counter = uint64(tick / 1000)
	}
	e.out.Counter, e.out.Tick, e.out.Age = e.counter, tick, age
	e.counter++
	e.out.Finish()
	e.out.Encode(&e.tx)
	if e.shared != nil {
		if !b.isWhole() {
			b.Stats.TxDropped++
			return false
		}
		e.shared.out.write(&e.tx)
		e.check.Sent++
		return true
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(b.fd), uintptr(unsafe.Pointer(&e.tx)), wire.Size,
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&e.peer)), uintptr(e.peerLen))
	if errno == 0 && n == wire.Size {
		e.check.Sent++
		return true
	}
	b.Stats.TxDropped++
	if errno != unix.EAGAIN && errno != unix.ENOBUFS {
		b.countFailure(errno)
	}
	return false
}

// recvBatches bounds how many batches of datagrams are read in a tick.
const recvBatches = 8

// recvDatagrams reads the datagrams received, at most recvBatches times batch of them, and moves the messages of the
// newest image into dst. A box that sends several images per tick fills its queue otherwise.
//
//go:nosplit
func (b *Bus) recvDatagrams(dst []Frame, at []Stamp) int {
	e := b.wire
	accepted, stamp := false, Stamp{}
	for range recvBatches {
		for i := range b.msgs {
			b.msgs[i].Hdr.Namelen = unix.SizeofSockaddrInet6
		}
		got := b.receiveMessages(batch)
		for i := range got {
			if b.acceptDatagram(i) {
				accepted, stamp = true, b.stamp
			}
		}
		if got < batch {
			break
		}
	}
	if !accepted {
		return 0
	}
	stamp.Hard = e.in.Tick - e.in.Age
	return b.deliver(dst, at, stamp)
}

// acceptDatagram judges datagram i, and takes it over if it is a new image of the box.
//
//go:nosplit
func (b *Bus) acceptDatagram(i int) bool {
	e, m := b.wire, &b.msgs[i]
	b.stamp = Stamp{}
	b.readControl(i)
	whole := m.Hdr.Flags&unix.MSG_TRUNC == 0 && m.Len <= wire.Size
	if !whole || !e.isPeer(&e.names[i], m.Hdr.Namelen) || !e.read.Decode(e.rx[i][:m.Len]) {
		e.check.Foreign++
		return false
	}
	if !e.check.Accept(&e.read, b.stamp.Soft) {
		return false
	}
	e.in = e.read
	return true
}

// isPeer reports whether a datagram came from the box, by port and address.
//
//go:nosplit
func (e *wireEnd) isPeer(name *[unix.SizeofSockaddrInet6]byte, n uint32) bool {
	if n != e.peerLen {
		return false
	}
	for i := range name {
		address := n == unix.SizeofSockaddrInet4 && i < 8 || n == unix.SizeofSockaddrInet6 && (i < 4 || i >= 8 && i < 24)
		if address && name[i] != e.peer[i] {
			return false
		}
	}
	return true
}

// deliver moves the messages of the image received last into dst.
//
//go:nosplit
func (b *Bus) deliver(dst []Frame, at []Stamp, stamp Stamp) int {
	n := 0
	for _, id := range b.wire.take {
		if n == len(dst) {
			break
		}
		f := &dst[n]
		f.ID, f.Flags, f.Res0, f.Res1 = id, 0, 0, 0
		f.Data = [64]byte{}
		f.Len = b.wire.in.Message(id, &f.Data)
		if f.Len > 8 {
			f.Flags = FlagFDF
		}
		if n < len(at) {
			at[n] = stamp
		}
		n++
	}
	b.Stats.Rx += uint64(n)
	return n
}

// readAttempts bounds how often an image in shared memory is read that its driver changes meanwhile.
const readAttempts = 4

// recvShared moves the messages of a new image in shared memory into dst.
//
//go:nosplit
func (b *Bus) recvShared(dst []Frame, at []Stamp) int {
	e := b.wire
	if !b.isWhole() {
		return 0
	}
	for range readAttempts {
		n := atomic.LoadUint64(&e.shared.in.sequence)
		if n == e.seen {
			return 0
		}
		if n&1 == 1 || !e.shared.in.read(&e.rx[0], n) {
			continue
		}
		e.seen = n
		if !e.read.Decode(e.rx[0][:]) {
			e.check.Foreign++
			return 0
		}
		if !e.check.Accept(&e.read, 0) {
			return 0
		}
		e.in = e.read
		return b.deliver(dst, at, Stamp{})
	}
	return 0
}

// isWhole reports whether the file of the memory has its size: a driver that truncates it takes the pages away, and an
// access would end the process. A missing page counts as a bus that is down.
//
//go:nosplit
func (b *Bus) isWhole() bool {
	st := &b.wire.stat
	_, _, errno := unix.RawSyscall(unix.SYS_FSTAT, uintptr(b.fd), uintptr(unsafe.Pointer(st)), 0)
	if errno != 0 || st.Size >= sharedSize {
		return true // an emulator without the call has no other way
	}
	b.Stats.Down++
	return false
}

// write writes an image. A driver that reads meanwhile sees the sequence number change.
//
//go:nosplit
func (s *sharedSlot) write(image *[wire.Size]byte) {
	n := atomic.LoadUint64(&s.sequence) | 1
	atomic.StoreUint64(&s.sequence, n)
	words := (*[wire.Size / 8]uint64)(unsafe.Pointer(image))
	for i := range words {
		atomic.StoreUint64(&s.image[i], words[i]) // ordered after the odd number on every processor
	}
	atomic.StoreUint64(&s.sequence, n+1)
}

// read copies an image and reports whether it had sequence number n all the time.
//
//go:nosplit
func (s *sharedSlot) read(image *[wire.Size]byte, n uint64) bool {
	words := (*[wire.Size / 8]uint64)(unsafe.Pointer(image))
	for i := range words {
		words[i] = atomic.LoadUint64(&s.image[i])
	}
	return atomic.LoadUint64(&s.sequence) == n
}
