package isotp

import (
	"encoding/binary"
	"time"

	"lockstep/io/can"
)

// Kinds of protocol data units, the high nibble of the first byte: ISO 15765-2, 9.6.
const (
	pciSingle      = 0x0
	pciFirst       = 0x1
	pciConsecutive = 0x2
	pciFlow        = 0x3
)

// Flow statuses of a flow control.
const (
	flowContinue = 0
	flowWait     = 1
	flowOverflow = 2
)

// maxShort is the longest message with a 12-bit length in its first frame, bytes.
const maxShort = 1<<12 - 1

// reservedSTmin stands for the reserved codes of a separation time: ISO 15765-2, 9.6.5.5.
const reservedSTmin = 127 * time.Millisecond

// SeparationTime returns the time of an STmin code: 0 to 0x7F are ms, 0xF1 to 0xF9 are 100 to 900 µs. Any other
// code is reserved and means 127 ms.
func SeparationTime(code uint8) time.Duration {
	switch {
	case code <= 0x7F:
		return time.Duration(code) * time.Millisecond
	case code >= 0xF1 && code <= 0xF9:
		return time.Duration(code-0xF0) * 100 * time.Microsecond
	}
	return reservedSTmin
}

// SeparationCode returns the smallest STmin code for at least a time, at most 127 ms.
func SeparationCode(d time.Duration) uint8 {
	switch us := (d + time.Microsecond - 1) / time.Microsecond; {
	case us <= 0:
		return 0
	case us <= 900:
		return 0xF0 + uint8((us+99)/100)
	}
	return uint8(min((d+time.Millisecond-1)/time.Millisecond, 127))
}

// frame returns a frame with protocol control information and data, padded as the configuration says. It holds
// at most Length bytes.
func (c *Config) frame(pci []byte, data []byte) can.Frame {
	f := can.Frame{ID: c.Tx.ID}
	if c.FD {
		f.Flags = can.FlagFDF
		if c.BRS {
			f.Flags |= can.FlagBRS
		}
	}
	n := 0
	if c.Tx.HasByte {
		f.Data[0], n = c.Tx.Byte, 1
	}
	n += copy(f.Data[n:], pci)
	n += copy(f.Data[n:], data)
	f.Len = can.Lengths[can.DLC(uint8(n))]
	if c.Pad {
		f.Len = max(f.Len, 8)
	}
	for i := n; i < int(f.Len); i++ {
		f.Data[i] = c.PadByte
	}
	return f
}

// single returns the frame of a message that one frame carries; false: it is too long.
func (c *Config) single(data []byte) (can.Frame, bool) {
	n, room := len(data), 8-c.Tx.offset()-1
	switch {
	case n <= room:
		return c.frame([]byte{pciSingle<<4 | uint8(n)}, data), true
	case c.Length > 8 && n <= int(c.Length)-c.Tx.offset()-2:
		return c.frame([]byte{pciSingle << 4, uint8(n)}, data), true
	}
	return can.Frame{}, false
}

// first returns the first frame of a message, and how many bytes of it the frame carries.
func (c *Config) first(data []byte) (can.Frame, int) {
	pci := []byte{pciFirst<<4 | uint8(len(data)>>8), uint8(len(data))}
	if len(data) > maxShort {
		pci = binary.BigEndian.AppendUint32([]byte{pciFirst << 4, 0}, uint32(len(data)))
	}
	n := int(c.Length) - c.Tx.offset() - len(pci)
	return c.frame(pci, data[:n]), n
}

// consecutive returns a consecutive frame of the rest of a message, and how many bytes of it the frame carries.
func (c *Config) consecutive(sequence uint8, rest []byte) (can.Frame, int) {
	n := min(len(rest), int(c.Length)-c.Tx.offset()-1)
	return c.frame([]byte{pciConsecutive<<4 | sequence&0xF}, rest[:n]), n
}

// flow returns a flow control.
func (c *Config) flow(status uint8) can.Frame {
	return c.frame([]byte{pciFlow<<4 | status, c.BlockSize, c.STmin}, nil)
}

// parseSingle returns the message of a single frame; nil: the frame is invalid. p begins with the protocol
// control information; long says that the frame has more than 8 bytes.
func parseSingle(p []byte, long bool) []byte {
	n, from := int(p[0]&0xF), 1
	if long {
		if n != 0 {
			return nil
		}
		n, from = int(p[1]), 2
	}
	if n == 0 || from+n > len(p) {
		return nil
	}
	return p[from : from+n]
}

// parseFirst returns the length of the message that a first frame announces and its first bytes; 0: the frame is
// invalid. A message that a single frame would carry has none.
func parseFirst(p []byte, frameLen uint8, offset int) (size int64, data []byte) {
	if frameLen < 8 {
		return 0, nil
	}
	size, from := int64(p[0]&0xF)<<8|int64(p[1]), 2
	if size == 0 {
		if size, from = int64(binary.BigEndian.Uint32(p[2:])), 6; size <= maxShort {
			return 0, nil
		}
	}
	longest := int64(8 - offset - 1)
	if frameLen > 8 {
		longest = int64(frameLen) - int64(offset) - 2
	}
	if size <= longest {
		return 0, nil
	}
	return size, p[from:]
}
