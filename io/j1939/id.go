// Package j1939 owns the network layer that SAE J1939 adds to CAN. Identifiers consist of
// priority, parameter group and addresses. A node has a NAME of 64 bits, and claims its address by
// a state machine (SAE J1939-81). A node answers requests for groups, and the transport protocol
// carries messages of up to 1785 bytes in packets of seven (SAE J1939-21).
//
// It opens no bus, does not block and has no clock: the caller passes in frames and instants. It
// does not know the content of messages, which package messages describes.
//
// Reading order: id.go (ID, requests), name.go (Name, Parts), claim.go (the state machine of a claim),
// transport.go (Transport: the state machines of the transport protocol), diagnosis.go (trouble codes),
// inquiry.go (Inquirer: requests of a tester).
package j1939

import "lockstep/io/can"

// Special addresses: SAE J1939-81.
const (
	Null   = 254 // source address of a node without an address
	Global = 255 // destination address of all nodes
)

// Parameter groups of the network layer: SAE J1939-21, -81.
const (
	PGNAck        = 0xE800  // acknowledgement of a request
	PGNRequest    = 0xEA00  // request; the three data bytes are the group requested
	PGNPacket     = 0xEB00  // transport protocol: a packet of a message, TP.DT
	PGNConnection = 0xEC00  // transport protocol: connection management, TP.CM
	PGNClaim      = 0xEE00  // address claimed; the data is the NAME
	maxPGN        = 0x3FFFF // two bits of page, PDU format, PDU specific
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

// Filters returns filters for frames of directed groups, or of claims.
func Filters(pgns ...uint32) (list []can.Filter) {
	const format = can.EFF | can.RTR | 0x3FF<<16 // page and PDU format
	for _, pgn := range pgns {
		list = append(list, can.Filter{ID: can.EFF | pgn<<8, Mask: format})
	}
	return list
}

// Requested returns the group that a frame requests; ok is false if the frame is no request.
func Requested(f *can.Frame) (pgn uint32, ok bool) {
	if !isData(f) || ParseID(f.ID).PGN != PGNRequest || f.Len < 3 {
		return 0, false
	}
	pgn = pgnAt(f.Data[:])
	if Directed(pgn) {
		pgn &^= 0xFF
	}
	return pgn, true
}

// Refusal returns the negative acknowledgement with which a node at an address answers a request that
// it does not support: SAE J1939-21, 5.4.4. It goes to all; byte 5 has the address of the requester.
func Refusal(request *can.Frame, address uint8) can.Frame {
	const negative = 1
	id := ParseID(request.ID)
	f := can.Frame{ID: ID{Priority: 6, PGN: PGNAck, Destination: Global, Source: address}.Bits(), Len: 8}
	copy(f.Data[:], []byte{negative, 0xFF, 0xFF, 0xFF, id.Source, request.Data[0], request.Data[1], request.Data[2]})
	return f
}

// isData reports whether a frame has 29 bits and data.
func isData(f *can.Frame) bool { return f.ID&can.EFF != 0 && f.ID&(can.RTR|can.ERR) == 0 }

// pgnAt returns the group in the first three bytes of b.
func pgnAt(b []byte) uint32 { return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 }
