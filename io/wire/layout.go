// Package wire owns the process image exchanged with a box that makes and measures electrical signals: its layout,
// the messages that it is divided into, the edges of its tone wheels, and the check of the images received.
//
// It opens no sockets and no memory: package can does. Everything here may be called in a tick.
//
// Reading order: layout.go (Image), messages.go (Put, Message), edge.go (Motion, NextEdge), check.go (Check).
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
const Size = headSize + 8*Analogs + pwmSize*PWMs + wheelSize*Wheels

const (
	magic     = 0x4950534c // "LSPI" in the order of the bytes
	headSize  = 40
	pwmSize   = 16
	wheelSize = 64
)

// Image is the process image of one direction and one tick.
type Image struct {
	Counter uint64 // rises by 1 with each image; see Check
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

// Wheel is the motion of a tone wheel, its next edge, and what its sensor makes of it.
type Wheel struct {
	Speed     float64 // rad/s
	Accel     float64 // rad/s²
	Next      int64   // time of the next edge after Tick, ns; math.MaxInt64 without an edge ahead
	Period    float64 // time between edges at Speed, s; +Inf at standstill
	Pitch     float64 // angle between edges, rad; 0: no wheel
	Lost      uint64  // bit n: edge n, counted from the next one on, does not appear
	Teeth     uint32  // edges per turn
	Tooth     uint32  // number of the next edge, 0 to Teeth-1
	Direction int32   // direction at the next edge, +1 or -1; 0 without an edge ahead
	Word      uint16  // data word of the AK protocol, bits 0 to 8; see AKWord
	State     uint8   // state of the sensor's line: Working, OpenLine, ShortToGround or ShortToSupply
}

// States of the line of a sensor.
const (
	Working uint8 = iota
	OpenLine
	ShortToGround
	ShortToSupply
)

// Encode writes m to b, little-endian.
//
//go:nosplit
func (m *Image) Encode(b *[Size]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], magic)
	le.PutUint16(b[4:], Version)
	le.PutUint16(b[6:], Size)
	le.PutUint64(b[8:], m.Counter)
	le.PutUint64(b[16:], uint64(m.Tick))
	le.PutUint64(b[24:], uint64(m.Age))
	le.PutUint64(b[32:], m.Digital)
	at := headSize
	for i := range m.Analog {
		le.PutUint64(b[at:], math.Float64bits(m.Analog[i]))
		at += 8
	}
	for i := range m.PWM {
		le.PutUint64(b[at:], math.Float64bits(m.PWM[i].Duty))
		le.PutUint64(b[at+8:], math.Float64bits(m.PWM[i].Frequency))
		at += pwmSize
	}
	for i := range m.Wheel {
		w, c := &m.Wheel[i], b[at:at+wheelSize]
		le.PutUint64(c[0:], math.Float64bits(w.Speed))
		le.PutUint64(c[8:], math.Float64bits(w.Accel))
		le.PutUint64(c[16:], uint64(w.Next))
		le.PutUint64(c[24:], math.Float64bits(w.Period))
		le.PutUint64(c[32:], math.Float64bits(w.Pitch))
		le.PutUint64(c[40:], w.Lost)
		le.PutUint32(c[48:], w.Teeth)
		le.PutUint32(c[52:], w.Tooth)
		le.PutUint32(c[56:], uint32(w.Direction))
		le.PutUint16(c[60:], w.Word)
		c[62], c[63] = w.State, 0
		at += wheelSize
	}
}

// Decode reads m from b and reports whether b is an image of this version. It leaves m unchanged otherwise.
//
//go:nosplit
func (m *Image) Decode(b []byte) bool {
	le := binary.LittleEndian
	if len(b) != Size || le.Uint32(b) != magic || le.Uint16(b[4:]) != Version || le.Uint16(b[6:]) != Size {
		return false
	}
	m.Counter = le.Uint64(b[8:])
	m.Tick = int64(le.Uint64(b[16:]))
	m.Age = int64(le.Uint64(b[24:]))
	m.Digital = le.Uint64(b[32:])
	at := headSize
	for i := range m.Analog {
		m.Analog[i] = math.Float64frombits(le.Uint64(b[at:]))
		at += 8
	}
	for i := range m.PWM {
		m.PWM[i].Duty = math.Float64frombits(le.Uint64(b[at:]))
		m.PWM[i].Frequency = math.Float64frombits(le.Uint64(b[at+8:]))
		at += pwmSize
	}
	for i := range m.Wheel {
		w, c := &m.Wheel[i], b[at:at+wheelSize]
		w.Speed = math.Float64frombits(le.Uint64(c[0:]))
		w.Accel = math.Float64frombits(le.Uint64(c[8:]))
		w.Next = int64(le.Uint64(c[16:]))
		w.Period = math.Float64frombits(le.Uint64(c[24:]))
		w.Pitch = math.Float64frombits(le.Uint64(c[32:]))
		w.Lost = le.Uint64(c[40:])
		w.Teeth = le.Uint32(c[48:])
		w.Tooth = le.Uint32(c[52:])
		w.Direction = int32(le.Uint32(c[56:]))
		w.Word = le.Uint16(c[60:])
		w.State = c[62]
		at += wheelSize
	}
	return true
}
