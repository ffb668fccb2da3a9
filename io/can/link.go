package can

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Link is what the kernel says of a CAN interface.
type Link struct {
	Index int // of the interface; one that is removed and made again has another one
	Name  string
	Gone  bool // it has been removed
	Up    bool

	Card      bool   // it has a controller, of which the following is; vcan has none
	State     State  // Unknown: not told
	Counted   bool   // its error counters are told:
	Tx, Rx    uint16 // of what it sends, and of what it receives
	BitRate   int    // bit/s; 0: not told
	RestartMs int    // after so long its driver brings it back to a bus that it went off, ms; 0: never
}

// Links asks the kernel for interfaces, and hears of their changes: rtnetlink(7). It
// speaks that language itself because so little of it is needed, and none of it may
// wait: one question, one command and a subscription.
type Links struct {
	changes int // a socket that is subscribed and never waits
	asks    int // one for questions; it waits for their answers, up to answer
	seq     uint32
	buf     []byte
}

// answer is how long the kernel may take for an answer: the lock it needs is held
// while a driver is loaded or a card is reset.
var answer = unix.Timeval{Sec: 2}

// linkBuffer is what a message of an interface fits in, bytes.
const linkBuffer = 32 << 10

// OpenLinks subscribes to the changes of interfaces. Close it.
func OpenLinks() (*Links, error) {
	l := &Links{changes: -1, asks: -1, buf: make([]byte, linkBuffer)}
	var err error
	if l.changes, err = netlink(unix.RTMGRP_LINK, unix.SOCK_NONBLOCK); err == nil {
		l.asks, err = netlink(0, 0)
	}
	if err == nil {
		err = os.NewSyscallError("setsockopt SO_RCVTIMEO", unix.SetsockoptTimeval(l.asks, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &answer))
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("can: interfaces: %w", err)
	}
	return l, nil
}

// netlink opens a socket that hears of what groups are about.
func netlink(groups uint32, flags int) (int, error) {
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

// Close gives up the sockets.
func (l *Links) Close() {
	for _, fd := range [...]int{l.changes, l.asks} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	l.changes, l.asks = -1, -1
}

// Changes calls see for each change of a CAN interface that waits, and reads at most
// most messages. It does not block. complete is false where changes were lost, which
// happens in a flood of them: ask then.
func (l *Links) Changes(most int, see func(Link)) (complete bool) {
	complete = true
	for range most {
		n, _, err := unix.Recvfrom(l.changes, l.buf, 0)
		if err != nil {
			return complete && err != unix.ENOBUFS
		}
		messages(l.buf[:n], func(kind uint16, _ uint32, data []byte) {
			if link, ok := parseLink(kind, data); ok {
				see(link)
			}
		})
	}
	return complete
}

// Ask tells how the interface name is now. errors.Is tells ErrNoInterface apart.
func (l *Links) Ask(name string) (Link, error) {
	link, err := l.request(unix.RTM_GETLINK, 0, 0, attribute(nil, unix.IFLA_IFNAME, append([]byte(name), 0)))
	if errors.Is(err, unix.ENODEV) {
		return Link{}, fmt.Errorf("can: %s: %w", name, ErrNoInterface)
	}
	if err == nil && link.Index == 0 {
		err = ErrNoInterface // of another kind
	}
	if err != nil {
		return Link{}, fmt.Errorf("can: %s: %w", name, err)
	}
	return link, nil
}

// Restart brings a controller that is off its bus back to it, as `ip link set can0
// type can restart` does; it needs CAP_NET_ADMIN.
func (l *Links) Restart(link Link) error {
	if err := l.change(link, unix.IFLA_CAN_RESTART, 1); err != nil {
		return fmt.Errorf("can: restart %s: %w", link.Name, err)
	}
	return nil
}

// SetRestart sets after how many ms the driver of an interface that is down brings its
// controller back to a bus that it went off, 0: never, as `ip link set can0 type can
// restart-ms 100` does; it needs CAP_NET_ADMIN.
func (l *Links) SetRestart(link Link, ms uint32) error {
	if err := l.change(link, unix.IFLA_CAN_RESTART_MS, ms); err != nil {
		return fmt.Errorf("can: restart-ms of %s: %w", link.Name, err)
	}
	return nil
}

// change sets one attribute of a controller.
func (l *Links) change(link Link, kind uint16, value uint32) error {
	data := attribute(nil, kind, binary.NativeEndian.AppendUint32(nil, value))
	info := attribute(nil, unix.IFLA_INFO_KIND, []byte("can"))
	info = attribute(info, unix.IFLA_INFO_DATA, data)
	_, err := l.request(unix.RTM_NEWLINK, unix.NLM_F_ACK, link.Index, attribute(nil, unix.IFLA_LINKINFO, info))
	return err
}

// request sends a message about the interface with that index and returns what the
// kernel answers.
func (l *Links) request(kind, flags uint16, index int, attributes []byte) (link Link, err error) {
	l.seq++
	e := binary.NativeEndian
	b := e.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+unix.SizeofIfInfomsg+len(attributes)))
	b = e.AppendUint16(b, kind)
	b = e.AppendUint16(b, unix.NLM_F_REQUEST|flags)
	b = e.AppendUint32(b, l.seq)
	b = append(b, make([]byte, 4+4)...) // the sender's port, which the kernel knows; any family
	b = e.AppendUint32(b, uint32(index))
	b = append(append(b, make([]byte, 4+4)...), attributes...) // no flags are changed
	if err := unix.Sendto(l.asks, b, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return Link{}, os.NewSyscallError("sendto", err)
	}
	for done := false; !done; {
		n, _, failed := unix.Recvfrom(l.asks, l.buf, 0)
		if failed == unix.EINTR {
			continue
		}
		if failed != nil {
			return Link{}, os.NewSyscallError("recvfrom", failed)
		}
		messages(l.buf[:n], func(kind uint16, seq uint32, data []byte) {
			if seq != l.seq {
				return // to a question that waited too long
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

// messages walks through what was received at once: linux/netlink.h, struct nlmsghdr.
// What is cut or damaged ends it.
func messages(b []byte, see func(kind uint16, seq uint32, data []byte)) {
	for len(b) >= unix.SizeofNlMsghdr {
		size := uint64(binary.NativeEndian.Uint32(b))
		if size < unix.SizeofNlMsghdr || size > uint64(len(b)) {
			return
		}
		see(binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]), b[unix.SizeofNlMsghdr:size])
		b = b[min(aligned(int(size)), len(b)):]
	}
}

// typeMask takes the flags from an attribute's type: linux/netlink.h, NLA_TYPE_MASK.
const typeMask = 0x3FFF

// attributes walks through attributes: linux/rtnetlink.h, struct rtattr. What is cut or
// damaged ends it.
func attributes(b []byte, see func(kind uint16, data []byte)) {
	for len(b) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(b))
		if size < unix.SizeofRtAttr || size > len(b) {
			return
		}
		see(binary.NativeEndian.Uint16(b[2:])&typeMask, b[unix.SizeofRtAttr:size])
		b = b[min(aligned(size), len(b)):]
	}
}

// attribute appends one.
func attribute(to []byte, kind uint16, data []byte) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(unix.SizeofRtAttr+len(data)))
	to = append(binary.NativeEndian.AppendUint16(to, kind), data...)
	return append(to, make([]byte, aligned(len(data))-len(data))...)
}

// aligned is what a message or an attribute of a size takes among others.
func aligned(size int) int { return (size + 3) &^ 3 }

// parseLink reads a message of a CAN interface; false: it is of something else.
func parseLink(kind uint16, data []byte) (link Link, ok bool) {
	if kind != unix.RTM_NEWLINK && kind != unix.RTM_DELLINK || len(data) < unix.SizeofIfInfomsg ||
		data[0] != unix.AF_UNSPEC || binary.NativeEndian.Uint16(data[2:]) != unix.ARPHRD_CAN {
		return Link{}, false
	}
	link = Link{
		Index: int(binary.NativeEndian.Uint32(data[4:])), Gone: kind == unix.RTM_DELLINK,
		Up: binary.NativeEndian.Uint32(data[8:])&unix.IFF_UP != 0,
	}
	attributes(data[unix.SizeofIfInfomsg:], func(kind uint16, data []byte) {
		switch kind {
		case unix.IFLA_IFNAME:
			link.Name = text(data)
		case unix.IFLA_LINKINFO:
			link.info(data)
		}
	})
	return link, true
}

// info reads what the driver of a kind of interfaces says.
func (l *Link) info(b []byte) {
	var kind string
	var data []byte
	attributes(b, func(k uint16, d []byte) {
		switch k {
		case unix.IFLA_INFO_KIND:
			kind = text(d)
		case unix.IFLA_INFO_DATA:
			data = d
		}
	})
	if l.Card = kind == "can"; l.Card {
		attributes(data, l.controller)
	}
}

// controller reads one of the attributes of a controller: linux/can/netlink.h.
func (l *Link) controller(kind uint16, data []byte) {
	if len(data) < 4 {
		return
	}
	word := binary.NativeEndian.Uint32(data)
	switch kind {
	case unix.IFLA_CAN_STATE:
		states := [...]State{Active, Warning, Passive, Off, Stopped, Stopped} // the last sleeps
		if word < uint32(len(states)) {
			l.State = states[word]
		}
	case unix.IFLA_CAN_BERR_COUNTER: // struct can_berr_counter
		l.Counted, l.Tx, l.Rx = true, binary.NativeEndian.Uint16(data), binary.NativeEndian.Uint16(data[2:])
	case unix.IFLA_CAN_BITTIMING: // struct can_bittiming
		l.BitRate = int(word)
	case unix.IFLA_CAN_RESTART_MS:
		l.RestartMs = int(word)
	}
}

// text is a string of C.
func text(b []byte) string { return unix.ByteSliceToString(b) }
