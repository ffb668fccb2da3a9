package ecu

import (
	"encoding/binary"
	"math"

	"github.com/brutella/can"
)

// Identifiers of the truck's frames, of 29 bits: SAE J1939. The unit has address 3.
const (
	extended = 1 << 31

	idTSC1      = extended | 0x0C000003 // to the engine, 0
	idETC1      = extended | 0x0CF00203
	idETC2      = extended | 0x18F00503
	idClutches  = extended | 0x18FF0003 // proprietary B
	idTC1       = extended | 0x0C010305 // from the shift console, 5
	idEBC1      = extended | 0x18F0010B
	idShafts    = extended | 0x0CFF0180 // proprietary B, from what stands for the wiring
	idClaim     = extended | 0x18EEFF03 // address claimed, from 3
	idNoAddress = extended | 0x18EEFFFE // cannot claim
)

// bits reads n bits of a frame from bit at on, the lowest bit of byte 0 being bit 0.
func bits(f *can.Frame, at, n int) uint64 {
	return binary.LittleEndian.Uint64(f.Data[:]) >> at & (1<<n - 1)
}

// group packs a frame of eight bytes. What nobody sets is all ones: not available.
type group uint64

const unset group = math.MaxUint64

func (g *group) raw(at, n int, v uint64) {
	mask := uint64(1<<n-1) << at
	*g = group(uint64(*g)&^mask | v<<at&mask)
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

const (
	rpm      = math.Pi / 30 // rad/s
	rpmBit   = 0.125        // of speeds, rpm
	shaftBit = rpmBit * rpm // the same, rad/s
	noLimit  = 125          // %, the largest torque that can be asked for
	truckBar = 0.1          // bar per bit
)

// tsc1 is torque/speed control 1: at most this torque, %, or with limit false nothing.
// Its checksum, of three bits, is over the seven bytes before it, the counter and the
// identifier.
func tsc1(limit bool, percent float64, counter uint8) can.Frame {
	g := unset
	mode := uint64(0)
	if limit {
		mode = 3
	}
	g.raw(0, 2, mode)
	g.raw(4, 2, 1) // priority high
	g.raw(8, 16, 0xFAFF)
	g.value(24, 8, percent, 1, -125)
	g.raw(32, 8, 0)
	g.raw(40, 4, 0)
	g.raw(56, 4, uint64(counter&7))
	f := g.frame(idTSC1)
	sum := uint(counter & 7)
	for _, b := range f.Data[:7] {
		sum += uint(b)
	}
	for id := uint(idTSC1 &^ extended); id > 0; id >>= 8 {
		sum += id & 0xFF
	}
	f.Data[7] = byte((sum>>6&3+sum>>3+sum)&7)<<4 | counter&7
	return f
}

// clutches packs the pressures of C1 to C5 and RC, bar.
func clutches(bar [6]float64, counter uint8) can.Frame {
	g := unset
	for i, p := range bar {
		g.value(8*i, 8, p, truckBar, 0)
	}
	g.raw(56, 4, uint64(counter&15))
	return g.frame(idClutches)
}

// speedOf reads a speed of 16 bits, rad/s; ok is false where the frame says that there
// is none.
func speedOf(f *can.Frame, at int) (w float64, ok bool) {
	raw := bits(f, at, 16)
	return float64(raw) * shaftBit, raw <= 0xFAFF
}
