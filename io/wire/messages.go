package wire

import (
	"encoding/binary"
	"math"
)

// Database is the name of the database that describes the messages of an image.
const Database = "wire.dbc"

// An image is divided into messages of at most 64 bytes, so that a bench binds, checks and records its signals like
// those of a bus. These are the identifiers, those from Box on of the messages that the box sends. Analog, PWMs4
// and Tone are the first of several.
const (
	Digital = 0x10 // 64 digital states
	Analog  = 0x20 // 8 analog values each
	PWMs4   = 0x30 // 4 PWM channels each: duty and frequency
	Tone    = 0x40 // one tone wheel each, as a Motion

	Box    = 0x100 // added to those above of the box
	Status = 0x100 // age of the values, ns, and counter
)

// stateOfSignal is Wheel.State by the value of the signal state. Its range is 0 to 2, so that the faults short and
// open of a signal, its lowest and highest value and all of its bits, are those of the line.
var stateOfSignal = [4]uint8{ShortToGround, Working, ShortToSupply, OpenLine}

// Outgoing is an image that is being made from messages.
type Outgoing struct {
	Image
	motions [Wheels]Motion
	made    [Wheels]int64 // Tick of the image in which the motion was new, ns
	source  [Wheels]uint8 // wheel whose sensor is on the channel
	used    [Wheels]bool
	fresh   [Wheels]bool // the motion is that of the next image
}

// Put stores the data of a message and reports whether it is one that is sent.
//
//go:nosplit
func (m *Outgoing) Put(id uint32, data *[64]byte) bool {
	le := binary.LittleEndian
	switch {
	case id == Digital:
		m.Digital = le.Uint64(data[:])
	case id >= Analog && id < Analog+Analogs/8:
		for i := range uint32(8) {
			m.Analog[8*(id-Analog)+i] = math.Float64frombits(le.Uint64(data[8*i:]))
		}
	case id >= PWMs4 && id < PWMs4+PWMs/4:
		for i := range uint32(4) {
			p := &m.PWM[4*(id-PWMs4)+i]
			p.Duty = math.Float64frombits(le.Uint64(data[16*i:]))
			p.Frequency = math.Float64frombits(le.Uint64(data[16*i+8:]))
		}
	case id >= Tone && id < Tone+Wheels:
		m.putWheel(id-Tone, data)
	default:
		return false
	}
	return true
}

//go:nosplit
func (m *Outgoing) putWheel(i uint32, data *[64]byte) {
	le := binary.LittleEndian
	w := &m.motions[i]
	w.Angle = math.Float64frombits(le.Uint64(data[0:]))
	w.Speed = math.Float64frombits(le.Uint64(data[8:]))
	w.Accel = math.Float64frombits(le.Uint64(data[16:]))
	w.Teeth, w.Missing = le.Uint16(data[24:]), le.Uint16(data[26:])
	w.Weak, w.Field = data[28], data[29]
	w.State, w.Reversed = stateOfSignal[data[30]&3], data[32]&1 != 0
	m.source[i], m.used[i], m.fresh[i] = data[31], true, true
}

// Finish computes the wheels of the image from their motions. Tick is set before. A wheel without a new motion since
// the last image, as with a cycle of several ticks or a lost message, goes on at constant acceleration.
//
//go:nosplit
func (m *Outgoing) Finish() {
	for i := range m.Wheel {
		if !m.fresh[i] {
			m.motions[i].advance(float64(1e-9 * float64(m.Tick-m.made[i])))
		}
		m.made[i], m.fresh[i] = m.Tick, false
	}
	for i := range m.Wheel {
		if !m.used[i] {
			continue
		}
		own := m.motions[i]
		if from := m.source[i]; from < Wheels && m.used[from] {
			of := &m.motions[from]
			own.Angle, own.Speed, own.Accel, own.Teeth = of.Angle, of.Speed, of.Accel, of.Teeth
			own.Missing, own.Weak, own.Field, own.Reversed = of.Missing, of.Weak, of.Field, of.Reversed
		}
		own.Wheel(&m.Wheel[i])
	}
}

// Received lists the messages of the box.
var Received = [...]uint32{Status, Box + Digital, Box + Analog, Box + Analog + 1, Box + Analog + 2, Box + Analog + 3,
	Box + PWMs4, Box + PWMs4 + 1, Box + PWMs4 + 2, Box + PWMs4 + 3}

// Message writes the data of a message of the box and returns its length, bytes; 0: there is no such message.
//
//go:nosplit
func (m *Image) Message(id uint32, data *[64]byte) uint8 {
	le := binary.LittleEndian
	switch {
	case id == Status:
		le.PutUint64(data[0:], uint64(m.Age))
		le.PutUint64(data[8:], m.Counter)
		return 16
	case id == Box+Digital:
		le.PutUint64(data[:], m.Digital)
		return 8
	case id >= Box+Analog && id < Box+Analog+Analogs/8:
		for i := range uint32(8) {
			le.PutUint64(data[8*i:], math.Float64bits(m.Analog[8*(id-Box-Analog)+i]))
		}
		return 64
	case id >= Box+PWMs4 && id < Box+PWMs4+PWMs/4:
		for i := range uint32(4) {
			p := &m.PWM[4*(id-Box-PWMs4)+i]
			le.PutUint64(data[16*i:], math.Float64bits(p.Duty))
			le.PutUint64(data[16*i+8:], math.Float64bits(p.Frequency))
		}
		return 64
	}
	return 0
}
