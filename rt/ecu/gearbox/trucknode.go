package gearbox

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

const truckClaim = 250 * time.Millisecond // time from the address claim to the first frame

// truckName is the NAME of a unit: function 3, a transmission, identity 3333, maker 0.
const truckName = 3<<40 | 3333

// Trouble codes of a transmission: SPN and FMI of SAE J1939-73.
const (
	codeTruckInput   = 161<<5 | 19 // input shaft speed: received data in error
	codeTruckOutput  = 191<<5 | 19 // output shaft speed: the same
	codeTruckGear    = 523<<5 | 7  // current gear: the mechanical system does not respond
	codeTruckNetwork = 639<<5 | 9  // network: abnormal update rate
	truckTimeout     = 500 * time.Millisecond
	notAvailable     = 0xFF
)

// truckNode is the part of a transmission control unit that SAE J1939 determines: its address 3, what it
// receives of the truck, and its diagnosis. The unit sleeps until it receives ShaftSpeeds, and then claims its
// address. It is mute while another node has the address. DM1, DM2 and DM4 tell its trouble codes, DM3 and DM11
// clear them. An operation cycle lasts from its wake-up to its sleep.
type truckNode struct {
	unit.Operation
	base     *unit.Base
	messages diagnosis.Messages
	frames   []can.Frame // of the diagnosis, to send in this cycle

	shaft     [2]float64          // speeds of input and output shaft, rad/s
	valid     [2]bool             // their validity in the last ShaftSpeeds
	fresh     bool                // speeds newer than the last cycle
	lastShaft time.Time           // last ShaftSpeeds
	counterS  unit.RollingCounter // counter of ShaftSpeeds
	brake     float64             // brake pedal, %
	pedal     time.Time           // last EBC1; zero: none yet
}

// newTruckNode returns the part for a unit; gear returns its gear for the values of DM4.
func newTruckNode(s *unit.Base, gear func() int) *truckNode {
	s.Delay = truckClaim
	code := func(number uint32, text string, limp bool) diagnosis.Code {
		return diagnosis.Code{Number: number, Text: text, Fail: 500 * time.Millisecond, Pass: time.Second, Trips: 1, Limp: limp}
	}
	n := &truckNode{base: s, Operation: unit.NewOperation(s, []diagnosis.Code{
		code(codeTruckInput, "SPN 161 FMI 19 input shaft speed", true),
		code(codeTruckOutput, "SPN 191 FMI 19 output shaft speed", true),
		code(codeTruckGear, "SPN 523 FMI 7 current gear", true),
		code(codeTruckNetwork, "SPN 639 FMI 9 network: EBC1", false),
	}, "")}
	n.Memory.Capture = func() []byte { return n.freezeFrame(gear()) }
	n.messages = diagnosis.Messages{Address: 3, Memory: n.Memory, Send: func(id uint32, data []byte) error {
		f := can.Frame{ID: id, Length: uint8(len(data))}
		copy(f.Data[:], data)
		n.frames = append(n.frames, f)
		return nil
	}}
	return n
}

// truckIdentifiers lists the identifiers that a unit receives: its groups, claims of its address, and
// requests for claims from any node.
func truckIdentifiers(groups ...uint32) []uint32 {
	list := append(groups, idShafts, idTC1, idEBC1, idClaim)
	for source := range uint32(255) {
		list = append(list, extended|0x18EAFF00|source, extended|0x18EA0300|source)
	}
	return list
}

// begin starts an operation cycle and claims the address.
func (n *truckNode) begin() {
	n.base.Mute = false
	n.BeginCycle(n.base.LastCycle)
	_ = n.claim()
}

// handled handles a received frame of the network or of EBC1, and reports whether nothing is left to do.
func (n *truckNode) handled(f *can.Frame, now time.Time) bool {
	switch {
	case f.ID == idClaim:
		n.contend(f)
		return true
	case f.ID&0x3FF0000 == 0xEA0000:
		n.answer(f, now)
		return true
	case !n.base.CountFrame(f):
		return true
	case f.ID == idEBC1:
		n.pedal = now
		if raw := unit.Bits(f, 8, 8); raw <= 250 {
			n.brake = float64(raw) * 0.4
		}
		return true
	}
	return false
}

// answer answers a request for the address claim or for a diagnostic message.
func (n *truckNode) answer(f *can.Frame, now time.Time) {
	switch pgn := uint32(unit.Bits(f, 0, 24)); {
	case f.Length < 3 || !n.base.Awake:
	case pgn == 0xEE00:
		_ = n.claim() // a lost claim is requested again
	default:
		n.messages.Request(pgn, byte(f.ID), f.ID>>8&0xFF == 0xFF, sinceEpoch(now))
	}
}

// measure reads ShaftSpeeds and reports whether both speeds are valid.
func (n *truckNode) measure(f *can.Frame, now time.Time) bool {
	if !n.base.Awake && f.Data[7]&15 == 0 {
		n.counterS = unit.RollingCounter{}
	}
	n.base.Counts.Lost += n.counterS.CountMissing(f.Data[7])
	in, ok1 := speedOf(f, 0)
	out, ok2 := speedOf(f, 16)
	n.valid, n.lastShaft = [2]bool{ok1, ok2}, now
	if !ok1 || !ok2 {
		return false
	}
	n.shaft, n.fresh = [2]float64{in, out}, true
	return true
}

// claim sends the address claim, or "cannot claim" without an address.
func (n *truckNode) claim() error {
	id := uint32(idClaim)
	if n.base.Mute {
		id = idNoAddress
	}
	return n.base.Send(unit.Payload(truckName).Frame(id))
}

// contend defends the address against a higher NAME, and loses it to a lower one.
func (n *truckNode) contend(f *can.Frame) {
	switch {
	case f.Length != 8 || !n.base.Awake:
	case n.base.Mute:
	case binary.LittleEndian.Uint64(f.Data[:]) > truckName:
		_ = n.claim()
	default:
		n.base.Mute = true
		n.base.Logf("another node has address 3; the unit stops sending")
		_ = n.claim()
	}
}

// freezeFrame returns the values of DM4: those of the engine are not available; then gear, output and input speed.
func (n *truckNode) freezeFrame(gear int) []byte {
	data := []byte{notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, byte(gear + 125)}
	for _, w := range []float64{n.shaft[1], n.shaft[0]} {
		data = binary.LittleEndian.AppendUint16(data, uint16(math.Round(max(w, 0)/shaftBit)))
	}
	return data
}

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle.
func (n *truckNode) checkInputs(t, dt float64) {
	passed := unit.Seconds(dt)
	if n.base.LastCycle.Sub(n.lastShaft) < truckTimeout {
		n.Memory.Report(codeTruckInput, !n.valid[0], passed)
		n.Memory.Report(codeTruckOutput, !n.valid[1], passed)
	}
	if !n.pedal.IsZero() && t > truckTimeout.Seconds() {
		n.Memory.Report(codeTruckNetwork, n.base.LastCycle.Sub(n.pedal) > truckTimeout, passed)
	}
}

// diagnosticFrames returns the diagnostic messages that are due.
func (n *truckNode) diagnosticFrames() []can.Frame {
	n.frames = nil
	_ = n.messages.Advance(sinceEpoch(n.base.LastCycle)) // Send cannot fail
	return n.frames
}

// etc1 packs electronic transmission controller 1: shaft speeds, whether the driveline is engaged and whether a
// shift is under way. slip is that of the clutch or of the gear, rad/s.
func (n *truckNode) etc1(engaged, shifting bool, slip float64) can.Frame {
	g := unit.Unset
	g.SetBits(0, 6, 0) // no lock-up
	g.SetBit(0, engaged)
	g.SetBit(4, shifting)
	in, out := n.shaft[0], n.shaft[1]
	g.SetValue(8, 16, out/rpm, rpmBit, 0)
	share := 0.0
	if in > 0 {
		share = min(math.Abs(slip)/in*100, 100)
	}
	g.SetValue(24, 8, share, 0.4, 0)
	g.SetValue(40, 16, in/rpm, rpmBit, 0)
	return g.Frame(idETC1)
}

// etc2 packs electronic transmission controller 2: the selected and the current gear and the measured ratio. The
// range is "D ".
func etc2(selected, current int, ratio float64) can.Frame {
	g := unit.Unset
	g.SetValue(0, 8, float64(selected), 1, -125)
	g.SetValue(8, 16, ratio, 0.001, 0)
	g.SetValue(24, 8, float64(current), 1, -125)
	const drive = 'D' | ' '<<8
	g.SetBits(32, 16, drive)
	g.SetBits(48, 16, drive)
	return g.Frame(idETC2)
}

// sinceEpoch converts the time of a law to that of the diagnosis.
func sinceEpoch(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

// Identifiers of the frames of a transmission, of 29 bits: SAE J1939. The unit has address 3.
const (
	extended = 1 << 31

	idTSC1      = extended | 0x0C000003 // to the engine, 0
	idETC1      = extended | 0x0CF00203
	idETC2      = extended | 0x18F00503
	idTC1       = extended | 0x0C010305 // from the shift console, 5
	idEBC1      = extended | 0x18F0010B
	idShafts    = extended | 0x0CFF0180 // proprietary B, in place of wired sensors
	idClaim     = extended | 0x18EEFF03 // address claimed, from 3
	idNoAddress = extended | 0x18EEFFFE // cannot claim
)

const (
	rpm      = math.Pi / 30 // rad/s
	rpmBit   = 0.125        // of speeds, rpm
	shaftBit = rpmBit * rpm // the same, rad/s
	noLimit  = 125          // largest torque limit, %: no limit
)

// Override modes of TSC1, SPN 695.
const (
	overrideOff    = 0
	overrideSpeed  = 1
	overrideTorque = 2
	overrideLimit  = 3
)

// tsc1 packs torque/speed control 1: an override mode with a speed, rad/s, and a torque, %. NaN stands for no speed.
// Its checksum of three bits covers the seven bytes before it, the counter and the identifier.
func tsc1(mode uint64, speed, percent float64, counter uint8) can.Frame {
	g := unit.Unset
	g.SetBits(0, 2, mode)
	g.SetBits(4, 2, 1) // priority high
	g.SetBits(8, 16, 0xFAFF)
	if speed >= 0 {
		g.SetValue(8, 16, speed/rpm, rpmBit, 0)
	}
	g.SetValue(24, 8, percent, 1, -125)
	g.SetBits(32, 8, 0)
	g.SetBits(40, 4, 0)
	g.SetBits(56, 4, uint64(counter&7))
	f := g.Frame(idTSC1)
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

// speedOf reads a speed of 16 bits, rad/s; ok is false if the speed is not available.
func speedOf(f *can.Frame, at int) (w float64, ok bool) {
	raw := unit.Bits(f, at, 16)
	return float64(raw) * shaftBit, raw <= 0xFAFF
}
