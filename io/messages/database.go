// Package messages owns the description of messages and signals, independent of the file format.
// A description has identifier and length, bits, byte order and scale, multiplexing, value tables
// and cycle times. The package checks and repairs a description, and reads the value of a signal
// from a frame.
//
// It does not read files (package dbc) and does not bind signals to ports (package sigmap). The
// tick does not use it.
//
// Reading order: database.go (Database, Message, Signal), signal.go (the value of a signal in a
// frame, multiplexing), check.go (Check, Repair, and their errors).
package messages

// Database describes the messages of a bus, as a database file does.
type Database struct {
	File     string // name for error messages
	Messages []Message
}

// Message describes a frame. Times are 0 if the file does not give them.
type Message struct {
	Name         string
	ID           uint32 // identifier, with can.EFF if it is extended
	Len          int    // bytes, 0 to 64; of a J1939 message to MaxLong
	Signals      []Signal
	Sender       string   // node that sends it, "" if the file names none
	OtherSenders []string // further nodes that send it
	Comment      string
	SendType     string // as in the file: "Cyclic", "OnChange", ...
	CycleNs      int64  // time between two frames, ns
	FastNs       int64  // time between two frames while a signal is active, ns
	DelayNs      int64  // minimum time between two frames, ns
	Repeats      int    // frames repeated after a change
	FD           bool   // CAN FD frame; always true if Len > 8, except for a J1939 message
	LongFD       bool   // FD follows from Len alone: the file does not name the format
	NoFormat     bool   // the file names no format; FD is a guess
	BRS          bool   // CAN FD frame with bit rate switch
	J1939        bool   // ID consists of priority, parameter group and addresses
	Line         int    // line in Database.File, from 1; 0 if there is no file
}

// Signal describes a number inside a frame: value = raw·Factor + Offset.
type Signal struct {
	Name       string
	Start      int     // as in a DBC: bit b of byte B is 8·B+b; the lowest bit, or the highest if BigEndian
	Len        int     // bits, 1 to 64
	BigEndian  bool    // Motorola byte order: bits run down from the highest bit of the first byte
	Signed     bool    // raw is two's complement
	Float      bool    // raw is an IEEE 754 number of 32 or 64 bits
	Factor     float64 // in Unit per bit, not 0
	Offset     float64 // in Unit
	Min, Max   float64 // in Unit; no limits unless Min < Max
	Unit       string
	Comment    string
	Values     []Value  // texts of raw values, in the file's order
	Initial    float64  // start value, raw; valid if HasInitial
	HasInitial bool     // the file gives Initial
	InitialRaw int64    // Initial of at least 2^53, exact: two's complement if the signal is signed; 0: Initial is exact
	Receivers  []string // names of receiving nodes
	SPN        int      // suspect parameter number of J1939, 0 if not given

	// A multiplexed signal is in a frame if its multiplexor is, and if the raw value of
	// the multiplexor is within one of Ranges.
	Multiplexor bool        // the raw value of this signal selects other signals
	MuxedBy     string      // name of the multiplexor; "" for a signal in every frame
	Ranges      [][2]uint64 // lowest and highest raw value
	MayOverlap  bool        // Check accepts that it overlaps an earlier signal of the same frames

	Line int // line in Database.File, from 1; 0 if there is no file
}

// IsFD reports whether the frames of m are CAN FD frames.
func (m *Message) IsFD() bool { return m.FD || m.Len > 8 && !m.Long() }

// Value is an entry of a value table: a raw value and its text.
type Value struct {
	Raw  int64 // raw value; two's complement of 64 bits if the signal is signed or has 64 bits
	Text string
}

// Bits is a set of bits of a frame: bit b of byte B is bit 8·B+b.
type Bits [8]uint64

// Span returns the first and the last byte of the message that s takes; Len is 1 to 64.
func (s *Signal) Span() (first, last int) {
	first = s.Start / 8
	if s.BigEndian {
		return first, first + (s.Len+6-s.Start%8)/8
	}
	return first, (s.Start + s.Len - 1) / 8
}

// Bits returns the bits of the frame that s takes; ok is false if these are not within
// 64 bytes or if the length of s is not 1 to 64.
func (s *Signal) Bits() (bits Bits, ok bool) {
	if s.Len < 1 || s.Len > 64 || s.Start < 0 || s.Start > 511 {
		return bits, false
	}
	at := s.Start
	for range s.Len {
		if at > 511 {
			return bits, false
		}
		bits[at/64] |= 1 << (at % 64)
		at = s.nextBit(at)
	}

	return bits, true
}

// nextBit returns the bit of the frame that follows bit at of s.
func (s *Signal) nextBit(at int) int {
	switch {
	case !s.BigEndian:
		return at + 1
	case at%8 == 0: // continue at the highest bit of the next byte
		return at + 15
	default:
		return at - 1
	}
}

// Bytes returns the number of bytes that a frame needs to hold all of bits.
func (bits *Bits) Bytes() int {
	for n := 64; n > 0; n-- {
		if byte(bits[(n-1)/8]>>((n-1)%8*8)) != 0 {
			return n
		}
	}

	return 0
}

// Add adds the bits of b to the set.
func (bits *Bits) Add(b *Bits) {
	for i := range bits {
		bits[i] |= b[i]
	}
}

// Overlaps reports whether the sets have a bit in common.
func (bits *Bits) Overlaps(b *Bits) bool {
	for i := range bits {
		if bits[i]&b[i] != 0 {
			return true
		}
	}

	return false
}
