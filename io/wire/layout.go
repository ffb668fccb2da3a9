// Package wire owns the process image exchanged with a box that makes and measures electrical signals.
package wire

import (
	"encoding/binary"
	"math"
)

// Capacity of an image. Unused places are zero.
const (
	Analogs = 32 // analog values
	PWMs    = 16 // PWM channels
	Wheels  = 8  // tone wheels
)

// Version is the version of the layout; an image of another version is foreign.
const Version = 1

// Size is the length of an encoded image, bytes; it fits one Ethernet frame.
const Size = 40 + 8*Analogs + 16*PWMs + 40*Wheels

const magic = 0x4950534c // "LSPI" in the order of the bytes

// Image is the process image of one direction and one tick.
type Image struct {
	Counter uint64 // images sent before this one
	Tick    int64  // time of the tick, or of the sample in the box's time, ns
	Age     int64  // age of the values at Tick, ns
	Digital uint64 // digital states; bit n is channel n
	Analog  [Analogs]float64
	PWM     [PWMs]PWM
	Wheel   [Wheels]Wheel
}

// PWM is a pulse-width modulated signal.
type PWM struct {
	Duty      float64 // 0 to 1
	Frequency float64 // Hz
}

// Wheel is the motion of a tone wheel and its next edge.
type Wheel struct {
	Speed     float64 // rad/s
	Accel     float64 // rad/s²
	Next      int64   // time of the next edge after Tick, ns; math.MaxInt64 without an edge ahead
	Period    float64 // time between edges at Speed, s
	Direction int64   // direction at the next edge, +1 or -1; 0 without an edge ahead
}

// Encode writes m to b, little-endian.
func (m *Image) Encode(b *[Size]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], magic)
	le.PutUint16(b[4:], Version)
	le.PutUint16(b[6:], Size)
	le.PutUint64(b[8:], m.Counter)
	le.PutUint64(b[16:], uint64(m.Tick))
	le.PutUint64(b[24:], uint64(m.Age))
	le.PutUint64(b[32:], m.Digital)
	at := 40
	for _, v := range m.Analog {
		le.PutUint64(b[at:], math.Float64bits(v))
		at += 8
	}
	for i := range m.PWM {
		le.PutUint64(b[at:], math.Float64bits(m.PWM[i].Duty))
		le.PutUint64(b[at+8:], math.Float64bits(m.PWM[i].Frequency))
		at += 16
	}
	for i := range m.Wheel {
		w := &m.Wheel[i]
		le.PutUint64(b[at:], math.Float64bits(w.Speed))
		le.PutUint64(b[at+8:], math.Float64bits(w.Accel))
		le.PutUint64(b[at+16:], uint64(w.Next))
		le.PutUint64(b[at+24:], math.Float64bits(w.Period))
		le.PutUint64(b[at+32:], uint64(w.Direction))
		at += 40
	}
}

// Decode reads m from b and reports whether b is an image of this version. It leaves m unchanged otherwise.
func (m *Image) Decode(b []byte) bool {
	le := binary.LittleEndian
	if len(b) != Size || le.Uint32(b) != magic || le.Uint16(b[4:]) != Version || le.Uint16(b[6:]) != Size {
		return false
	}
	m.Counter = le.Uint64(b[8:])
	m.Tick = int64(le.Uint64(b[16:]))
	m.Age = int64(le.Uint64(b[24:]))
	m.Digital = le.Uint64(b[32:])
	at := 40
	for i := range m.Analog {
		m.Analog[i] = math.Float64frombits(le.Uint64(b[at:]))
		at += 8
	}
	for i := range m.PWM {
		m.PWM[i] = PWM{math.Float64frombits(le.Uint64(b[at:])), math.Float64frombits(le.Uint64(b[at+8:]))}
		at += 16
	}
	for i := range m.Wheel {
		m.Wheel[i] = Wheel{
			Speed:     math.Float64frombits(le.Uint64(b[at:])),
			Accel:     math.Float64frombits(le.Uint64(b[at+8:])),
			Next:      int64(le.Uint64(b[at+16:])),
			Period:    math.Float64frombits(le.Uint64(b[at+24:])),
			Direction: int64(le.Uint64(b[at+32:])),
		}
		at += 40
	}
	return true
}
