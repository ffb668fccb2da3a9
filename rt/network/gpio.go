package network

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests and flags of the GPIO character device, version 2: linux/gpio.h.
const (
	getLineIoctl     = 0xC250B407 // GPIO_V2_GET_LINE_IOCTL
	setValuesIoctl   = 0xC010B40F // GPIO_V2_LINE_SET_VALUES_IOCTL
	flagActiveLow    = 1 << 1
	flagOutput       = 1 << 3
	attrOutputValues = 2
)

// lineRequest is struct gpio_v2_line_request.
type lineRequest struct {
	offsets  [64]uint32
	consumer [32]byte
	config   struct {
		flags    uint64
		numAttrs uint32
		_        [5]uint32
		attrs    [10]struct {
			id, _  uint32
			values uint64
			mask   uint64
		}
	}
	numLines, bufferSize uint32
	_                    [5]uint32
	fd                   int32
}

// lineValues is struct gpio_v2_line_values.
type lineValues struct{ bits, mask uint64 }

var (
	_ [592]byte = [unsafe.Sizeof(lineRequest{})]byte{} // the size is part of the request's number
	_ [16]byte  = [unsafe.Sizeof(lineValues{})]byte{}
)

// line switches a supply by a line of a GPIO chip.
type line struct {
	*SupplySpec
	fd *os.File
}

// openLine requests the line as an output for a supply.
func openLine(p *SupplySpec, now Supply) (Switch, error) {
	chip, err := os.OpenFile(p.Chip, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("%w; gpiodetect lists the chips of a host", err)
	}
	defer chip.Close()
	r := lineRequest{numLines: 1}
	r.offsets[0] = p.Line
	copy(r.consumer[:len(r.consumer)-1], "lockstep")
	r.config.flags = flagOutput
	if p.ActiveLow {
		r.config.flags |= flagActiveLow
	}
	r.config.numAttrs = 1
	r.config.attrs[0].id, r.config.attrs[0].mask = attrOutputValues, 1
	if now != SupplyOff {
		r.config.attrs[0].values = 1
	}
	if err := ioctl(chip, getLineIoctl, unsafe.Pointer(&r)); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name(), err)
	}
	return &line{p, os.NewFile(uintptr(r.fd), p.Name())}, nil
}

// Set drives the line. It has no voltage.
func (p *line) Set(s Supply) error {
	if _, volts := s.Volts(); volts {
		return fmt.Errorf("%s: a line is on or off, and has no voltage of %v", p.Name(), s)
	}
	v := lineValues{mask: 1}
	if s == SupplyOn {
		v.bits = 1
	}
	if err := ioctl(p.fd, setValuesIoctl, unsafe.Pointer(&v)); err != nil {
		return fmt.Errorf("%s: %w", p.Name(), err)
	}
	return nil
}

// Close releases the line. The kernel leaves its level as it is, or not: that is the driver's choice.
func (p *line) Close() error { return p.fd.Close() }

// ioctl makes a request of a file.
func ioctl(f *os.File, request uintptr, argument unsafe.Pointer) error {
	if _, _, code := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(argument)); code != 0 {
		return os.NewSyscallError("ioctl", code)
	}
	return nil
}
