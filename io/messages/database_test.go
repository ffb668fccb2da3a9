package messages

import "testing"

func TestBytesIsTheLengthUpToTheLastBitUsed(t *testing.T) {
	for _, c := range []struct{ start, len, big, want int }{
		{0, 1, 0, 1}, {0, 8, 0, 1}, {0, 9, 0, 2}, {52, 4, 0, 7}, {60, 4, 0, 8}, {508, 4, 0, 64},
		{7, 8, 1, 1}, {7, 9, 1, 2}, {39, 16, 1, 6}, {51, 4, 1, 7},
	} {
		bits, ok := (&Signal{Start: c.start, Len: c.len, BigEndian: c.big == 1}).Bits()
		if got := bits.Bytes(); !ok || got != c.want {
			t.Errorf("%d|%d needs %d bytes, want %d", c.start, c.len, got, c.want)
		}
	}
	for _, s := range []Signal{
		{Start: 0, Len: 0}, {Start: 0, Len: 65}, {Start: -1, Len: 1}, {Start: 512, Len: 1},
		{Start: 505, Len: 8}, {Start: 507, Len: 5, BigEndian: true}, {Start: 1 << 40, Len: 1},
	} {
		if _, ok := s.Bits(); ok {
			t.Errorf("%d|%d fits 64 bytes", s.Start, s.Len)
		}
	}
}
