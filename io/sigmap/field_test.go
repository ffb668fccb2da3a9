package sigmap

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"lockstep/io/messages"
)

// Bit positions worked out by hand from the DBC conventions: Intel's start bit
// is the lowest of the signal, Motorola's the highest, bit b of byte B is 8·B+b.
var positions = []struct {
	name       string
	start, len int
	big        bool
	raw        uint64
	at         int    // byte the data begin at
	data       string // hex, all other bytes are zero
}{
	{"intel byte", 0, 8, false, 0xA5, 0, "a5"},
	{"intel across two bytes", 4, 8, false, 0xA5, 0, "500a"},
	{"intel twelve bits", 12, 12, false, 0xABC, 1, "c0ab"},
	{"intel fifteen bits over three bytes", 15, 15, false, 0x7FFF, 1, "80ff3f"},
	{"intel lowest bit of them", 15, 15, false, 1, 1, "80"},
	{"intel highest bit of them", 15, 15, false, 0x4000, 3, "20"},
	{"intel last bit of eight bytes", 63, 1, false, 1, 7, "80"},
	{"intel sixty-four bits", 0, 64, false, 0x0123456789ABCDEF, 0, "efcdab8967452301"},
	{"intel over nine bytes", 3, 64, false, math.MaxUint64, 0, "f8ffffffffffffff07"},
	{"intel highest bit in the ninth byte", 3, 64, false, 1 << 63, 8, "04"},
	{"intel ends with the frame", 448, 64, false, 0x0123456789ABCDEF, 56, "efcdab8967452301"},
	{"intel nine bytes up to the last", 441, 64, false, 1<<63 | 1, 55, "020000000000000001"},
	{"intel last nibble", 508, 4, false, 0x9, 63, "90"},
	{"motorola byte", 7, 8, true, 0xA5, 0, "a5"},
	{"motorola two bytes", 7, 16, true, 0x1234, 0, "1234"},
	{"motorola twelve bits", 3, 12, true, 0xABC, 0, "0abc"},
	{"motorola twelve bits from the top", 7, 12, true, 0xABC, 0, "abc0"},
	{"motorola nibble", 51, 4, true, 0x9, 6, "09"},
	{"motorola high bit of two", 0, 2, true, 2, 0, "01"},
	{"motorola low bit of two", 0, 2, true, 1, 1, "80"},
	{"motorola sixty-four bits", 7, 64, true, 0x0123456789ABCDEF, 0, "0123456789abcdef"},
	{"motorola over nine bytes", 4, 64, true, math.MaxUint64, 0, "1fffffffffffffffe0"},
	{"motorola lowest bit in the ninth byte", 4, 64, true, 1, 8, "20"},
	{"motorola highest bit of nine bytes", 4, 64, true, 1 << 63, 0, "10"},
	{"motorola ends with the frame", 455, 64, true, 0x0123456789ABCDEF, 56, "0123456789abcdef"},
	{"motorola nine bytes up to the last", 444, 64, true, 1<<63 | 1, 55, "100000000000000020"},
	{"motorola last byte", 511, 8, true, 0xA5, 63, "a5"},
	{"motorola last bit", 504, 1, true, 1, 63, "01"},
}

func TestFieldsUseTheBitsOfTheDatabase(t *testing.T) {
	for _, c := range positions {
		t.Run(c.name, func(t *testing.T) {
			f := rawField(&messages.Signal{Start: c.start, Len: c.len, BigEndian: c.big})
			part, err := hex.DecodeString(c.data)
			if err != nil {
				t.Fatal(err)
			}
			var want [64]byte
			copy(want[c.at:], part)
			var got [64]byte
			f.store(&got, c.raw)
			if got != want {
				t.Errorf("stored % X, want % X", got, want)
			}
			if raw := f.load(&want); raw != c.raw {
				t.Errorf("loaded 0x%X, want 0x%X", raw, c.raw)
			}
		})
	}
}

func TestStoreChangesOnlyTheBitsOfItsField(t *testing.T) {
	for _, c := range positions {
		s := messages.Signal{Start: c.start, Len: c.len, BigEndian: c.big}
		bits, ok := s.Bits()
		if !ok {
			t.Fatalf("%s: no place", c.name)
		}
		f := rawField(&s)
		var others [64]byte
		for i := range others {
			others[i] = ^byte(bits[i/8] >> (i % 8 * 8))
		}
		data := others
		if raw := f.load(&data); raw != 0 {
			t.Errorf("%s: loaded 0x%X from the neighbours", c.name, raw)
		}
		f.store(&data, f.mask())
		for i := range data {
			if data[i] != 0xFF {
				t.Errorf("%s: byte %d is 0x%X with all bits set", c.name, i, data[i])
			}
		}
		data = others
		f.store(&data, 0)
		if data != others {
			t.Errorf("%s: storing 0 changed the neighbours", c.name)
		}
	}
}

// slow returns a signal read bit by bit, highest first.
func slow(s *messages.Signal, data *[64]byte) (raw uint64) {
	for i := range s.Len {
		at := s.Start + s.Len - 1 - i
		if s.BigEndian { // the same counted from the frame's first bit on the wire
			wire := 8*(s.Start/8) + 7 - s.Start%8 + i
			at = 8*(wire/8) + 7 - wire%8
		}
		raw = raw<<1 | uint64(data[at/8]>>(at%8)&1)
	}
	return raw
}

func FuzzFieldEqualsReadingBitByBit(f *testing.F) {
	f.Add(uint16(0), uint8(1), false, uint64(1))
	f.Add(uint16(441), uint8(64), false, uint64(7))
	f.Add(uint16(444), uint8(64), true, uint64(9))
	f.Fuzz(func(t *testing.T, start uint16, length uint8, big bool, seed uint64) {
		checkField(t, &messages.Signal{Start: int(start % 512), Len: int(length%64) + 1, BigEndian: big}, rand.New(rand.NewPCG(seed, 1)))
	})
}

func TestEveryFieldEqualsReadingBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for start := range 512 {
		for length := 1; length <= 64; length++ {
			checkField(t, &messages.Signal{Start: start, Len: length}, r)
			checkField(t, &messages.Signal{Start: start, Len: length, BigEndian: true}, r)
		}
	}
}

// checkField loads a signal from random data and stores it again; it does nothing where 64 bytes do not hold
// the signal.
func checkField(t *testing.T, s *messages.Signal, r *rand.Rand) {
	t.Helper()
	bits, ok := s.Bits()
	if !ok {
		return
	}
	var data [64]byte
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	field := rawField(s)
	raw := field.load(&data)
	if want := slow(s, &data); raw != want {
		t.Fatalf("%+v: loaded 0x%X, bit by bit 0x%X", s, raw, want)
	}
	clean := data
	for i := range clean {
		clean[i] &^= byte(bits[i/8] >> (i % 8 * 8))
	}
	field.store(&clean, raw)
	if clean != data {
		t.Fatalf("%+v: 0x%X stored is % X, want % X", s, raw, clean, data)
	}
}

// A value replaces the bits of its field and no others, whatever they were.
func TestReplacedValueEqualsReadingBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tried := 0
	for range 20000 {
		s := messages.Signal{Start: r.IntN(512), Len: 1 + r.IntN(50), BigEndian: r.IntN(2) == 1, Signed: r.IntN(2) == 1}
		bits, ok := s.Bits()
		if !ok {
			continue
		}
		tried++
		var data [64]byte
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f := rawField(&s)
		f.Factor, f.Offset = 0.25, -40
		raw := r.Uint64() & f.mask()
		before, v := data, f.rawNumber(raw)*f.Factor+f.Offset
		f.Put(&data, v+0.1*f.Factor, ForceValue)
		if got, ok := f.Get(&data); slow(&s, &data) != raw || got != v || !ok {
			t.Fatalf("%+v: %g stored is 0x%X and %g, want 0x%X", s, v, slow(&s, &data), got, raw)
		}
		for i := range data {
			if own := byte(bits[i/8] >> (i % 8 * 8)); (data[i]^before[i])&^own != 0 {
				t.Fatalf("%+v: byte %d was 0x%X, is 0x%X", s, i, before[i], data[i])
			}
		}
		lo, hi := f.BitLimits()
		f.Put(&data, hi+1000, ForceValue)
		most, _ := f.Get(&data)
		f.Put(&data, lo-1000, ForceValue)
		least, _ := f.Get(&data)
		f.Put(&data, math.NaN(), ForceValue)
		if kept, _ := f.Get(&data); most != hi || least != lo || kept != lo {
			t.Fatalf("%+v: beyond the range %g and %g, NaN %g; want %g and %g", s, least, most, kept, lo, hi)
		}
		if f.Put(&data, 0, ForceOnes); slow(&s, &data) != f.mask() {
			t.Fatalf("%+v: 0x%X, want all bits", s, slow(&s, &data))
		}
	}
	if tried < 10000 {
		t.Errorf("only %d of 20000 signals fit a frame", tried)
	}
}

func TestRandomFieldsEqualReadingBitByBit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tried := 0
	for range 20000 {
		s := messages.Signal{Start: r.IntN(512), Len: 1 + r.IntN(64), BigEndian: r.IntN(2) == 1}
		if _, ok := s.Bits(); !ok {
			continue
		}
		tried++
		var data [64]byte
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f := rawField(&s)
		got, want := f.load(&data), slow(&s, &data)
		if read := s.Raw(&data); got != want || read != want {
			t.Fatalf("%+v: loaded 0x%X, read by the description 0x%X, bit by bit 0x%X", s, got, read, want)
		}
	}
	if tried < 15000 {
		t.Errorf("only %d of 20000 signals fit a frame", tried)
	}
}

func TestSignExtension(t *testing.T) {
	for _, c := range []struct {
		len    int
		signed bool
		raw    uint64
		want   float64
	}{
		{1, true, 1, -1},
		{3, true, 7, -1},
		{3, true, 3, 3},
		{3, true, 4, -4},
		{3, false, 7, 7},
		{15, true, 0x6C78, -5000},
		{16, true, 0x8000, -32768},
		{33, true, 1 << 32, -4294967296},
		{63, true, 1 << 62, -4611686018427387904},
		{64, true, math.MaxUint64, -1},
		{64, true, 1 << 63, -9223372036854775808},
		{64, false, 1 << 63, 9223372036854775808},
	} {
		s := messages.Signal{Len: c.len, Signed: c.signed, Factor: 1}
		f := rawField(&s)
		if got, read := f.rawNumber(c.raw), s.Value(c.raw); got != c.want || read != c.want {
			t.Errorf("%d bits, signed %v: 0x%X is %g, by the description %g, want %g", c.len, c.signed, c.raw, got, read, c.want)
		}
		if got := f.rawBits(c.want); got != c.raw {
			t.Errorf("%d bits, signed %v: %g is 0x%X, want 0x%X", c.len, c.signed, c.want, got, c.raw)
		}
	}
}

func TestRawRangeHoldsAtEveryLength(t *testing.T) {
	for n := 1; n <= 64; n++ {
		for _, signed := range []bool{false, true} {
			f := rawField(&messages.Signal{Len: n, Signed: signed})
			lo, hi := f.rawRange()
			for _, r := range []float64{lo, hi} {
				if got := f.rawNumber(f.rawBits(r)); got != r {
					t.Errorf("%d bits, signed %v: %g becomes %g", n, signed, r, got)
				}
			}
			wantHi := math.Ldexp(1, n) - 1
			if signed {
				wantHi = math.Ldexp(1, n-1) - 1
			}
			// One part in 2^52: above 2^53 not every whole number is a float64.
			if !(hi <= wantHi && hi >= wantHi*(1-0x1p-52)) {
				t.Errorf("%d bits, signed %v: highest %g, want %g", n, signed, hi, wantHi)
			}
		}
	}
}
