// Package sigmap owns where each signal sits: it binds the signals of a
// database to the ports of a plant by name, once, and from then on moves values
// between frames and vectors by shifts and masks.
//
// It does not read database files (package dbc) or bench files, opens no bus
// and knows no time but the tick it is asked about.
package sigmap

import "fmt"

// Database is what a bus carries, as a database file describes it.
type Database struct {
	File     string // for messages
	Messages []Message
}

// Message describes a frame.
type Message struct {
	Name    string
	ID      uint32 // identifier, with can.EFF if it is extended
	Len     int    // bytes, 0 to 64
	Signals []Signal
	Line    int // in Database.File, 0 if it came from no file
}

// Signal describes a number inside a frame: value = raw·Factor + Offset.
type Signal struct {
	Name      string
	Start     int  // as in a DBC: bit b of byte B is 8·B+b; of the last bit, or the first if BigEndian
	Len       int  // bits, 1 to 64
	BigEndian bool // Motorola: the bits run from the first byte's highest on
	Signed    bool
	Factor    float64 // Unit per bit, not 0
	Offset    float64 // Unit
	Min, Max  float64 // Unit; no limits unless Min < Max
	Unit      string
	Mux       string // "M", "m0", "m0M": the multiplexor's mark, "" for a plain signal
	Float     bool   // raw is an IEEE 754 number
	Line      int
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
		switch {
		case !s.BigEndian:
			at++
		case at%8 == 0: // on to the next byte's highest
			at += 15
		default:
			at--
		}
	}
	return bits, true
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

// join adds the bits of b.
func (bits *Bits) join(b *Bits) {
	for i := range bits {
		bits[i] |= b[i]
	}
}

// overlaps tells whether both mark a bit.
func (bits *Bits) overlaps(b *Bits) bool {
	for i := range bits {
		if bits[i]&b[i] != 0 {
			return true
		}
	}
	return false
}

// at is the start of an error about a line of the database.
func (db *Database) at(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", db.File, line)
}
