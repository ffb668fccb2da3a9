package ecu

import (
	"encoding/binary"
	"math"

	"github.com/brutella/can"
)

// bits reads n bits of a frame from bit at on; bit 0 is the lowest bit of byte 0.
func bits(f *can.Frame, at, n int) uint64 {
	return binary.LittleEndian.Uint64(f.Data[:]) >> at & (1<<n - 1)
}

// signed reads n bits of a frame from bit at on as a number in two's complement.
func signed(f *can.Frame, at, n int) int64 {
	return int64(bits(f, at, n)<<(64-n)) >> (64 - n)
}

// payload packs the eight bytes of a frame.
type payload uint64

// unset is a payload without values: all ones mean "not available".
const unset payload = math.MaxUint64

// setBits packs the lowest n bits of v from bit at on.
func (g *payload) setBits(at, n int, v uint64) {
	mask := uint64(1<<n-1) << at
	*g = payload(uint64(*g)&^mask | v<<at&mask)
}

// setBit sets a bit if on holds.
func (g *payload) setBit(at int, on bool) {
	if on {
		g.setBits(at, 1, 1)
	}
}

// setValue packs (v - offset)/scale, limited to the range of valid values of SAE J1939: up to 0xFA
// in the highest byte.
func (g *payload) setValue(at, n int, v, scale, offset float64) {
	most := float64(uint64(0xFB)<<(n-8) - 1)
	g.setBits(at, n, uint64(math.RoundToEven(min(max((v-offset)/scale, 0), most))))
}

func (g payload) frame(id uint32) can.Frame {
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], uint64(g))
	return f
}

// rollingCounter follows a rolling counter of four bits.
type rollingCounter struct {
	begun bool
	next  uint8
}

// countMissing returns the number of frames missing before the next counter, modulo 16. Only the
// lowest four bits of counter count.
func (r *rollingCounter) countMissing(counter uint8) (n int64) {
	if r.begun {
		n = int64((counter - r.next) & 15)
	}
	r.begun, r.next = true, counter+1
	return n
}

// countMissingOf15 is countMissing for a counter from 0 to 14, as in AUTOSAR's E2E profile 1.
func (r *rollingCounter) countMissingOf15(counter uint8) (n int64) {
	if r.begun {
		n = int64(counter+15-r.next) % 15
	}
	r.begun, r.next = true, (counter+1)%15
	return n
}
