package sigmap

// Raw returns the bits of s, which has passed Check, in a frame.
func (s *Signal) Raw(data *[64]byte) uint64 {
	var f Field
	f.place(s)
	return f.load(data)
}

// Value is what raw bits mean, in Unit.
func (s *Signal) Value(raw uint64) float64 {
	f := Field{Len: uint8(s.Len), Signed: s.Signed, Float: s.Float}
	return f.number(raw)*s.Factor + s.Offset
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
