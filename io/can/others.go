package can

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Heard is a frame that DialOthers' bus has received.
type Heard struct {
	Frame
	Stamp
	Local bool // a socket of this host has sent it
}

// queue is the receive queue that DialOthers asks for, bytes: some 5000 frames. Without
// CAP_NET_ADMIN it is twice net.core.rmem_max at most, by default 500 frames.
const queue = 4 << 20

// DialOthers opens a socket of its own on the interface name that receives every frame,
// but for error frames, that Dial with the same filters does not: also those that other
// sockets of this host send.
//
// The kernel sorts out what passes the filters: it looks at each of them for each frame,
// some ten nanoseconds, where a frame delivered would cost a copy and a system call.
func DialOthers(name string, filters []Filter) (*Bus, error) {
	b, err := connect(name, filters, true)
	if err != nil {
		return nil, err
	}
	if unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, queue) != nil {
		err = unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, queue)
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("can: others on %s: setsockopt SO_RCVBUF: %w", name, err)
	}
	return b, nil
}

// Hear is RecvAt that also tells which frames come from this host: for Linux a frame that
// a socket of it has sent carries MSG_DONTROUTE, on every other socket of the interface
// (and MSG_CONFIRM on that one itself, which does not get its own): raw_rcv in
// net/can/raw.c. It is set when the frame has been on the bus, or on vcan, at once.
func (b *Bus) Hear(dst []Heard) int {
	n := 0
	for i := range b.receive(min(len(dst), batch)) {
		if b.take(&dst[n].Frame, i) {
			dst[n].Stamp, dst[n].Local = b.stamp, b.msgs[i].Hdr.Flags&unix.MSG_DONTROUTE != 0
			n++
		}
	}
	b.Stats.Rx += uint64(n)
	return n
}
