package unit

import (
	"encoding/binary"
	"math"

	"github.com/brutella/can"
)

// Bits reads n bits of a frame from bit at on; bit 0 is the lowest bit of byte 0.
func Bits(f *can.Frame, at, n int) uint64 {
	return binary.LittleEndian.Uint64(f.Data[:]) >> at & (1<<n - 1)
}

// Signed reads n bits of a frame from bit at on as a number in two's complement.
func Signed(f *can.Frame, at, n int) int64 {
	return int64(Bits(f, at, n)<<(64-n)) >> (64 - n)
}

// Payload packs the eight bytes of a frame.
type Payload uint64

// Unset is a payload without values: all ones mean "not available".
const Unset Payload = math.MaxUint64

// SetBits packs the lowest n bits of v from bit at on.
func (g *Payload) SetBits(at, n int, v uint64) {
	mask := uint64(1<<n-1) << at
	*g = Payload(uint64(*g)&^mask | v<<at&mask)
}

// SetBit sets a bit if on holds.
func (g *Payload) SetBit(at int, on bool) {
	if on {
		g.SetBits(at, 1, 1)
	}
}

// SetValue packs (v - offset)/scale, limited to the range of valid values of SAE J1939: up to 0xFA
// in the highest byte.
func (g *Payload) SetValue(at, n int, v, scale, offset float64) {
	most := float64(uint64(0xFB)<<(n-8) - 1)
	g.SetBits(at, n, uint64(math.RoundToEven(min(max((v-offset)/scale, 0), most))))
}

// Frame returns the frame of eight bytes with an identifier.
func (g Payload) Frame(id uint32) can.Frame {
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], uint64(g))
	return f
}

// RollingCounter follows a rolling counter of four bits.
type RollingCounter struct {
	begun bool
	next  uint8
}

// CountMissing returns the number of frames missing before the next counter, modulo 16. Only the
// lowest four bits of counter count.
func (r *RollingCounter) CountMissing(counter uint8) (n int64) {
	if r.begun {
		n = int64((counter - r.next) & 15)
	}
	r.begun, r.next = true, counter+1
	return n
}

// countMissingOf15 is CountMissing for a counter from 0 to 14, as in AUTOSAR's E2E profile 1.
func (r *RollingCounter) countMissingOf15(counter uint8) (n int64) {
	if r.begun {
		n = int64(counter+15-r.next) % 15
	}
	r.begun, r.next = true, (counter+1)%15
	return n
}

// CRC1A returns the checksum of AUTOSAR's E2E profile 1A over the identifier and the bytes behind the
// checksum: CRC-8 with the polynomial of SAE J1850, without initial value and final inversion.
func CRC1A(f *can.Frame) (crc uint8) {
	const polynomial = 0x1D
	data := [9]byte{byte(f.ID), byte(f.ID >> 8)}
	copy(data[2:], f.Data[1:])
	for _, b := range data {
		crc ^= b
		for range 8 {
			carry := crc >> 7
			crc = crc<<1 ^ carry*polynomial
		}
	}
	return crc
}

// Protect returns a frame with the checksum and the counter of AUTOSAR's E2E profile 1A in its lowest twelve bits. The
// counter is that of the present cycle, 0 to 14.
func (b *Base) Protect(g Payload, id uint32) can.Frame {
	g.SetBits(8, 4, uint64((b.Counts.Cycles-1)%15))
	f := g.Frame(id)
	f.Data[0] = CRC1A(&f)
	return f
}

// SignedBytes returns v/scale, rounded, in 16 bits with the high byte first, limited to their range.
func SignedBytes(v, scale float64) []byte {
	return binary.BigEndian.AppendUint16(nil, uint16(int16(math.Round(min(max(v/scale, math.MinInt16), math.MaxInt16)))))
}
