package messages

import "math"

// Raw returns the raw value of s in a frame; s must have passed Check.
func (s *Signal) Raw(data *[64]byte) (raw uint64) {
	at := s.Start
	for i := range s.Len {
		bit := uint64(data[at/8] >> (at % 8) & 1)
		if s.BigEndian {
			raw = raw<<1 | bit
		} else {
			raw |= bit << i
		}

		at = s.nextBit(at)
	}

	return raw
}

// Value converts a raw value to Unit.
func (s *Signal) Value(raw uint64) float64 { return s.rawNumber(raw)*s.Factor + s.Offset }

// rawNumber returns a raw value as a number, before Factor and Offset.
func (s *Signal) rawNumber(raw uint64) float64 {
	switch {
	case s.Float && s.Len == 32:
		return float64(math.Float32frombits(uint32(raw)))
	case s.Float:
		return math.Float64frombits(raw)
	case s.Signed:
		unused := 64 - s.Len
		return float64(int64(raw<<unused) >> unused)
	}

	return float64(raw)
}

// Selectors lists s and its multiplexors, from s up, without the one that is in every frame. Each
// entry is in a frame only if its own multiplexor has a value within the Ranges of the entry. s is
// a signal of m, which must have passed Check.
func (m *Message) Selectors(s *Signal) (list []*Signal) {
	for ; s.MuxedBy != ""; s = m.Signal(s.MuxedBy) {
		list = append(list, s)
	}
	return list
}

// Present reports whether a frame with this data contains signal s of m; m must have
// passed Check.
func (m *Message) Present(s *Signal, data *[64]byte) bool {
	for _, s := range m.Selectors(s) {
		if v := m.Signal(s.MuxedBy).Raw(data); !intersect(s.Ranges, [][2]uint64{{v, v}}) {
			return false
		}
	}

	return true
}

// Signal returns the signal called name, nil if there is none.
func (m *Message) Signal(name string) *Signal {
	for i := range m.Signals {
		if m.Signals[i].Name == name {
			return &m.Signals[i]
		}
	}

	return nil
}
