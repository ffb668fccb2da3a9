package messages

import (
	"strings"
	"testing"
)

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

// The last byte of a signal is that of the last bit that Bits has, in a message of any length.
func TestSpanAgreesWithTheBits(t *testing.T) {
	for start := range 70 {
		for length := 1; length <= 64; length++ {
			for _, big := range []bool{false, true} {
				s := Signal{Start: start, Len: length, BigEndian: big}
				bits, _ := s.Bits()
				first, last := s.Span()
				if last+1 != bits.Bytes() || first != start/8 {
					t.Fatalf("%+v: bytes %d to %d, want the last to be %d", s, first, last, bits.Bytes()-1)
				}
				s.Start += 8 * 1000
				if f, l := s.Span(); f != first+1000 || l != last+1000 {
					t.Fatalf("%+v: bytes %d to %d", s, f, l)
				}
			}
		}
	}
}

func TestOverlapBeyondByte64IsAFlaw(t *testing.T) {
	m := Message{Name: "M", ID: 0x18FEF1FE | 1<<31, Len: 1785, J1939: true, Signals: []Signal{
		{Name: "a", Start: 8 * 1000, Len: 16, Factor: 1}, {Name: "b", Start: 8*1002 + 7, Len: 16, BigEndian: true, Factor: 1},
		{Name: "c", Start: 8*1001 + 7, Len: 16, BigEndian: true, Factor: 1}, {Name: "d", Start: 8 * 1784, Len: 9, Factor: 1},
	}}
	db := Database{Messages: []Message{m}}
	var got []string
	for _, f := range db.Repair() {
		got = append(got, f.Signal+": "+f.Err.Error())
	}
	want := "d: 14272|9 does not fit the message's 1785 bytes; c: 8015|16 overlaps signal \"a\""
	if strings.Join(got, "; ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}
