package messages

import "math"

// Raw returns the bits of s, which has passed Check, in a frame.
func (s *Signal) Raw(data *[64]byte) (raw uint64) {
	at := s.Start
	for i := range s.Len {
		bit := uint64(data[at/8] >> (at % 8) & 1)
		if s.BigEndian {
			raw = raw<<1 | bit
		} else {
			raw |= bit << i
		}
		at = s.next(at)
	}
	return raw
}

// Value is what raw bits mean, in Unit.
func (s *Signal) Value(raw uint64) float64 { return s.number(raw)*s.Factor + s.Offset }

// number is what raw bits mean as a number, before Factor and Offset.
func (s *Signal) number(raw uint64) float64 {
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

// Present tells whether signal s of m, which has passed Check, is in a frame with
// this data.
func (m *Message) Present(s *Signal, data *[64]byte) bool {
	for s.Under != "" {
		by := m.Signal(s.Under)
		if v := by.Raw(data); !meet(s.Ranges, [][2]uint64{{v, v}}) {
			return false
		}
		s = by
	}
	return true
}

// Signal returns the signal of this name, nil if there is none.
func (m *Message) Signal(name string) *Signal {
	for i := range m.Signals {
		if m.Signals[i].Name == name {
			return &m.Signals[i]
		}
	}
	return nil
}
