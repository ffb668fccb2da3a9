// Package can owns frames and the buses that carry them: a raw SocketCAN socket or one end of an
// in-process socket pair, both through the same code.
//
// It does not know what a frame means (package messages), does not wait (the caller polls at its
// tick), does not configure interfaces and keeps no log.
//
// Reading order: frame.go (Frame), bus.go (Bus: RecvAt, Send), dial.go (sockets), errors.go (error
// frames, states of a controller), others.go (frames beside those of the bench), link.go
// (what the kernel says of an interface), host.go (names of interfaces).
package can

import "unsafe"

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
	ERR     uint32 = 1 << 29 // error report of the controller, no frame of the bus
	MaskSFF uint32 = 1<<11 - 1
	MaskEFF uint32 = 1<<29 - 1
)

// Bits of Frame.Flags: linux/can.h, CANFD_BRS, CANFD_ESI, CANFD_FDF.
const (
	FlagBRS uint8 = 1 << 0 // data phase at the higher bit rate
	FlagESI uint8 = 1 << 1 // the sender is error passive
	FlagFDF uint8 = 1 << 2 // a CAN FD frame
)

// FD tells whether f travels as a CAN FD frame: it says so or is too long for
// a classic one.
//
//go:nosplit
func (f *Frame) FD() bool { return f.Flags&FlagFDF != 0 || f.Len > 8 }

// Filter lets a frame pass if its ID and ID agree in the bits of Mask. Mask
// includes EFF and RTR where those have to agree too; Filter{} passes all.
type Filter struct{ ID, Mask uint32 }
