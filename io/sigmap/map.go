// Package sigmap owns where each signal sits: it binds the signals of a
// database to the ports of a plant by name, once, and from then on moves values
// between frames and vectors by shifts and masks.
//
// It does not describe messages (package messages), reads no database files (package
// dbc) or bench files, opens no bus and knows no time but the tick it is asked about.
package sigmap

import (
	"sort"

	"lockstep/io/can"
)

// Map moves values between the frames of one bus and the vectors of a plant. It
// is plain data, made by Bind; Decode, Tick, Due and Encode change what it counts and
// what it knows of the frames so far, and nothing else: the same frames at the same
// ticks give the same values.
type Map struct {
	Rx []Rx // by rising ID
	Tx []Tx // in the order of Spec.Sendings

	PeriodNs  int64  // of a tick
	Saturated uint64 // sent signals that were held at the end of their range

	held bool // the value at work is one of them
}

// Filters lets pass exactly the data frames Decode knows.
func (m *Map) Filters() []can.Filter {
	list := make([]can.Filter, len(m.Rx))
	for i := range m.Rx {
		id, mask := m.Rx[i].ID, can.MaskSFF
		if id&can.EFF != 0 {
			mask = can.MaskEFF
		}
		list[i] = can.Filter{ID: id, Mask: mask | can.EFF | can.RTR}
	}
	return list
}

// Find returns the index in Rx of the message with this ID, -1 if there is none.
//
//go:nosplit
func (m *Map) Find(id uint32) int {
	lo, hi := 0, len(m.Rx)
	for lo < hi {
		mid := (lo + hi) / 2
		if m.Rx[mid].ID < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(m.Rx) && m.Rx[lo].ID == id {
		return lo
	}
	return -1
}

// sortRx puts Rx in the order Find relies on.
func (m *Map) sortRx() {
	sort.Slice(m.Rx, func(i, j int) bool { return m.Rx[i].ID < m.Rx[j].ID })
}
