package sched

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// boundName is a name in the abstract namespace of sockets.
type boundName struct {
	name string // without its first byte, which is 0
	uid  int    // user of the socket; -1: not known
}

// boundNames lists the names on the host below root, "/" for the running one. The kernel tells the
// user of a socket by sock_diag(7) since Linux 5.3. Without it the names come from /proc/net/unix,
// where a name with a line end can pose as a line.
func boundNames(root string) (list []boundName) {
	if filepath.Clean(root) == "/" {
		if list, err := queryBoundNames(); err == nil {
			return list
		}
	}

	text, _ := os.ReadFile(filepath.Join(root, "proc/net/unix"))
	for line := range strings.Lines(string(text)) {
		if _, name, found := strings.Cut(line, " @"); found {
			list = append(list, boundName{strings.TrimSuffix(name, "\n"), -1})
		}
	}

	return list
}

// From linux/sock_diag.h and linux/unix_diag.h.
const (
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	unixDiagSize     = 16 // struct unix_diag_msg, before the attributes
	unixDiagName     = 0  // UNIX_DIAG_NAME
	unixDiagUID      = 7  // UNIX_DIAG_UID
	unixShowName     = 1  // UDIAG_SHOW_NAME
	unixShowUID      = 64 // UDIAG_SHOW_UID
)

// queryBoundNames asks the kernel for the names of this network namespace and their users.
func queryBoundNames() ([]boundName, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	order := binary.NativeEndian
	request := order.AppendUint32(nil, unix.SizeofNlMsghdr+24) // struct unix_diag_req has 24 bytes
	request = order.AppendUint16(request, sockDiagByFamily)
	request = order.AppendUint16(request, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	request = append(request, make([]byte, 8)...) // sequence, port
	request = append(request, unix.AF_UNIX, 0, 0, 0)
	request = order.AppendUint32(request, ^uint32(0)) // sockets in all states
	request = order.AppendUint32(request, 0)          // of any inode
	request = order.AppendUint32(request, unixShowName|unixShowUID)
	request = append(request, make([]byte, 8)...) // cookie
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, os.NewSyscallError("sendto", err)
	}

	var list []boundName
	for data := make([]byte, 64<<10); ; {
		n, _, err := unix.Recvfrom(fd, data, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("recvfrom", err)
		}
		more, done, err := parseUnixDiag(data[:n])
		if list = append(list, more...); err != nil || done {
			return list, err
		}
	}
}

// errDiag means that an answer of the kernel cannot be read.
var errDiag = errors.New("sched: sock_diag: invalid answer")

// parseUnixDiag returns the names in one answer of the kernel; done: it is the last answer.
func parseUnixDiag(data []byte) (list []boundName, done bool, err error) {
	order := binary.NativeEndian
	for len(data) >= unix.SizeofNlMsghdr {
		size, kind := int(order.Uint32(data)), order.Uint16(data[4:])
		if size < unix.SizeofNlMsghdr || size > len(data) {
			return list, false, errDiag
		}
		body := data[unix.SizeofNlMsghdr:size]
		data = data[min(align4(size), len(data)):]
		switch {
		case kind == unix.NLMSG_DONE:
			return list, true, nil
		case kind == unix.NLMSG_ERROR && len(body) >= 4:
			return list, false, fmt.Errorf("sched: sock_diag: %w", unix.Errno(-int32(order.Uint32(body))))
		case kind != sockDiagByFamily || len(body) < unixDiagSize:
			return list, false, errDiag
		}

		if b := parseUnixSocket(body[unixDiagSize:]); b.name != "" {
			list = append(list, b)
		}
	}

	return list, false, nil
}

// parseUnixSocket reads the attributes of one socket; name "": it has no abstract name.
func parseUnixSocket(attributes []byte) boundName {
	order, b := binary.NativeEndian, boundName{uid: -1}
	for len(attributes) >= unix.SizeofRtAttr {
		size, kind := int(order.Uint16(attributes)), order.Uint16(attributes[2:])
		if size < unix.SizeofRtAttr || size > len(attributes) {
			break
		}
		value := attributes[unix.SizeofRtAttr:size]
		attributes = attributes[min(align4(size), len(attributes)):]
		switch {
		case kind == unixDiagName && len(value) > 1 && value[0] == 0: // else a path
			b.name = string(value[1:])
		case kind == unixDiagUID && len(value) == 4:
			b.uid = int(order.Uint32(value))
		}
	}

	return b
}

// align4 rounds a size up to the alignment of netlink.
func align4(size int) int { return (size + 3) &^ 3 }
