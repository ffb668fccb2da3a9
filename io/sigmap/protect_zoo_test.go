package sigmap

import (
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"testing"

	"lockstep/io/can"
)

// zoo: checksums found on real networks, each as the data of a bench file and
// as the plainest code for it: the frame with its checksum bits zero and its
// identifier in, the checksum out.
type kept struct {
	n    int
	id   uint32
	spec ProtectionSpec
	sum  func(d []byte, id uint32) uint64
}

// crc8 returns a CRC-8 by shifting.
func crc8(data []byte, poly, init, xor byte) byte {
	s := init
	for _, b := range data {
		s ^= b
		for range 8 {
			if s&0x80 != 0 {
				s = s<<1 ^ poly
			} else {
				s <<= 1
			}
		}
	}
	return s ^ xor
}

// nibbles returns the sum of all nibbles.
func nibbles(data []byte) (s uint64) {
	for _, b := range data {
		s += uint64(b>>4) + uint64(b&15)
	}
	return s
}

// total returns the sum of all bytes.
func total(data []byte) (s uint64) {
	for _, b := range data {
		s += uint64(b)
	}
	return s
}

func idBytes(id uint32) []byte {
	return []byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
}

func one(place string) []string { return []string{place} }

// zoo holds what the facts list. The checksum of the first is of 7400 random frames
// the same in two independent implementations; getriebe is one of its lists.
func zoo() map[string]kept {
	getriebe := []uint32{0x3F, 0x69, 0x39, 0xDC, 0x94, 0xF9, 0x14, 0x64, 0xD8, 0x6A, 0x34, 0xCE, 0xA2, 0x55, 0xB5, 0x2C}
	return map[string]kept{
		"VW MQB": {8, 0xAD, ProtectionSpec{Profile: "e2e-2", DataIDs: getriebe},
			func(d []byte, _ uint32) uint64 {
				return uint64(crc8(append(append([]byte{}, d[1:]...), byte(getriebe[d[1]&15])), 0x2F, 0xFF, 0xFF))
			}},
		"VW PQ": {8, 0x1A0, ProtectionSpec{Profile: "xor", Checksum: one("56|8"), Counter: one("52|4")},
			func(d []byte, _ uint32) uint64 {
				s := byte(0)
				for _, b := range d[:7] {
					s ^= b
				}
				return uint64(s)
			}},
		"VW MLB": {8, 0x109, ProtectionSpec{Profile: "xor", Init: 0x08, Checksum: one("0|8"), Counter: one("8|4")},
			func(d []byte, _ uint32) uint64 {
				s := byte(8)
				for _, b := range d[1:] {
					s ^= b
				}
				return uint64(s)
			}},
		"Hyundai CRC-8": {8, 0x38D, ProtectionSpec{Profile: "crc8", Poly: 0x1D, Init: 0x22, XorOut: 0xDF, Checksum: one("56|8"), Counter: one("52|4")},
			func(d []byte, _ uint32) uint64 { return uint64(crc8(d[:7], 0x1D, 0xFD^0xDF, 0xDF)) }},
		"Hyundai TCS13": {8, 0x394, ProtectionSpec{Profile: "nibble-sum", Subtract: true, Checksum: one("48|4"), Counter: one("13|3"), Skip: one("7")},
			func(d []byte, _ uint32) uint64 { return (16 - nibbles(d[:7])%16) % 16 }},
		"Hyundai WHL_SPD11": {8, 0x386, ProtectionSpec{Profile: "bit-sum", XorOut: 9, Checksum: []string{"46|2", "62|2"},
			Counter: []string{"14|2", "30|2"}, Skip: []string{"14|2", "30|2"}},
			func(d []byte, _ uint32) (s uint64) {
				for i, b := range d {
					if i%2 == 1 {
						b &= 0x3F
					}
					s += uint64(bits.OnesCount8(b))
				}
				return s&15 ^ 9
			}},
		"Nissan": {8, 0x169, ProtectionSpec{Profile: "crc8", Poly: 0x1D, Init: 0xFF, XorOut: 0xFF, Checksum: one("56|8"), Counter: one("48|4")},
			func(d []byte, _ uint32) uint64 { return uint64(crc8(d[:7], 0x1D, 0xFF, 0xFF)) }},
		"Rivian": {8, 0x120, ProtectionSpec{Profile: "crc8", Poly: 0x1D, XorPerID: map[uint32]uint64{0x120: 0x3F, 0x160: 0x63}, Checksum: one("0|8"), Counter: one("8|4")},
			func(d []byte, _ uint32) uint64 { return uint64(crc8(d[1:], 0x1D, 0, 0x3F)) }},
		"Chrysler": {8, 0x292, ProtectionSpec{Profile: "crc8", Poly: 0x1D, Init: 0xFF, XorOut: 0xFF, Checksum: one("56|8"), Counter: one("52|4")},
			func(d []byte, _ uint32) uint64 { return uint64(crc8(d[:7], 0x1D, 0xFF, 0xFF)) }},
		"FCA Giorgio": {8, 0x106, ProtectionSpec{Profile: "crc8", Poly: 0x1D, XorOut: 0x0A, XorPerID: map[uint32]uint64{0xDE: 0x10, 0x106: 0xF6, 0x122: 0xF1}, Checksum: one("56|8"), Counter: one("48|4")},
			func(d []byte, _ uint32) uint64 { return uint64(crc8(d[:7], 0x1D, 0, 0xF6)) }},
		"FCA Giorgio, another": {8, 0x100, ProtectionSpec{Profile: "crc8", Poly: 0x1D, XorOut: 0x0A, XorPerID: map[uint32]uint64{0xDE: 0x10}, Checksum: one("56|8"), Counter: one("48|4")},
			func(d []byte, _ uint32) uint64 { return uint64(crc8(d[:7], 0x1D, 0, 0x0A)) }},
		"Honda": {5, 0xE4, ProtectionSpec{Profile: "nibble-sum", Init: 8, Subtract: true, IncludeID: "nibbles", Checksum: one("32|4"), Counter: one("36|2")},
			func(d []byte, id uint32) uint64 { return (8 - nibbles(idBytes(id)) - nibbles(d)) & 15 }},
		"Honda, 29 bits": {8, 0x12F81100 | can.EFF, ProtectionSpec{Profile: "nibble-sum", Init: 11, Subtract: true, IncludeID: "nibbles", Checksum: one("56|4"), Counter: one("60|2")},
			func(d []byte, id uint32) uint64 { return (11 - nibbles(idBytes(id)) - nibbles(d)) & 15 }},
		"Toyota": {8, 0x2E4, ProtectionSpec{Profile: "sum", IncludeID: "bytes", IncludeLength: true, Checksum: one("56|8")},
			func(d []byte, id uint32) uint64 { return (8 + total(idBytes(id)) + total(d)) & 0xFF }},
		"Tesla": {8, 0x175, ProtectionSpec{Profile: "sum", IncludeID: "bytes", Checksum: one("56|8"), Counter: one("52|4")},
			func(d []byte, id uint32) uint64 { return (total(idBytes(id)) + total(d)) & 0xFF }},
		"Subaru": {8, 0x139, ProtectionSpec{Profile: "sum", IncludeID: "bytes", Checksum: one("0|8"), Counter: one("8|4")},
			func(d []byte, id uint32) uint64 { return (total(idBytes(id)) + total(d[1:])) & 0xFF }},
		"PSA": {8, 0x452, ProtectionSpec{Profile: "nibble-sum", Init: 4, Subtract: true, Checksum: one("60|4"), Counter: one("56|4")},
			func(d []byte, _ uint32) uint64 { return (4 - nibbles(d)) & 15 }},
		"body": {8, 0x250, ProtectionSpec{Profile: "crc8", Poly: 0xD5, Init: 0xFF, Reverse: true, Checksum: one("56|8"), Counter: one("52|4")},
			func(d []byte, _ uint32) uint64 {
				return uint64(crc8([]byte{d[6], d[5], d[4], d[3], d[2], d[1], d[0]}, 0xD5, 0xFF, 0))
			}},
		"J1939 TSC1": {8, 0x0C000003 | can.EFF, ProtectionSpec{Profile: "j1939-tsc1"},
			func(d []byte, id uint32) uint64 {
				s := total(d[:7]) + uint64(d[7]&15) + total(idBytes(id))
				return (s>>6&3 + s>>3 + s) & 7
			}},
		"J1939 XBR": {8, 0x0C040B2A | can.EFF, ProtectionSpec{Profile: "j1939-xbr"},
			func(d []byte, id uint32) uint64 {
				s := total(d[:7]) + uint64(d[7]&15) + total(idBytes(id))
				return (s>>4 + s) & 15
			}},
	}
}

func TestChecksumsOfRealNetworksAreReproduced(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for name, k := range zoo() {
		p := protection(t, k.n, k.id, k.spec)
		judges, id := p, k.id&can.MaskEFF
		for i := range 2000 {
			var data [64]byte
			for i := range k.n {
				data[i] = byte(r.Uint32())
			}
			counter := p.Next
			p.Protect(&data, k.n, id)
			open := data
			p.Checksum.Store(&open, 0)
			got, want := p.Checksum.Load(&data), k.sum(open[:k.n], id)
			if got != want || p.Modulus > 0 && p.Counter.Load(&data) != counter {
				t.Fatalf("%s: % x: checksum 0x%X, counter %d; want 0x%X, %d", name, data[:k.n], got, p.Counter.Load(&data), want, counter)
			}
			if s := judges.Check(&data, k.n, id); i > 0 && s.Frame != FrameOK {
				t.Fatalf("%s: % x: %v", name, data[:k.n], s)
			}
		}
	}
}

// Hyundai and Kia's checksum on CAN FD is written elsewhere as a CRC with another
// constant for every length; these are the constants.
func TestHyundaiFDEqualsProfileFive(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	xmodem := profile{width: 16, poly: 0x1021}
	for n, xor := range map[int]uint64{8: 0x5F29, 16: 0x041D, 24: 0x819D, 32: 0x9F5B} {
		for range 200 {
			id := r.Uint32N(0x800)
			p := protection(t, n, id, ProtectionSpec{Profile: "e2e-5", DataIDs: []uint32{0xF800 | id}})
			var data [64]byte
			for i := range n {
				data[i] = byte(r.Uint32())
			}
			p.Protect(&data, n, id)
			want := division(append(append([]byte{}, data[2:n]...), byte(id), byte(id>>8)), &xmodem) ^ xor
			if got := p.Checksum.Load(&data); got != want {
				t.Fatalf("%d bytes, 0x%X: %s: 0x%X, want 0x%X", n, id, hex.EncodeToString(data[:n]), got, want)
			}
		}
	}
}

func TestFoldedSumsAreThreeAndFourBitsInAWiderField(t *testing.T) {
	for name, most := range map[string]uint64{"j1939-tsc1": 7, "j1939-xbr": 15} {
		p := protection(t, 8, 0x0C000003|can.EFF, ProtectionSpec{Profile: name, Checksum: one("48|8")})
		seen := uint64(0)
		for i := range 100 {
			data := [64]byte{byte(5 * i), byte(7 * i)}
			p.Protect(&data, 8, 0x0C000003)
			seen = max(seen, p.Checksum.Load(&data))
		}
		if seen != most {
			t.Errorf("%s: the largest checksum is %d, want %d", name, seen, most)
		}
	}
}

func TestXorPerIDIgnoresTheExtendedFlag(t *testing.T) {
	spec := ProtectionSpec{Profile: "xor", XorPerID: map[uint32]uint64{0x12345: 0x5A}, Checksum: one("0|8")}
	if p := protection(t, 8, 0x12345|can.EFF, spec); p.XorOut != 0x5A {
		t.Errorf("0x%X, want 0x5A", p.XorOut)
	}
}

// A sum without its identifier or length would be blind for a frame under another
// name; these are not.
func TestIdentifierAndLengthAreCoveredIfIncluded(t *testing.T) {
	k := zoo()["Toyota"]
	p := protection(t, k.n, k.id, k.spec)
	var data [64]byte
	p.Protect(&data, 8, k.id)
	for _, c := range []struct {
		n    int
		id   uint32
		want State
	}{{8, k.id, FrameOK}, {8, k.id + 1, FrameError}, {7, k.id, FrameError}, {12, k.id, FrameError}} {
		if got := p.Check(&data, c.n, c.id).Frame; got != c.want {
			t.Errorf("%d bytes under 0x%X: %v, want %v", c.n, c.id, got, c.want)
		}
	}
}
