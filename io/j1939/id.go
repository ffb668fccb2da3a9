// Package j1939 owns what SAE J1939 adds to CAN below the meaning of a message. Identifiers are
// made of priority, parameter group and addresses. A node has a NAME of 64 bits, and claims its
// address by a state machine (SAE J1939-81).
//
// It opens no bus, waits for nothing and has no clock: the caller hands in frames and instants. It
// does not know what is in a message: package messages describes it, with the identifier as a
// whole.
//
// Reading order: id.go (ID), name.go (Name, Fields), claim.go (the state machine).
package j1939

import "lockstep/io/can"

// Addresses with a meaning of their own: SAE J1939-81.
const (
	Null   = 254 // of a node that has none
	Global = 255 // of all nodes; a destination only
)

// Parameter groups that manage the network: SAE J1939-21, -81.
const (
	PGNRequest = 0xEA00  // asks for the group in the three bytes of its data
	PGNClaim   = 0xEE00  // claims the source address; the data is the NAME
	maxPGN     = 0x3FFFF // two bits of page, PDU format, PDU specific
)

// ID is what a 29-bit identifier says.
type ID struct {
	Priority    uint8  // 0, the highest, to 7
	PGN         uint32 // parameter group, 0 to 0x3FFFF; of a group with a destination its low byte is 0
	Destination uint8  // Global where the group has none
	Source      uint8
}

// Directed tells whether messages of a group have a destination: its PDU format is
// below 240 (PDU1).
func Directed(pgn uint32) bool { return pgn>>8&0xFF < 240 }

// ParseID takes an identifier apart; marks above its 29 bits do not count.
func ParseID(id uint32) ID {
	v := ID{Priority: uint8(id >> 26 & 7), PGN: id >> 8 & maxPGN, Destination: Global, Source: uint8(id)}
	if Directed(v.PGN) {
		v.Destination = uint8(v.PGN)
		v.PGN &^= 0xFF
	}
	return v
}

// Bits is the identifier, with the mark of an extended one.
func (v ID) Bits() uint32 {
	pgn := v.PGN & maxPGN
	if Directed(pgn) {
		pgn = pgn&^0xFF | uint32(v.Destination)
	}
	return can.EFF | uint32(v.Priority&7)<<26 | pgn<<8 | uint32(v.Source)
}

// Filters lets those frames pass that Node.Hear wants: claims, and requests.
func Filters() []can.Filter {
	const format = can.EFF | can.RTR | 0x3FF<<16 // page and PDU format
	return []can.Filter{{ID: can.EFF | PGNClaim<<8, Mask: format}, {ID: can.EFF | PGNRequest<<8, Mask: format}}
}
