package can

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Link is the state of a CAN interface as the kernel reports it.
type Link struct {
	Index int // interface index; it changes when the interface is removed and added again
	Name  string
	Gone  bool // the interface has been removed
	Up    bool // the interface is up

	Virtual     bool   // vcan or vxcan: both ends are in this host
	Card        bool   // the interface has a controller, which the fields below describe; vcan has none
	State       State  // fault confinement state; Unknown: not reported
	HasCounters bool   // Tx and Rx are reported
	Tx, Rx      uint16 // transmit and receive error counters
	BitRate     int    // nominal bit rate, bit/s; 0: not reported
	RestartMs   int    // delay after which the driver restarts from bus-off, ms; 0: never
}

// Links queries CAN interfaces and receives their changes: rtnetlink(7). It implements
// this protocol itself because it needs one query, one command and one subscription, and
// none of them may block for long.
type Links struct {
	changes int // non-blocking socket subscribed to changes
	query   int // socket for requests; a read waits up to answerTimeout

	seq uint32 // sequence number of the last request

	buf []byte
}

// answerTimeout is the longest wait for an answer of the kernel: it holds the lock needed
// while a driver is loaded or a card is reset.
var answerTimeout = unix.Timeval{Sec: 2}

// linkBuffer is the size of the receive buffer, bytes; a message of an interface fits in it.
const linkBuffer = 32 << 10

// OpenLinks subscribes to the changes of interfaces; the caller closes it.
func OpenLinks() (*Links, error) {
	l := &Links{changes: -1, query: -1, buf: make([]byte, linkBuffer)}
	var err error
	if l.changes, err = openNetlink(unix.RTMGRP_LINK, unix.SOCK_NONBLOCK); err == nil {
		l.query, err = openNetlink(0, 0)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(l.query, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &answerTimeout)
		err = os.NewSyscallError("setsockopt SO_RCVTIMEO", err)
	}

	if err != nil {
		l.Close()
		return nil, fmt.Errorf("can: interfaces: %w", err)
	}

	return l, nil
}

// openNetlink opens a netlink socket that is subscribed to the given groups.
func openNetlink(groups uint32, flags int) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("bind", err)
	}

	return fd, nil
}

// Close closes the sockets.
func (l *Links) Close() {
	for _, fd := range [...]int{l.changes, l.query} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}

	l.changes, l.query = -1, -1
}

// Changes calls handle for each pending change of a CAN interface and reads at most
// limit messages. It does not block. complete is false if the kernel lost changes, as
// it does in a flood: call Query then.
func (l *Links) Changes(limit int, handle func(Link)) (complete bool) {
	complete = true
	for range limit {
		n, _, err := unix.Recvfrom(l.changes, l.buf, 0)
		if err != nil {
			return complete && err != unix.ENOBUFS
		}
		forEachMessage(l.buf[:n], func(kind uint16, _ uint32, data []byte) {
			if link, ok := parseLink(kind, data); ok {
				handle(link)
			}
		})
	}

	return complete
}

// Query returns the present state of the interface name; the error is ErrNoInterface if
// no CAN interface has this name.
func (l *Links) Query(name string) (Link, error) {
	link, err := l.request(unix.RTM_GETLINK, 0, 0, appendAttribute(nil, unix.IFLA_IFNAME, append([]byte(name), 0)))
	if errors.Is(err, unix.ENODEV) {
		return Link{}, fmt.Errorf("can: %s: %w", name, ErrNoInterface)
	}
	if err == nil && link.Index == 0 {
		err = ErrNoInterface // not a CAN interface
	}
	if err != nil {
		return Link{}, fmt.Errorf("can: %s: %w", name, err)
	}
	return link, nil
}

// Restart restarts a controller after bus-off, as `ip link set can0 type can restart`
// does; it needs CAP_NET_ADMIN.
func (l *Links) Restart(link Link) error {
	return l.setAttribute("restart", link, unix.IFLA_CAN_RESTART, 1)
}

// SetRestart sets the delay, ms, after which the driver restarts its controller from
// bus-off; 0 means never. The interface must be down. It does what `ip link set can0
// type can restart-ms 100` does and needs CAP_NET_ADMIN.
func (l *Links) SetRestart(link Link, ms uint32) error {
	return l.setAttribute("restart-ms of", link, unix.IFLA_CAN_RESTART_MS, ms)
}

// setAttribute sets one attribute of a controller; what names the action in errors.
func (l *Links) setAttribute(what string, link Link, kind uint16, value uint32) error {
	data := appendAttribute(nil, kind, binary.NativeEndian.AppendUint32(nil, value))
	info := appendAttribute(nil, unix.IFLA_INFO_KIND, []byte("can"))
	info = appendAttribute(info, unix.IFLA_INFO_DATA, data)
	_, err := l.request(unix.RTM_NEWLINK, unix.NLM_F_ACK, link.Index, appendAttribute(nil, unix.IFLA_LINKINFO, info))
	if err != nil {
		return fmt.Errorf("can: %s %s: %w", what, link.Name, err)
	}
	return nil
}

// request sends a message about the interface with the given index and returns the
// kernel's answer.
func (l *Links) request(kind, flags uint16, index int, attributes []byte) (link Link, err error) {
	l.seq++
	header := unix.NlMsghdr{
		Len:  uint32(unix.SizeofNlMsghdr + unix.SizeofIfInfomsg + len(attributes)),
		Type: kind, Flags: unix.NLM_F_REQUEST | flags, Seq: l.seq,
	}
	var b []byte
	for _, part := range []any{header, unix.IfInfomsg{Index: int32(index)}, attributes} {
		b, _ = binary.Append(b, binary.NativeEndian, part)
	}
	if err := unix.Sendto(l.query, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return Link{}, os.NewSyscallError("sendto", err)
	}
	for done := false; !done; {
		n, _, failed := unix.Recvfrom(l.query, l.buf, 0)
		if failed == unix.EINTR {
			continue
		}
		if failed != nil {
			return Link{}, os.NewSyscallError("recvfrom", failed)
		}
		forEachMessage(l.buf[:n], func(kind uint16, seq uint32, data []byte) {
			if seq != l.seq {
				return // the answer to a request that timed out
			}
			done = true
			if kind == unix.NLMSG_ERROR && len(data) >= 4 {
				if code := int32(binary.NativeEndian.Uint32(data)); code != 0 {
					err = unix.Errno(-code)
				}
				return
			}

			link, _ = parseLink(kind, data)
		})
	}

	return link, err
}

// forEachMessage calls handle for each message in b: linux/netlink.h, struct nlmsghdr.
// It stops at a truncated or damaged message.
func forEachMessage(b []byte, handle func(kind uint16, seq uint32, data []byte)) {
	for len(b) >= unix.SizeofNlMsghdr {
		size := uint64(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > uint64(len(b)) {
			return
		}
		handle(binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:size])
		b = b[min(aligned(int(size)), len(b)):]
	}
}

// typeMask clears the flags in an attribute's type: linux/netlink.h, NLA_TYPE_MASK.
const typeMask = 0x3FFF

// forEachAttribute calls handle for each attribute in b: linux/rtnetlink.h, struct rtattr.
// It stops at a truncated or damaged attribute.
func forEachAttribute(b []byte, handle func(kind uint16, data []byte)) {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return
		}
		handle(binary.NativeEndian.Uint16(b[2:])&typeMask, b[unix.SizeofRtAttr:size])
		b = b[min(aligned(size), len(b)):]
	}
}

// appendAttribute appends one attribute, padded to 4 bytes, to a message.
func appendAttribute(to []byte, kind uint16, data []byte) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(unix.SizeofRtAttr+len(data)))
	to = append(binary.NativeEndian.AppendUint16(to, kind), data...)
	return append(to, make([]byte, aligned(len(data))-len(data))...)
}

// aligned returns size rounded up to the 4-byte alignment of messages and attributes.
func aligned(size int) int { return (size + 3) &^ 3 }

// parseLink reads a message of a CAN interface; ok is false for any other message.
func parseLink(kind uint16, data []byte) (link Link, ok bool) {
	if kind != unix.RTM_NEWLINK && kind != unix.RTM_DELLINK || len(data) < unix.SizeofIfInfomsg ||
		data[0] != unix.AF_UNSPEC || binary.NativeEndian.Uint16(data[2:]) != unix.ARPHRD_CAN {
		return Link{}, false
	}

	link = Link{
		Index: int(binary.NativeEndian.Uint32(data[4:])), Gone: kind == unix.RTM_DELLINK,
		Up: binary.NativeEndian.Uint32(data[8:])&unix.IFF_UP != 0,
	}
	forEachAttribute(data[unix.SizeofIfInfomsg:], func(kind uint16, data []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			link.Name = unix.ByteSliceToString(data)
		case unix.IFLA_LINKINFO:
			link.parseInfo(data)
		}
	})
	return link, true
}

// parseInfo reads the attributes that depend on the kind of the interface.
func (l *Link) parseInfo(b []byte) {
	var kind string
	var data []byte
	forEachAttribute(b, func(k uint16, d []byte) {
		switch k {
		case unix.IFLA_INFO_KIND:
			kind = unix.ByteSliceToString(d)
		case unix.IFLA_INFO_DATA:
			data = d
		}
	})
	l.Virtual = kind == "vcan" || kind == "vxcan"
	if l.Card = kind == "can"; l.Card {
		forEachAttribute(data, l.parseController)
	}
}

// parseController reads one of the attributes of a controller: linux/can/netlink.h.
func (l *Link) parseController(kind uint16, data []byte) {
	if len(data) < 4 {
		return
	}
	value := binary.NativeEndian.Uint32(data)
	switch kind {
	case unix.IFLA_CAN_STATE:
		states := [...]State{Active, Warning, Passive, Off, Stopped, Stopped} // the last is CAN_STATE_SLEEPING
		if value < uint32(len(states)) {
			l.State = states[value]
		}
	case unix.IFLA_CAN_BERR_COUNTER: // struct can_berr_counter
		l.HasCounters, l.Tx, l.Rx = true, binary.NativeEndian.Uint16(data), binary.NativeEndian.Uint16(data[2:])
	case unix.IFLA_CAN_BITTIMING: // struct can_bittiming
		l.BitRate = int(value)
	case unix.IFLA_CAN_RESTART_MS:
		l.RestartMs = int(value)
	}
}
