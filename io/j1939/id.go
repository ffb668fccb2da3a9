// Package j1939 owns the network layer that SAE J1939 adds to CAN. Identifiers consist of
// priority, parameter group and addresses. A node has a NAME of 64 bits, and claims its address by
// a state machine (SAE J1939-81).
//
// It opens no bus, does not block and has no clock: the caller passes in frames and instants. It
// does not know the content of messages, which package messages describes.
//
// Reading order: id.go (ID), name.go (Name, Parts), claim.go (the state machine).
package j1939

import "lockstep/io/can"

// Special addresses: SAE J1939-81.
const (
	Null   = 254 // source address of a node without an address
	Global = 255 // destination address of all nodes
)

// Parameter groups of network management: SAE J1939-21, -81.
const (
	PGNRequest = 0xEA00  // request; the three data bytes are the group requested
	PGNClaim   = 0xEE00  // address claimed; the data is the NAME
	maxPGN     = 0x3FFFF // two bits of page, PDU format, PDU specific
)

// ID holds the parts of a 29-bit identifier.
type ID struct {
	Priority    uint8  // 0, the highest, to 7
	PGN         uint32 // parameter group, 0 to 0x3FFFF; the low byte is 0 if the group has a destination
	Destination uint8  // destination address; Global if the group has none
	Source      uint8  // source address
}

// Directed reports whether messages of a group have a destination, that is, a PDU format
// below 240 (PDU1).
func Directed(pgn uint32) bool { return pgn>>8&0xFF < 240 }

// ParseID splits an identifier into its parts and ignores the flags above its 29 bits.
func ParseID(id uint32) ID {
	v := ID{Priority: uint8(id >> 26 & 7), PGN: id >> 8 & maxPGN, Destination: Global, Source: uint8(id)}
	if Directed(v.PGN) {
		v.Destination = uint8(v.PGN)
		v.PGN &^= 0xFF
	}

	return v
}

// Bits returns the identifier with can.EFF.
func (v ID) Bits() uint32 {
	pgn := v.PGN & maxPGN
	if Directed(pgn) {
		pgn = pgn&^0xFF | uint32(v.Destination)
	}
	return can.EFF | uint32(v.Priority&7)<<26 | pgn<<8 | uint32(v.Source)
}

// Filters returns filters for the frames that Node.Receive processes: claims and requests.
func Filters() []can.Filter {
	const format = can.EFF | can.RTR | 0x3FF<<16 // page and PDU format
	return []can.Filter{
		{ID: can.EFF | PGNClaim<<8, Mask: format},
		{ID: can.EFF | PGNRequest<<8, Mask: format},
	}
}
