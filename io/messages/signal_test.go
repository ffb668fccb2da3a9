package messages

import "testing"

// The payloads are examples of both byte orders, of two's complement and of IEEE 754.
func TestValueOfAFrameFollowsItsDescription(t *testing.T) {
	for _, c := range []struct {
		name string
		s    Signal
		data []byte
		raw  uint64
		want float64
	}{
		{"Intel", Signal{Start: 8, Len: 16, Factor: 0.125}, []byte{0, 0xE8, 0x03}, 1000, 125},
		{"Intel across bytes", Signal{Start: 12, Len: 12, Factor: 0.01}, []byte{0, 0x40, 0x1F}, 0x1F4, 5},
		{"Motorola", Signal{Start: 15, Len: 16, BigEndian: true, Factor: 0.125}, []byte{0, 0x03, 0xE8}, 1000, 125},
		{"Motorola within a byte", Signal{Start: 13, Len: 3, BigEndian: true, Factor: 1}, []byte{0, 0x28}, 5, 5},
		{"offset", Signal{Len: 8, Factor: 0.5, Offset: -40}, []byte{100}, 100, 10},
		{"signed", Signal{Len: 12, Signed: true, Factor: 2}, []byte{0xFF, 0x0F}, 0xFFF, -2},
		{"unsigned, all 64 bits", Signal{Len: 64, Factor: 1}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1 << 63, 9223372036854775808},
		{"signed, all 64 bits", Signal{Len: 64, Signed: true, Factor: 1}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1 << 63, -9223372036854775808},
		{"single", Signal{Start: 7, Len: 32, BigEndian: true, Float: true, Factor: 2}, []byte{0xC0, 0x20, 0, 0}, 0xC0200000, -5},
		{"double", Signal{Len: 64, Float: true, Factor: 1, Offset: 1}, []byte{0, 0, 0, 0, 0, 0, 0x04, 0x40}, 0x4004000000000000, 3.5},
	} {
		var data [64]byte
		copy(data[:], c.data)
		if raw := c.s.Raw(&data); raw != c.raw || c.s.Value(raw) != c.want {
			t.Errorf("%s: raw 0x%X is %g, want 0x%X, %g", c.name, raw, c.s.Value(raw), c.raw, c.want)
		}
	}
}
