package can

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Reasons why Dial fails on this host, for errors.Is.
var (
	ErrNoCAN       = errors.New("this kernel has no AF_CAN")
	ErrNoInterface = errors.New("no such CAN interface")
	ErrDown        = errors.New("the interface is down")
)

// maxFilters is the kernel's limit per socket: linux/can.h, CAN_RAW_FILTER_MAX.
const maxFilters = 512

// Dial opens a raw SocketCAN socket on the interface name, such as "vcan0" or
// "can0". The kernel delivers only frames that pass one of filters, none if
// filters is empty. "fd:N" wraps the inherited file descriptor N instead, with
// the filters it already has. A name for which IsWire holds opens a bus by wire; UseWire
// sets what it receives.
//
// The send queue is the smallest the kernel allows: a frame that has to wait is
// stale, so it is dropped and counted instead.
//
// An error is ErrNoCAN, ErrNoInterface or ErrDown where errors.Is says so; its text
// says what helps.
func Dial(name string, filters []Filter) (*Bus, error) {
	if IsWire(name) {
		return dialWire(name)
	}
	number, inherited := strings.CutPrefix(name, "fd:")
	if !inherited {
		return dialInterface(name, filters, false)
	}
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("can: dial %s: fd:N needs a number from 3 on", name)
	}
	b, err := wrapFD(fd)
	if err != nil {
		return nil, fmt.Errorf("can: dial %s: %w", name, err)
	}
	unix.CloseOnExec(fd)
	return b, nil
}

// dialInterface is Dial for an interface; with invert, only frames that pass none of the
// filters are delivered.
func dialInterface(name string, filters []Filter, invert bool) (*Bus, error) {
	if !LegalName(name) {
		return nil, fmt.Errorf("can: dial %q: %w: %s", name, ErrNoInterface, suggestInterface("vcan0"))
	}
	if len(filters) > maxFilters {
		return nil, fmt.Errorf("can: dial %s: %d filters, the kernel takes %d", name, len(filters), maxFilters)
	}
	fd, err := unix.Socket(unix.AF_CAN, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.CAN_RAW)
	switch err {
	case nil:
	case unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT, unix.ESOCKTNOSUPPORT:
		return nil, fmt.Errorf("can: dial %s: %w: %s", name, ErrNoCAN, HelpWithoutCAN())
	default:
		return nil, fmt.Errorf("can: dial %s: %w", name, os.NewSyscallError("socket", err))
	}

	b := newBus(fd)
	b.inverted = invert
	if err := b.bind(name, filters); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("can: dial %s: %w", name, err)
	}

	return b, nil
}

// bind sets the socket's options and binds it to the interface name. The
// filters come before the address, so that no other frame slips in.
func (b *Bus) bind(name string, filters []Filter) error {
	index, err := b.lookup(name)
	if err != nil {
		return err
	}
	kernel := make([]unix.CanFilter, len(filters))
	for i, f := range filters {
		kernel[i] = unix.CanFilter{Id: f.ID, Mask: f.Mask}
		if b.inverted {
			kernel[i].Id |= unix.CAN_INV_FILTER
		}
	}

	if b.inverted { // a frame must pass all inverted filters, not one of them
		if err := unix.SetsockoptInt(b.fd, unix.SOL_CAN_RAW, unix.CAN_RAW_JOIN_FILTERS, 1); err != nil {
			return os.NewSyscallError("setsockopt CAN_RAW_JOIN_FILTERS", err)
		}
		if len(kernel) == 0 {
			kernel = make([]unix.CanFilter, 1) // passes all frames
		}
	}

	if err := unix.SetsockoptCanRawFilter(b.fd, unix.SOL_CAN_RAW, unix.CAN_RAW_FILTER, kernel); err != nil {
		return os.NewSyscallError("setsockopt CAN_RAW_FILTER", err)
	}
	if err := unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return os.NewSyscallError("setsockopt SO_RXQ_OVFL", err)
	}
	// A driver without a hardware clock, and vcan, deliver the software stamp only.
	stamps := unix.SOF_TIMESTAMPING_RX_SOFTWARE | unix.SOF_TIMESTAMPING_SOFTWARE |
		unix.SOF_TIMESTAMPING_RX_HARDWARE | unix.SOF_TIMESTAMPING_RAW_HARDWARE
	if err := unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, stamps); err != nil {
		return os.NewSyscallError("setsockopt SO_TIMESTAMPING", err)
	}
	// The kernel raises 1 to its minimum of about 4.5 KiB: some 25 classic frames.
	if err := unix.SetsockoptInt(b.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1); err != nil {
		return os.NewSyscallError("setsockopt SO_SNDBUF", err)
	}
	if err := b.subscribeErrors(unix.CAN_ERR_BUSOFF | unix.CAN_ERR_RESTARTED); err != nil {
		return err
	}
	if b.FD {
		// A kernel without CAN FD refuses the option: the bus is classic then.
		b.FD = unix.SetsockoptInt(b.fd, unix.SOL_CAN_RAW, unix.CAN_RAW_FD_FRAMES, 1) == nil
	}

	return os.NewSyscallError("bind", unix.Bind(b.fd, &unix.SockaddrCAN{Ifindex: index}))
}

// Bound reports whether the socket is bound to an existing interface, up or down.
// Removing the interface ends the binding. A closed socket counts as bound.
func (b *Bus) Bound() bool {
	at, err := unix.Getsockname(b.fd)
	can, ok := at.(*unix.SockaddrCAN)
	return err != nil || !ok || can.Ifindex != 0 // a closed socket cannot be bound again
}

// Rebind binds a socket that is no longer Bound to the present interface called name.
// All processes that share the socket are back on the bus with this call; none of them
// blocks meanwhile. Its errors are those of Dial.
func (b *Bus) Rebind(name string, filters []Filter) error {
	if err := b.bind(name, filters); err != nil {
		return fmt.Errorf("can: bind %s again: %w", name, err)
	}
	return nil
}

// lookup returns the index of the CAN interface name, which must be up, and sets b.FD
// from its MTU.
func (b *Bus) lookup(name string) (index int, err error) {
	var got [4]*unix.Ifreq
	for i, request := range [...]uint{unix.SIOCGIFINDEX, unix.SIOCGIFHWADDR, unix.SIOCGIFFLAGS, unix.SIOCGIFMTU} {
		if got[i], err = unix.NewIfreq(name); err == nil {
			err = unix.IoctlIfreq(b.fd, request, got[i])
		}
		if err == unix.ENODEV || err == unix.EINVAL {
			return 0, fmt.Errorf("%w: %s", ErrNoInterface, suggestInterface(name))
		}
		if err != nil {
			return 0, os.NewSyscallError("ioctl", err)
		}
	}

	if got[1].Uint16() != unix.ARPHRD_CAN { // the family of the hardware address
		return 0, fmt.Errorf("%w: %s is not a CAN interface; %s", ErrNoInterface, name, suggestInterface(name))
	}
	if got[2].Uint16()&unix.IFF_UP == 0 {
		options := " type can bitrate 500000 restart-ms 100" // a real controller needs these
		if strings.HasPrefix(name, "vcan") || strings.HasPrefix(name, "vxcan") {
			options = ""
		}
		return 0, fmt.Errorf("%w: ip link set %s up%s", ErrDown, name, options)
	}
	b.FD = got[3].Uint32() >= sizeFD
	return int(got[0].Uint32()), nil
}

// Share makes a second bus of the socket in f; f stays open and the caller's. Both share
// one receive queue: let one bus receive and the other only send.
func Share(f *os.File) (*Bus, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("can: inherit %s: %w", f.Name(), os.NewSyscallError("fcntl", err))
	}
	b, err := wrapFD(fd)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("can: inherit %s: %w", f.Name(), err)
	}

	return b, nil
}

// Inherit makes a bus of f: one end of Pair, or a socket or memory that Dial
// opened, also in another process. On success the bus owns the socket and f is
// closed.
func Inherit(f *os.File) (*Bus, error) {
	b, err := Share(f)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		b.Close()
		return nil, fmt.Errorf("can: inherit %s: %w", f.Name(), err)
	}

	return b, nil
}

// wrapFD makes a bus of an open socket; on an error the caller still owns fd.
func wrapFD(fd int) (*Bus, error) {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == unix.ENOTSOCK {
		b := newBus(fd)
		if e := b.mapShared(); e != nil {
			return nil, fmt.Errorf("%w; %w", os.NewSyscallError("getsockopt SO_DOMAIN", err), e)
		}
		return b, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("getsockopt SO_DOMAIN", err)
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, os.NewSyscallError("getsockopt SO_TYPE", err)
	}
	b := newBus(fd)
	switch {
	case domain == unix.AF_UNIX && kind == unix.SOCK_SEQPACKET:
		b.FD = true
	case domain == unix.AF_CAN && kind == unix.SOCK_RAW:
		v, err := unix.GetsockoptInt(fd, unix.SOL_CAN_RAW, unix.CAN_RAW_FD_FRAMES)
		b.FD = err == nil && v != 0
	case (domain == unix.AF_INET || domain == unix.AF_INET6) && kind == unix.SOCK_DGRAM:
		b.useWire()
	default:
		return nil, fmt.Errorf("fd %d is neither a raw CAN socket nor one end of a pair nor the socket of a bus by wire", fd)
	}

	return b, nil
}

// Pair returns the two ends of an in-process bus: a socket pair that carries
// the frames SocketCAN carries, one per message. The target's end goes to
// Inherit or to another process; the unit's end is read and written like a
// file, and its Close ends a pending Read.
func Pair() (target, unit *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("can: pair: %w", os.NewSyscallError("socketpair", err))
	}
	// Non-blocking, so that os.File waits in the runtime and not in a thread.
	if err := unix.SetNonblock(fds[1], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, fmt.Errorf("can: pair: %w", os.NewSyscallError("fcntl", err))
	}

	return os.NewFile(uintptr(fds[0]), "pair:target"), os.NewFile(uintptr(fds[1]), "pair:unit"), nil
}

// DropReceived lets the kernel drop every frame that arrives at an end of a pair, so that the
// other end can send although nobody reads.
func DropReceived(end *os.File) error {
	drop := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K} // keeps 0 bytes of each frame
	program := unix.SockFprog{Len: 1, Filter: &drop}
	if err := unix.SetsockoptSockFprog(int(end.Fd()), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program); err != nil {
		return fmt.Errorf("can: %s: %w", end.Name(), os.NewSyscallError("setsockopt SO_ATTACH_FILTER", err))
	}
	return nil
}

// suggestInterface returns the help for a wrong interface name: the CAN interfaces of
// this host, or the command that adds one.
func suggestInterface(name string) string {
	if list := Interfaces("/sys/class/net"); len(list) > 0 {
		return "this host has " + strings.Join(list, ", ")
	}
	if !strings.HasPrefix(name, "vcan") || !LegalName(name) {
		name = "vcan0"
	}
	return "ip link add dev " + name + " type vcan && ip link set " + name + " up"
}

// LegalName reports whether name is an interface name that is safe in a shell command:
// 1 to 15 letters, digits, ".", "_" and "-". The kernel also allows others, such as quotes
// and dollar signs: linux net/core/dev.c, dev_valid_name.
func LegalName(name string) bool {
	const legal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return 1 <= len(name) && len(name) <= 15 && name[0] != '-' &&
		strings.Trim(name, legal) == "" && strings.Trim(name, ".") != ""
}

// Interfaces lists the CAN interfaces under dir, which is laid out like
// /sys/class/net; the list is empty if dir cannot be read.
func Interfaces(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var list []string
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name(), "type"))
		if LegalName(e.Name()) && strings.TrimSpace(string(text)) == strconv.Itoa(unix.ARPHRD_CAN) {
			list = append(list, e.Name())
		}
	}

	return list
}
