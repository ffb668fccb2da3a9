package can

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// MonitoredFrame is a frame that the bus monitor received.
type MonitoredFrame struct {
	Frame
	Stamp
	Local bool // a socket of this host sent the frame
}

// monitorQueue is the receive queue that DialMonitor asks for, bytes: some 5000 frames.
// Without CAP_NET_ADMIN the kernel grants at most twice net.core.rmem_max, by default
// 500 frames.
const monitorQueue = 4 << 20

// DialMonitor opens a bus monitor on the interface name: a separate socket that receives
// every data frame that Dial with the same filters does not receive. Frames that other
// sockets of this host send are included, error frames are not.
//
// The kernel applies the filters: some 10 ns for each filter and frame, where a delivered
// frame would cost a copy and a system call.
func DialMonitor(name string, filters []Filter) (*Bus, error) {
	b, err := dialInterface(name, filters, true)
	if err != nil {
		return nil, err
	}
	if unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, monitorQueue) != nil {
		err = unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, monitorQueue)
	}
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("can: monitor %s: setsockopt SO_RCVBUF: %w", name, err)
	}

	return b, nil
}

// RecvMonitored is RecvAt that also reports which frames this host sent. Linux marks such
// a frame with MSG_DONTROUTE on every other socket of the interface: raw_rcv in
// net/can/raw.c. The sending socket does not receive its own frame (MSG_CONFIRM would
// mark it). The frame is delivered once it has been on the bus; on vcan, at once.
func (b *Bus) RecvMonitored(dst []MonitoredFrame) int {
	n := 0
	for i := range b.receiveMessages(min(len(dst), batch)) {
		if b.readFrame(&dst[n].Frame, i) {
			dst[n].Stamp, dst[n].Local = b.stamp, b.msgs[i].Hdr.Flags&unix.MSG_DONTROUTE != 0
			n++
		}
	}

	b.Stats.Rx += uint64(n)
	return n
}
