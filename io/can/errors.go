package can

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// State is what a controller has said of itself in an error frame.
type State int

// The states, as far as they are told apart: linux/can/error.h.
const (
	Restarted State = iota // back on the bus: CAN_ERR_RESTARTED; or its interface went down, which starts it anew
	BusOff                 // off the bus: CAN_ERR_BUSOFF
)

// Errors receives the error frames of one interface, on a socket of its own, so
// that none of them is among the frames of the plant.
type Errors struct{ f *os.File }

// ListenErrors opens such a socket on the interface name. Close it.
func ListenErrors(name string) (*Errors, error) {
	fd, err := unix.Socket(unix.AF_CAN, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.CAN_RAW)
	if err != nil {
		return nil, fmt.Errorf("can: errors of %s: %w", name, os.NewSyscallError("socket", err))
	}
	b := open(fd)
	if err := b.bind(name, nil); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("can: errors of %s: %w", name, err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_CAN_RAW, unix.CAN_RAW_ERR_FILTER, unix.CAN_ERR_BUSOFF|unix.CAN_ERR_RESTARTED); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("can: errors of %s: %w", name, os.NewSyscallError("setsockopt CAN_RAW_ERR_FILTER", err))
	}
	return &Errors{os.NewFile(uintptr(fd), "errors of "+name)}, nil
}

// Next waits for the next change of state. An error means that there will be none:
// the socket is closed, or the interface is gone.
func (e *Errors) Next() (State, error) {
	var frame [sizeFD]byte
	for {
		n, err := e.f.Read(frame[:])
		if err != nil {
			if e, ok := err.(*os.PathError); ok && e.Err == unix.ENETDOWN {
				return Restarted, nil // told once; the socket hears again when the interface is up
			}
			return 0, fmt.Errorf("can: %s: %w", e.f.Name(), err)
		}
		id := binary.NativeEndian.Uint32(frame[:])
		switch {
		case n < sizeClassic || id&unix.CAN_ERR_FLAG == 0:
		case id&unix.CAN_ERR_BUSOFF != 0:
			return BusOff, nil
		case id&unix.CAN_ERR_RESTARTED != 0:
			return Restarted, nil
		}
	}
}

// Close ends a pending Next.
func (e *Errors) Close() error { return e.f.Close() }
