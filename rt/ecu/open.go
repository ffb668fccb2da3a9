package ecu

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
)

// Errors of Open.
var (
	ErrNoCAN       = errors.New("this kernel has no CAN sockets (AF_CAN)")
	errNoInterface = errors.New("no such CAN interface")
)

// Open opens a bus for a control unit: a CAN interface by its name, or a descriptor of this process as
// "fd:N", on which every read and write is one frame. An error names the bus and, unless it is ErrNoCAN,
// a remedy.
func Open(bus string) (io.ReadWriteCloser, error) {
	if number, ok := strings.CutPrefix(bus, "fd:"); ok {
		return inherit(bus, number)
	}
	if !isPlainName(bus) {
		return nil, fmt.Errorf("ecu: bus %q: %w%s", bus, errNoInterface, otherInterfaces())
	}
	// Without AF_CAN, brutella/can would continue with descriptor -1.
	fd, err := syscall.Socket(can.AF_CAN, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, 1) // CAN_RAW
	if err != nil {
		return nil, fmt.Errorf("ecu: bus %s: %w: %w", bus, ErrNoCAN, err)
	}
	syscall.Close(fd)
	i, err := net.InterfaceByName(bus)
	if err != nil {
		return nil, fmt.Errorf("ecu: bus %s: %w%s; make a virtual one with: "+
			"ip link add dev %s type vcan && ip link set %s mtu 72 up", bus, errNoInterface, otherInterfaces(), bus, bus)
	}

	if i.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("ecu: bus %s: %w; bring it up with: ip link set %s up", bus, unit.ErrDown, bus)
	}
	line, err := can.NewReadWriteCloserForInterface(i)
	if err != nil {
		return nil, fmt.Errorf("ecu: bus %s: %w: %w%s", bus, errNoInterface, err, otherInterfaces())
	}
	return line, nil
}

// isPlainName reports whether a bus name needs no quotes in a command: up to 15 letters, digits, ".",
// "_" and "-".
func isPlainName(bus string) bool {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	return bus != "" && len(bus) <= 15 && bus[0] != '-' && strings.Trim(bus, allowed) == ""
}

// otherInterfaces lists the CAN interfaces of this host for an error message; "" if there are none.
func otherInterfaces() string {
	list, _ := net.Interfaces()
	var names []string
	for _, i := range list {
		kind, _ := os.ReadFile("/sys/class/net/" + i.Name + "/type")
		if strings.TrimSpace(string(kind)) == "280" { // linux/if_arp.h: ARPHRD_CAN
			names = append(names, i.Name)
		}
	}

	if names == nil {
		return ""
	}
	return ", this host has " + strings.Join(names, ", ")
}

// inherit opens a descriptor that this process inherited.
func inherit(bus, number string) (io.ReadWriteCloser, error) {
	fd, err := strconv.ParseUint(number, 10, 31)
	if err != nil {
		return nil, fmt.Errorf("ecu: bus %q: want fd:N with the number of an open descriptor", bus)
	}
	// Not blocking, so that Close wakes a reader.
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		return nil, fmt.Errorf("ecu: bus %s: %w", bus, os.NewSyscallError("fcntl", err))
	}
	syscall.CloseOnExec(int(fd))
	return os.NewFile(uintptr(fd), bus), nil
}
