// Package sigmap owns the signal map between frames and plant ports. Before the run it binds the
// signals of a database to the ports of a plant by name. In the tick it moves values between
// frames and vectors by shifts and masks.
//
// It does not describe messages (package messages), reads no database files (package dbc) or bench
// files, opens no bus and has no clock: the caller passes the tick.
//
// Reading order, in the tick: map.go (Map), decode.go (Decode; Tick: timeouts), encode.go (Due,
// Encode), field.go (bits of a signal; numbers split over two bit ranges), waveform.go (values over
// time), protect.go (sets counter and checksum), protect_check.go (checks both), excerpt.go
// (J1939 messages of more than 64 bytes).
//
// Before the run: spec.go (Spec, the input of Bind), bind.go with bind_receive.go and bind_send.go
// (Bind, phases of sent frames), address.go (addresses of J1939, Find's patterns),
// bind_excerpt.go (J1939 messages of more than 64 bytes), value.go (values and names as text), protect_spec.go
// (ProtectionSpec, profiles) with protect_prepare.go.
package sigmap

import (
	"slices"

	"lockstep/io/can"
)

// The bits of an identifier that a frame of J1939 need not have in common with its message.
const (
	priorityBits    = uint32(7) << 26
	destinationBits = uint32(0xFF) << 8
	sourceBits      = uint32(0xFF)
)

// Map moves values between the frames of one bus and the vectors of a plant. It is plain
// data, made by Bind. Decode, Tick, Due and Encode change only its counters and the state
// of its messages: the same frames at the same ticks give the same values.
type Map struct {
	Rx       []Rx           // received messages, by the rising identifier of the database
	Patterns []Pattern      // identifiers of Rx: the more specific masks first, then by rising ID
	Groups   []PatternGroup // patterns with the same mask, in their order
	Tx       []Tx           // sent messages, in the order of Spec.Sendings

	PeriodNs  int64  // period of the tick, ns
	Saturated uint64 // signal values limited to the end of their range when sent

	saturated bool // rawValue limited its last value
}

// HasLong reports whether the map has messages that several frames carry.
func (m *Map) HasLong() bool {
	return slices.ContainsFunc(m.Rx, func(r Rx) bool { return r.Long }) ||
		slices.ContainsFunc(m.Tx, func(t Tx) bool { return t.Flags&can.FlagLong != 0 })
}

// Pattern selects the frames of a received message.
type Pattern struct {
	ID, Mask uint32 // frames whose identifier is ID in the bits of Mask
	Rx       int    // index in Map.Rx
}

// PatternGroup is the part of Map.Patterns with one mask; First and End are indices.
type PatternGroup struct {
	Mask       uint32
	First, End int
}

// Filters returns filters that pass exactly the frames that are not Unknown to Decode: those of the
// received messages, and those that differ from them in their format only.
func (m *Map) Filters() []can.Filter {
	list := make([]can.Filter, len(m.Patterns))
	for i, p := range m.Patterns {
		mask := p.Mask & can.MaskEFF
		if m.Rx[p.Rx].Paired {
			mask |= can.EFF
		}
		list[i] = can.Filter{ID: p.ID & mask, Mask: mask}
	}

	return list
}

// LoopFilters returns filters that pass the data frames of all messages, those of Filters first. A
// received frame of a sent message comes from another node.
func (m *Map) LoopFilters() []can.Filter {
	list := m.Filters()
	for i := range m.Tx {
		list = append(list, filter(m.Tx[i].ID))
	}

	return list
}

// filter returns the filter that passes the data frames of an identifier.
func filter(id uint32) can.Filter {
	mask := can.MaskSFF
	if id&can.EFF != 0 {
		mask = can.MaskEFF
	}
	return can.Filter{ID: id, Mask: mask | can.EFF | can.RTR}
}

// Find returns the index in Rx of the message with this identifier, -1 if there is none. A Map has at
// most five groups.
//
//go:nosplit
func (m *Map) Find(id uint32) int {
	for g := range m.Groups {
		group := &m.Groups[g]
		key, lo, hi := id&group.Mask, group.First, group.End
		for lo < hi {
			mid := (lo + hi) / 2
			if m.Patterns[mid].ID < key {
				lo = mid + 1
			} else {
				hi = mid
			}
		}

		if lo < group.End && m.Patterns[lo].ID == key {
			return m.Patterns[lo].Rx
		}
	}

	return -1
}

// FindToAll is Find for a J1939 frame to all nodes that is for several messages; -1: it is not.
//
//go:nosplit
func (m *Map) FindToAll(id uint32) int {
	if id&(can.EFF|destinationBits) != can.EFF|destinationBits {
		return -1
	}
	i := m.Find(id)
	if i >= 0 && m.Rx[i].Also == 0 {
		return -1
	}
	return i
}

// Further makes a frame that is for message i, and for others, one for the next of them, and returns its
// index; -1: there is none.
//
//go:nosplit
func (m *Map) Further(i int, f *can.Frame) int {
	if i < 0 || m.Rx[i].Also == 0 {
		return -1
	}
	f.ID = f.ID&^destinationBits | uint32(m.Rx[i].AlsoTo)<<8
	return m.Rx[i].Also - 1
}

// FindNumber returns the index in Rx of the message whose number a frame of the wrong format has, by the
// frame's ID; -1 if there is none. It takes a message with the same length of the identifier, else one
// with the other length, unless the database has a message with the identifier of the frame.
//
//go:nosplit
func (m *Map) FindNumber(id uint32) int {
	if id&can.ERR != 0 {
		return -1
	}
	id &= can.EFF | can.MaskEFF
	if i := m.Find(id); i >= 0 {
		if !m.Rx[i].Strict {
			return -1
		}
		return i
	}

	i := m.Find(id ^ can.EFF)
	if i >= 0 && (!m.Rx[i].Strict || m.Rx[i].Paired) {
		return -1
	}
	return i
}
