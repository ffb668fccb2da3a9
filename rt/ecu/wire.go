package ecu

import (
	"encoding/binary"
	"math"

	"github.com/brutella/can"
)

// Identifiers of the frames, as in powershift.dbc.
const (
	idPressure1 = 0x110 // TCU_Pressure_1: clutches 1 to 4
	idPressure2 = 0x111 // TCU_Pressure_2: clutches 5 to 8
	idSpeeds    = 0x200
	idStatus    = 0x202
)

const barPerBit = 0.01 // pressure_C1 .. pressure_C8, 12 bits

// radPerBit is the resolution of w1 .. w4, 15 bits signed, rad/s.
var radPerBit = [4]float64{0.02, 0.01, 0.005, 0.001}

// encode packs four pressures, bar, and the rolling counter into a pressure
// frame: 12 bits each from bit 0 upwards, the counter in bits 52 to 55, bit 0
// being the lowest bit of byte 0.
func encode(id uint32, bar [4]float64, counter uint8) can.Frame {
	word := uint64(counter&15) << 52
	for i, p := range bar {
		raw := math.RoundToEven(min(max(p, 0), 40) / barPerBit)
		word |= uint64(raw) << (12 * i)
	}
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], word)
	return f
}

// decodeSpeeds reads w1 .. w4, rad/s, from a Speeds frame.
// It reports false for every other frame and for a Speeds frame that is not
// eight bytes long.
func decodeSpeeds(f *can.Frame) (w [4]float64, ok bool) {
	if f.ID != idSpeeds || f.Length != 8 {
		return w, false
	}
	word := binary.LittleEndian.Uint64(f.Data[:])
	for i := range w {
		// The field to the top, then down again with its sign.
		raw := int64(word<<(49-15*i)) >> 49
		w[i] = float64(raw) * radPerBit[i]
	}
	return w, true
}

// decodeStatus reads the states of the eight clutches from a Status frame: -1
// and 1 slipping backward and forward, 0 stuck, 2 free.
func decodeStatus(f *can.Frame) (state [8]int8, ok bool) {
	if f.ID != idStatus || f.Length != 8 {
		return state, false
	}
	word := binary.LittleEndian.Uint64(f.Data[:])
	for i := range state {
		state[i] = int8(int64(word<<(61-3*i)) >> 61)
	}
	return state, true
}

// rolling follows the rolling counter of a Speeds or a Status frame, bits 60 to 63.
type rolling struct {
	begun bool
	next  uint8
}

// missing takes the next frame, of eight bytes, and returns how many frames its
// counter says are missing before it, modulo 16.
func (r *rolling) missing(f *can.Frame) (n uint64) {
	counter := f.Data[7] >> 4
	if r.begun {
		n = uint64((counter - r.next) & 15)
	}
	r.begun, r.next = true, counter+1
	return n
}
