// Package messages owns what a message and a signal are, whatever the format of the file that
// describes them. A description has identifier and length, bits, byte order and scale,
// multiplexing, value tables, cycle times, and the protection of groups of signals. It checks and
// repairs a description, and reads the value of one signal in one frame by it.
//
// It does not read files (package dbc), does not bind signals to ports and is no part of the tick
// (package sigmap).
//
// Reading order: database.go (Database, Message, Signal), signal.go (the value of a signal in a
// frame), protection.go (ProtectionSpec), mux.go (multiplexing), check.go (Check), repair.go
// (Repair), errors.go.
package messages

// Database is what a bus carries, as a database file describes it.
type Database struct {
	File     string // for messages
	BusType  string // as in the file: "CAN", "CAN FD"; "" if it does not say
	Messages []Message
}

// Message describes a frame. Times are 0 if the file does not give them.
type Message struct {
	Name         string
	ID           uint32 // identifier, with can.EFF if it is extended
	Len          int    // bytes, 0 to 64
	Signals      []Signal
	Sender       string   // node that sends it, "" if the file names none
	OtherSenders []string // further nodes that do
	Comment      string
	SendType     string // as in the file: "Cyclic", "OnChange", ...
	CycleNs      int64  // time between two frames, ns
	FastNs       int64  // the same while a signal is active, ns
	DelayNs      int64  // least time between two frames, ns
	StartDelayNs int64  // from the start to the first frame, ns
	Repeats      int    // frames that follow a change
	FD           bool   // CAN FD; always with more than 8 bytes
	BRS          bool   // CAN FD and, by the file, with a second bit rate
	J1939        bool   // ID is priority, parameter group and addresses
	Line         int    // in Database.File, 0 if it came from no file
}

// Signal describes a number inside a frame: value = raw·Factor + Offset.
type Signal struct {
	Name       string
	Start      int  // as in a DBC: bit b of byte B is 8·B+b; of the last bit, or the first if BigEndian
	Len        int  // bits, 1 to 64
	BigEndian  bool // Motorola: the bits run from the first byte's highest on
	Signed     bool
	Float      bool    // raw is an IEEE 754 number of 32 or 64 bits
	Factor     float64 // Unit per bit, not 0
	Offset     float64 // Unit
	Min, Max   float64 // Unit; no limits unless Min < Max
	Unit       string
	Comment    string
	Values     []Value  // texts of raw values, in the file's order
	Initial    float64  // raw value before the first real one; if HasInitial
	HasInitial bool     // the file gives Initial
	Receivers  []string // nodes
	SPN        int      // suspect parameter number of J1939, 0 if not given

	// A signal with an Under is in a frame if that signal is, and carries a raw
	// value within one of Ranges.
	Multiplexor bool        // others are Under this one
	Under       string      // "" for a signal that is in every frame
	Ranges      [][2]uint64 // lowest and highest raw value
	Shares      bool        // lies over an earlier signal of the same frames, which Check forgives

	Line int
}

// Value is what a raw value means.
type Value struct {
	Raw  int64 // two's complement, of 64 bits if the signal is signed or that long
	Text string
}

// Bits marks the bits of a frame: bit b of byte B is bit 8·B+b.
type Bits [8]uint64

// Bits returns where s sits; ok is false if that is not within 64 bytes or if s
// has no length from 1 to 64.
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
		at = s.next(at)
	}
	return bits, true
}

// next is the bit of the frame that follows bit at of s.
func (s *Signal) next(at int) int {
	switch {
	case !s.BigEndian:
		return at + 1
	case at%8 == 0: // on to the next byte's highest
		return at + 15
	default:
		return at - 1
	}
}

// Bytes is the length a frame needs to hold all of bits.
func (bits *Bits) Bytes() int {
	for n := 64; n > 0; n-- {
		if byte(bits[(n-1)/8]>>((n-1)%8*8)) != 0 {
			return n
		}
	}
	return 0
}

// Join adds the bits of b.
func (bits *Bits) Join(b *Bits) {
	for i := range bits {
		bits[i] |= b[i]
	}
}

// Overlaps tells whether both mark a bit.
func (bits *Bits) Overlaps(b *Bits) bool {
	for i := range bits {
		if bits[i]&b[i] != 0 {
			return true
		}
	}
	return false
}

// Overlaps tells whether two signals, which lie within 64 bytes, share bits.
func (s *Signal) Overlaps(other *Signal) bool {
	a, _ := s.Bits()
	b, _ := other.Bits()
	return a.Overlaps(&b)
}
