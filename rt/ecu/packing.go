package ecu

import (
	"encoding/binary"
	"math"

	"github.com/brutella/can"
)

// bits reads n bits of a frame from bit at on, the lowest bit of byte 0 being bit 0.
func bits(f *can.Frame, at, n int) uint64 {
	return binary.LittleEndian.Uint64(f.Data[:]) >> at & (1<<n - 1)
}

// signed is bits of a number in two's complement.
func signed(f *can.Frame, at, n int) int64 {
	return int64(bits(f, at, n)<<(64-n)) >> (64 - n)
}

// group packs a frame of eight bytes.
type group uint64

// unset is the group in which nobody has set anything: all ones are not available.
const unset group = math.MaxUint64

func (g *group) raw(at, n int, v uint64) {
	mask := uint64(1<<n-1) << at
	*g = group(uint64(*g)&^mask | v<<at&mask)
}

// flag packs a bit.
func (g *group) flag(at int, on bool) {
	if on {
		g.raw(at, 1, 1)
	}
}

// value packs (v - offset)/scale, held in the range of valid values: up to 0xFA of the
// highest byte.
func (g *group) value(at, n int, v, scale, offset float64) {
	most := float64(uint64(0xFB)<<(n-8) - 1)
	g.raw(at, n, uint64(math.RoundToEven(min(max((v-offset)/scale, 0), most))))
}

func (g group) frame(id uint32) can.Frame {
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], uint64(g))
	return f
}

// rolling follows a rolling counter of four bits.
type rolling struct {
	begun bool
	next  uint8
}

// missing takes the next counter, the lowest four bits, and returns how many frames are
// missing before it, modulo 16.
func (r *rolling) missing(counter uint8) (n int64) {
	if r.begun {
		n = int64((counter - r.next) & 15)
	}
	r.begun, r.next = true, counter+1
	return n
}
