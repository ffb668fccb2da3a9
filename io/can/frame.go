// Package can owns frames and the buses that carry them: a raw SocketCAN socket or one end of an
// in-process socket pair, both through the same code, and a bus by wire, which carries the messages of
// a process image (package wire) over UDP or shared memory.
//
// It does not know what a frame means (package messages), does not wait (the caller polls at its
// tick), does not configure interfaces and keeps no log.
//
// Reading order: frame.go (Frame), bus.go (Bus: RecvAt, Send), dial.go (sockets, and names of
// interfaces), errors.go (error frames, states of a controller), monitor.go (the bus monitor: frames
// that the bench does not read), wire.go (buses by wire), link.go (interfaces as rtnetlink reports them).
package can

import (
	"fmt"
	"slices"
	"unsafe"
)

// Frame is the kernel's struct canfd_frame: what a socket carries, for classic
// CAN (its first 16 bytes) and for CAN FD (all 72).
//
// The zero frame is a classic data frame with identifier 0 and no data.
type Frame struct {
	ID         uint32 // identifier, 11 or 29 bits, with EFF, RTR and ERR above it
	Len        uint8  // bytes of Data in use: 0 to 8, with CAN FD to 64
	Flags      uint8  // FlagBRS, FlagESI, FlagFDF; 0 on a classic frame
	Res0, Res1 uint8  // reserved by the kernel, 0
	Data       [64]byte
}

// Sizes on the socket, bytes: linux/can.h, CAN_MTU and CANFD_MTU.
const (
	sizeClassic = 16
	sizeFD      = 72
)

// The kernel reads and writes Frame as it lies in memory.
var (
	_ [sizeFD]byte = [unsafe.Sizeof(Frame{})]byte{}
	_ [4]byte      = [unsafe.Offsetof(Frame{}.Len)]byte{}
	_ [5]byte      = [unsafe.Offsetof(Frame{}.Flags)]byte{}
	_ [8]byte      = [unsafe.Offsetof(Frame{}.Data)]byte{}
)

// Bits of Frame.ID: linux/can.h.
const (
	EFF     uint32 = 1 << 31 // extended: 29-bit identifier
	RTR     uint32 = 1 << 30 // remote request, carries no data
	ERR     uint32 = 1 << 29 // error report of the controller, not a frame on the bus
	MaskSFF uint32 = 1<<11 - 1
	MaskEFF uint32 = 1<<29 - 1
)

// Bits of Frame.Flags: linux/can.h, CANFD_BRS, CANFD_ESI, CANFD_FDF.
const (
	FlagBRS uint8 = 1 << 0 // data phase at the higher bit rate
	FlagESI uint8 = 1 << 1 // the sender is error passive
	FlagFDF uint8 = 1 << 2 // a CAN FD frame
)

// FlagLong marks a message of more than 8 bytes that several frames carry, as SAE J1939 does. It is not
// a frame of a bus: Bus.Send refuses it. Data has the first 64 bytes.
const FlagLong uint8 = 1 << 7

// FD reports whether f is sent as a CAN FD frame: FlagFDF is set, or Len exceeds 8 without FlagLong.
//
//go:nosplit
func (f *Frame) FD() bool { return f.Flags&FlagFDF != 0 || f.Len > 8 && f.Flags&FlagLong == 0 }

// Lengths maps a data length code to the frame's length in bytes; codes above 8 are CAN FD: ISO 11898-1.
var Lengths = [16]uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64}

// DLC returns the data length code of the smallest frame that holds n bytes, n <= 64.
func DLC(n uint8) uint8 {
	code, _ := slices.BinarySearch(Lengths[:], n)
	return uint8(code)
}

// FormatID formats an identifier for people: 0x110, or 0x18FEBF0B with eight digits if it is extended.
func FormatID(id uint32) string {
	if id&EFF != 0 {
		return fmt.Sprintf("0x%08X", id&MaskEFF)
	}
	return fmt.Sprintf("0x%03X", id&MaskSFF)
}

// Filter passes a frame whose identifier equals ID in the bits of Mask. Mask
// includes EFF and RTR where these bits must match too; Filter{} passes all frames.
type Filter struct{ ID, Mask uint32 }
