package sigmap

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"lockstep/io/messages"
)

// protection returns a compiled specification for a message without signals.
func protection(t *testing.T, n int, id uint32, spec ProtectionSpec) Protection {
	t.Helper()
	p, err := NewProtection(spec, &messages.Message{Name: "Frame", ID: id, Len: n})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func at(n int) *int { return &n }

// upTo returns 0, 1 ... n-1.
func upTo(n int) (list []uint32) {
	for i := range n {
		list = append(list, uint32(i))
	}
	return list
}

// The table has the first two bytes of frames of eight zero bytes with data identifier 0x0123 and
// counters 0, 1 ... 14, 0. Two independent implementations of AUTOSAR's profiles give the same bytes.
func TestProfilesOneAndElevenGiveTheKnownFrames(t *testing.T) {
	both := "cc00 9101 7602 2b03 a504 f805 1f06 4207 1e08 4309 a40a f90b 770c 2a0d cd0e cc00"
	nibble := "2a10 7711 9012 cd13 4314 1e15 f916 a417 f818 a519 421a 1f1b 911c cc1d 2b1e 2a10"
	for name, want := range map[string]string{
		"e2e-1a": both, "e2e-11a": both, "e2e-1c": nibble, "e2e-11c": nibble,
		"e2e-1b":   "ce00 0201 7402 b803 a704 6b05 1d06 d107 1c08 d009 a60a 6a0b 750c b90d cf0e ce00",
		"e2e-1low": "ce00 9301 7402 2903 a704 fa05 1d06 4007 1c08 4109 a60a fb0b 750c 280d cf0e ce00",
	} {
		p := protection(t, 8, 0x100, ProtectionSpec{Profile: name, DataIDs: []uint32{0x123}})
		for i, two := range strings.Fields(want) {
			var data [64]byte
			p.Protect(&data, 8, 0x100)
			if got := hex.EncodeToString(data[:2]); got != two || data != [64]byte{data[0], data[1]} {
				t.Errorf("%s: frame %d: % x, want %s", name, i, data[:8], two)
			}
		}
	}
}

func TestProfilesTwoAndTwentyTwoGiveTheKnownFrames(t *testing.T) {
	for _, name := range []string{"e2e-2", "e2e-22"} {
		p := protection(t, 8, 0x100, ProtectionSpec{Profile: name, DataIDs: upTo(16)})
		for _, want := range []string{"6101", "bc02"} { // the counter increases before the first frame
			data := [64]byte{2: 2, 3, 4, 5, 6, 7}
			p.Protect(&data, 8, 0x100)
			if got := hex.EncodeToString(data[:8]); got != want+"020304050607" {
				t.Errorf("%s: %s, want %s02...", name, got, want)
			}
		}
		p = protection(t, 8, 0x100, ProtectionSpec{Profile: name, DataIDs: upTo(16), Start: at(0)})
		data := [64]byte{2: 2, 3, 4, 5, 6, 7}
		p.Protect(&data, 8, 0x100)
		if got := hex.EncodeToString(data[:2]); got != "2a00" {
			t.Errorf("%s from 0: %s, want 2a00", name, got)
		}
	}
}

func TestProfileFiveGivesTheKnownFrames(t *testing.T) {
	for _, c := range []struct {
		n, offset int
		want      []string
	}{{8, 0, []string{"1cca00", "cf8d01"}}, {16, 8, []string{"289100", "fbd601"}}} {
		p := protection(t, c.n, 0x100, ProtectionSpec{Profile: "e2e-5", DataIDs: []uint32{0x1234}, Offset: c.offset})
		for _, want := range c.want {
			var data [64]byte
			p.Protect(&data, c.n, 0x100)
			if got := hex.EncodeToString(data[c.offset : c.offset+3]); got != want {
				t.Errorf("%d bytes, offset %d: %s, want %s", c.n, c.offset, got, want)
			}
		}
	}
}

// Check values of the CRC catalogue: the CRC of the ASCII digits 1 to 9.
func TestCRCsOfTheDigitsAreTheKnownCheckValues(t *testing.T) {
	data := [64]byte{}
	copy(data[:], "123456789")
	for name, c := range map[string]struct {
		spec ProtectionSpec
		want uint64
	}{
		"SAE J1850":       {ProtectionSpec{Profile: "crc8", Poly: 0x1D, Init: 0xFF, XorOut: 0xFF}, 0x4B},
		"AUTOSAR 0x2F":    {ProtectionSpec{Profile: "crc8", Poly: 0x2F, Init: 0xFF, XorOut: 0xFF}, 0xDF},
		"profile 1":       {ProtectionSpec{Profile: "crc8", Poly: 0x1D}, 0x37},
		"CCITT-FALSE":     {ProtectionSpec{Profile: "crc16", Poly: 0x1021, Init: 0xFFFF}, 0x29B1},
		"MAXIM, mirrored": {ProtectionSpec{Profile: "crc8", Poly: 0x31, Reflect: true}, 0xA1},
		"RIELLO, its initial value has no symmetry": {ProtectionSpec{Profile: "crc16", Poly: 0x1021, Init: 0xB2AA, Reflect: true}, 0x63D0},
		"AUTOSAR, 32 bits":                          {ProtectionSpec{Profile: "crc32", Poly: 0xF4ACFB13, Init: 0xFFFFFFFF, XorOut: 0xFFFFFFFF, Reflect: true}, 0x1697D06A},
		"XZ":                                        {ProtectionSpec{Profile: "crc64", Poly: 0x42F0E1EBA9EA3693, Init: math.MaxUint64, XorOut: math.MaxUint64, Reflect: true}, 0x995DC9BBDF1939FA},
		"ECMA-182":                                  {ProtectionSpec{Profile: "crc64", Poly: 0x42F0E1EBA9EA3693}, 0x6C40DF5F0B497347},
	} {
		c.spec.Range, c.spec.Checksum = []int{0, 8}, []string{"72|" + c.spec.Profile[3:]}
		p := protection(t, 20, 0x100, c.spec)
		p.Protect(&data, 20, 0x100)
		if got := p.Checksum.Load(&data); got != c.want {
			t.Errorf("%s: 0x%X, want 0x%X", name, got, c.want)
		}
	}
}

// division returns a CRC as the remainder of a division of the whole message, bit by
// bit: no register, no table.
func division(message []byte, f *profile) uint64 {
	w := int(f.width)
	var bits []bool
	for _, b := range message {
		for i := range 8 {
			if f.reflect {
				i = 7 - i
			}
			bits = append(bits, b>>(7-i)&1 != 0)
		}
	}
	bits = append(bits, make([]bool, w)...)
	for i := range w {
		bits[i] = bits[i] != (f.init>>(w-1-i)&1 != 0)
	}
	for i := range len(bits) - w {
		for j := 0; bits[i] && j < w; j++ {
			bits[i+1+j] = bits[i+1+j] != (f.poly>>(w-1-j)&1 != 0)
		}
	}
	rest, rests := uint64(0), bits[len(bits)-w:]
	if f.reflect {
		slices.Reverse(rests)
	}
	for _, bit := range rests {
		rest <<= 1
		if bit {
			rest |= 1
		}
	}
	return rest ^ f.xor
}

// autosar lists the profiles of the AUTOSAR E2E library.
func autosar() (list []profile) {
	for _, f := range profiles() {
		if f.e2e() {
			list = append(list, f)
		}
	}
	return list
}

// layout returns where a profile places checksum and counter, bytes after its offset, and the length of
// its header; the numbers of big ones are big endian.
func layout(f *profile) (sum, counter, header int, big bool) {
	switch f.name {
	case "e2e-4", "e2e-44":
		return 8, 2, 12, true
	case "e2e-6":
		return 0, 4, 5, true
	case "e2e-7":
		return 0, 12, 20, true
	case "e2e-8":
		return 0, 8, 16, true
	case "e2e-5":
		return 0, 2, 3, false
	}
	return 0, 1, 2, false
}

// random returns a specification of profile f at a random place in a message of n bytes,
// with random identifiers; offset is its first byte.
func random(f profile, n int, r *rand.Rand) (spec ProtectionSpec, offset int) {
	_, _, header, _ := layout(&f)
	spec = ProtectionSpec{Profile: f.name, Offset: r.IntN(n - header + 1)}
	want := 1
	if f.ids == idList {
		want = 16
	}
	for range want {
		id := r.Uint32N(0x10000)
		if f.ids == idSent {
			id = r.Uint32()
		} else if f.ids == idList {
			id >>= 8
		} else if f.ids == idNibble {
			id >>= 4
		}
		spec.DataIDs = append(spec.DataIDs, id)
	}
	return spec, spec.Offset
}

var lengths = []int{3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64}

func TestProfilesEqualPolynomialDivision(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range autosar() {
		for range 300 {
			at, countAt, header, big := layout(&f)
			n := lengths[r.IntN(len(lengths))]
			if n < header {
				continue
			}
			spec, offset := random(f, n, r)
			at, countAt = at+offset, countAt+offset
			p := protection(t, n, 0x100, spec)
			p.Next = r.Uint64N(p.Modulus)
			counter, id := p.Next, spec.DataIDs[0]
			var data [64]byte
			for i := range n {
				data[i] = byte(r.Uint32())
			}
			p.Protect(&data, n, 0x100)

			lo, hi := byte(id), byte(id>>8)
			var message []byte
			switch f.ids {
			case idBoth:
				message = []byte{lo, hi}
			case idAlternating:
				message = []byte{[]byte{lo, hi}[counter%2]}
			case idLow:
				message = []byte{lo}
			case idNibble:
				message = []byte{lo, 0}
				if data[offset+1]>>4 != hi {
					t.Fatalf("%s: % x: the high nibble of byte %d is not %X", f.name, data[:n], offset+1, hi)
				}
			}
			size := int(f.width / 8)
			message = append(message, data[:at]...)
			message = append(message, data[at+size:n]...)
			switch f.ids {
			case idAfterHigh:
				message = append(message, hi, lo)
			case idAfter:
				message = append(message, lo, hi)
			case idList:
				message = append(message, byte(spec.DataIDs[counter]))
			}
			want := division(message, &f)
			got, count := uint64(0), uint64(0)
			for i := range size {
				if big {
					got = got<<8 | uint64(data[at+i])
				} else {
					got |= uint64(data[at+i]) << (8 * i)
				}
			}
			for i := range max(1, p.Counter.Bits()/8) {
				count = count<<8 | uint64(data[countAt+i])
			}
			if count &= p.Counter.Mask(); got != want || count != counter {
				t.Fatalf("%s at %d: % x: checksum 0x%X and counter %d, want 0x%X and %d", f.name, offset, data[:n], got, count, want, counter)
			}
		}
	}
}

func TestEverySingleWrongBitIsFound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, f := range autosar() {
		for _, n := range lengths {
			if _, _, header, _ := layout(&f); n < header {
				continue
			}
			spec, _ := random(f, n, r)
			p := protection(t, n, 0x100, spec)
			var data [64]byte
			for i := range n {
				data[i] = byte(r.Uint32())
			}
			judge := p
			for range 3 {
				p.Protect(&data, n, 0x100)
				judge.Check(&data, n, 0x100)
			}
			p.Protect(&data, n, 0x100)
			for bit := range 8 * n {
				bad, then := data, judge
				bad[bit/8] ^= 1 << (bit % 8)
				got := then.Check(&bad, n, 0x100).Frame
				// Another counter selects another data identifier, which may cancel the change of the
				// checksum; then the counter is wrong.
				counter := f.ids == idAlternating || f.ids == idList
				counter = counter && p.Counter.Load(&bad) != p.Counter.Load(&data)
				if got == FrameOK || got != FrameError && !counter {
					t.Errorf("%s, %d bytes: bit %d is wrong: %v", f.name, n, bit, got)
				}
			}
			if got := judge.Check(&data, n, 0x100).Frame; got != FrameOK {
				t.Errorf("%s, %d bytes: no bit is wrong: %v", f.name, n, got)
			}
		}
	}
}

// scattered returns places for numbers of the given bits out of a message of n bytes,
// at random, in both byte orders, some split in two.
func scattered(n int, widths []int, r *rand.Rand) (places [][]string, taken messages.Bits) {
	for _, width := range widths {
		parts := []int{width}
		if width > 1 && r.IntN(3) == 0 {
			k := 1 + r.IntN(width-1)
			parts = []int{k, width - k}
		}
		var list []string
		for _, k := range parts {
			for {
				s := messages.Signal{Start: r.IntN(8 * n), Len: k, BigEndian: r.IntN(2) == 0}
				bits, ok := s.Bits()
				if !ok || rawField(&s).Ninth > 0 || bits.Bytes() > n || bits.Overlaps(&taken) {
					continue
				}
				taken.Add(&bits)
				order := 1
				if s.BigEndian {
					order = 0
				}
				list = append(list, fmt.Sprintf("%d|%d@%d", s.Start, s.Len, order))
				break
			}
		}
		places = append(places, list)
	}
	return places, taken
}

func TestProtectionAtRandomPlacesIsOKAndChangesNoOtherBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, f := range profiles() {
		if f.length != "" { // its places are fixed
			continue
		}
		for range 200 {
			n := lengths[3+r.IntN(len(lengths)-3)]
			if f.width > 16 {
				n = 64
			}
			spec, _ := random(f, n, r)
			spec.Offset = 0
			width, count := int(f.width), 4
			if !f.e2e() {
				spec.DataIDs, spec.Poly = nil, r.Uint64N(255)+1
				if f.algorithm != CRC {
					spec.Poly = 0
				}
			}
			if f.name == "e2e-5" {
				count = 8
			}
			if f.algorithm != CRC {
				width = 4 + r.IntN(9)
			}
			places, taken := scattered(n, []int{count, width, 4}, r)
			spec.Counter, spec.Checksum = places[0], places[1]
			if f.ids == idNibble {
				spec.Nibble = places[2]
			}
			if f.algorithm == NoChecksum {
				spec.Checksum = nil
			}
			id := r.Uint32N(0x800)
			sends := protection(t, n, id, spec)
			judges := sends
			for i := range 40 {
				var data [64]byte
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				was := data
				sends.Protect(&data, n, id)
				status := judges.Check(&data, n, id)
				if i > 0 && status.Frame != FrameOK || i > 3 && status.Window != WindowValid {
					t.Fatalf("%+v: frame %d: % x: %v", spec, i, data[:n], status)
				}
				for b := range data {
					if (data[b]^was[b])&^byte(taken[b/8]>>(b%8*8)) != 0 {
						t.Fatalf("%+v: byte %d was %02x, is %02x", spec, b, was[b], data[b])
					}
				}
			}
		}
	}
}

func TestGroupsOfOneFrameDoNotDisturbEachOther(t *testing.T) {
	const n, id = 64, 0x13B
	inner := protection(t, n, id, ProtectionSpec{Profile: "e2e-1a", DataIDs: []uint32{0x13B}, Range: []int{8, 15}})
	other := protection(t, n, id, ProtectionSpec{Profile: "crc8", Poly: 0x1D, Range: []int{16, 31}, Checksum: []string{"248|8"}, Counter: []string{"240|4"}})
	outer := protection(t, n, id, ProtectionSpec{Profile: "e2e-5", DataIDs: []uint32{7}})
	groups := []*Protection{&inner, &other, &outer}
	judges := []Protection{inner, other, outer}
	r := rand.New(rand.NewPCG(7, 8))
	for i := range 300 {
		var data [64]byte
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		for _, g := range groups {
			g.Protect(&data, n, id)
		}
		data[20] ^= byte(i % 2) // only the second and the third cover it
		for j := range judges {
			got := judges[j].Check(&data, n, id).Frame
			if wrong := i%2 == 1 && j > 0; wrong != (got == FrameError) {
				t.Fatalf("frame %d, group %d: %v", i, j, got)
			}
		}
	}
}
