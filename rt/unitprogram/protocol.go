package unitprogram

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"lockstep/io/can"
	"lockstep/sched"
)

// version is the version of the protocol.
const version = 1

// Kinds of messages.
const (
	kindHello = 1 + iota // both: id = version; of the bench, see greet
	kindBus              // of the bench: a bus, data = its name, id = its bit rate
	kindStart            // of the bench: time = CLOCK_MONOTONIC of instant 0, ns; 0 in virtual time
	kindFrame            // both: a frame; time = instant, ns, of the program in virtual time only
	kindGo               // of the bench, in virtual time: the next grid point is at time; the bench waits
	kindDone             // of the program, in virtual time: all its frames before time are sent
)

// messageSize is the size of every message, bytes. Numbers are little-endian.
const messageSize = 80

// message is a message of the socket, which has the type SOCK_SEQPACKET.
type message struct {
	kind, bus, flags, length uint8  // bytes 0 to 3; flags as in can.Frame
	id                       uint32 // bytes 4 to 7, with the bits of SocketCAN
	time                     int64  // bytes 8 to 15, ns
	data                     [64]byte
}

func (m *message) encode(b *[messageSize]byte) {
	b[0], b[1], b[2], b[3] = m.kind, m.bus, m.flags, m.length
	binary.LittleEndian.PutUint32(b[4:], m.id)
	binary.LittleEndian.PutUint64(b[8:], uint64(m.time))
	copy(b[16:], m.data[:])
}

func (m *message) decode(b []byte) {
	*m = message{kind: b[0], bus: b[1], flags: b[2], length: b[3],
		id: binary.LittleEndian.Uint32(b[4:]), time: int64(binary.LittleEndian.Uint64(b[8:]))}
	copy(m.data[:], b[16:])
}

// frameMessage returns the message of a frame on a bus at an instant, ns.
func frameMessage(bus int, f *can.Frame, at int64) *message {
	m := &message{kind: kindFrame, bus: uint8(bus), flags: f.Flags, length: f.Len, id: f.ID, time: at}
	copy(m.data[:], f.Data[:f.Len])
	return m
}

// frame returns the frame of a message, or an error if the message holds no valid frame.
func (m *message) frame(buses []Bus) (f can.Frame, err error) {
	fd := m.flags&can.FlagFDF != 0
	switch {
	case int(m.bus) >= len(buses) || buses[m.bus].Interface != "":
		return f, fmt.Errorf("a frame on bus %d, which the socket does not carry", m.bus)
	case m.id&can.ERR != 0:
		return f, fmt.Errorf("a frame with identifier 0x%X, which marks an error frame", m.id)
	case m.id&can.EFF == 0 && m.id&^can.RTR > can.MaskSFF:
		return f, fmt.Errorf("a frame with identifier 0x%X; above 0x7FF it needs the bit 0x80000000", m.id)
	case !fd && m.length > 8:
		return f, fmt.Errorf("a frame of %d bytes; above 8 it needs the flag 4 of CAN FD", m.length)
	case fd && !slices.Contains(can.Lengths[:], m.length):
		return f, fmt.Errorf("a CAN FD frame of %d bytes, which is no length of CAN FD", m.length)
	case m.flags&^(can.FlagBRS|can.FlagESI|can.FlagFDF) != 0 || !fd && m.flags != 0:
		return f, fmt.Errorf("a frame with the flags 0x%X", m.flags)
	}
	f = can.Frame{ID: m.id, Len: m.length, Flags: m.flags}
	copy(f.Data[:m.length], m.data[:])
	return f, nil
}

// Errors of a connection.
var (
	errClosed  = errors.New("the socket is closed")
	errHang    = errors.New("no answer")
	errStopped = errors.New("the run was interrupted")
)

// garbageError says what a program sent that is no message of the protocol.
type garbageError struct{ what string }

func (e *garbageError) Error() string { return e.what }

// floodError says of what a program sent too much.
type floodError struct{ what string }

func (e *floodError) Error() string { return e.what }

// connection is the bench's end of the socket of a program. It never blocks, except in wait. One
// goroutine may send while another one receives.
type connection struct {
	fd     int
	closed atomic.Bool // a call found the socket closed
	out    [messageSize]byte
	in     [messageSize + 1]byte // one byte more shows a longer message
}

// newConnection makes a connection and the program's end of its socket.
func newConnection() (c *connection, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return &connection{fd: fds[0]}, os.NewFile(uintptr(fds[1]), "program"), nil
}

func (c *connection) close() {
	if c.fd >= 0 {
		unix.Close(c.fd)
		c.fd = -1
	}
}

// send sends a message. false: the program does not read, or the socket is closed.
func (c *connection) send(m *message) bool {
	m.encode(&c.out)
	n, err := unix.SendmsgN(c.fd, c.out[:], nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		c.closed.Store(true)
	}
	return err == nil && n == messageSize
}

// receive returns the next message; ok is false if there is none yet.
func (c *connection) receive() (m message, ok bool, err error) {
	for range 2 { // ECONNRESET comes once, before the messages that the program sent
		n, _, err := unix.Recvfrom(c.fd, c.in[:], unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
			return m, false, nil
		case errors.Is(err, unix.ECONNRESET):
			continue
		case err != nil:
			c.closed.Store(true)
			return m, false, errClosed
		case n == messageSize:
			m.decode(c.in[:])
			return m, true, nil
		case n == 0 && c.hungUp():
			c.closed.Store(true)
			return m, false, errClosed
		case n > messageSize:
			return m, false, &garbageError{fmt.Sprintf("a message of more than %d bytes", messageSize)}
		}
		return m, false, &garbageError{fmt.Sprintf("a message of %d bytes; a message has %d", n, messageSize)}
	}
	return m, false, nil
}

// hungUp reports whether the program has closed its end: an empty message is received like an end.
func (c *connection) hungUp() bool {
	list := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(list, 0)
	return err == nil && n == 1 && list[0].Revents&(unix.POLLRDHUP|unix.POLLHUP) != 0
}

// pollTime is the longest time of one wait, after which other reasons to end are checked.
const pollTime = 50 * time.Millisecond

// wait waits for events of the socket, at most pollTime.
func (c *connection) wait(events int16) {
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: events}}, int(pollTime.Milliseconds()))
}

// next waits for the next message until a time of sched.Now, or until ended holds and no message is left.
func (c *connection) next(until int64, ended, stopped func() bool) (message, error) {
	for {
		over := ended() // before the last look
		m, ok, err := c.receive()
		switch {
		case ok || err != nil:
			return m, err
		case over:
			return m, errClosed
		case stopped():
			return m, errStopped
		case sched.Now() > until:
			return m, errHang
		}
		c.wait(unix.POLLIN)
	}
}

// greet introduces the bench and its buses. Its kindHello has length = number of buses, flags = 1 in
// virtual time, time = period in ns and data = name of the bench. The program answers with kindHello.
func (c *connection) greet(s *Spec, virtual bool) {
	hello := &message{kind: kindHello, length: uint8(len(s.Buses)), id: version, time: s.PeriodNs}
	if virtual {
		hello.flags = 1
	}
	copy(hello.data[:], fitted(s.Bench))
	c.send(hello)
	for i, bus := range s.Buses {
		if bus.Interface == "" {
			m := &message{kind: kindBus, bus: uint8(i), id: bus.BitRate}
			copy(m.data[:], fitted(bus.Name))
			c.send(m)
		}
	}
}

// fitted returns the beginning of a name that fits into a message.
func fitted(name string) string {
	for len(name) > len(message{}.data) {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// checkHello checks the answer to greet.
func checkHello(m *message) error {
	switch {
	case m.kind != kindHello:
		return &garbageError{fmt.Sprintf("a message of kind %d", m.kind)}
	case m.id != version:
		return fmt.Errorf("speaks version %d of the protocol; this lockstep speaks version %d", m.id, version)
	}
	return nil
}
