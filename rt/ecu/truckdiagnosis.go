package ecu

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// Trouble codes of the truck's unit: SPN and FMI of SAE J1939-73.
const (
	codeTruckInput   = 161<<5 | 19 // input shaft speed: received data in error
	codeTruckOutput  = 191<<5 | 19 // output shaft speed: the same
	codeTruckGear    = 523<<5 | 7  // current gear: the mechanical system does not respond
	codeTruckNetwork = 639<<5 | 9  // network: abnormal update rate
	truckTimeout     = 500 * time.Millisecond
	notAvailable     = 0xFF
)

// truckTrouble is the diagnosis of the truck's unit: its fault memory and its messages. An operation cycle
// lasts from the wake-up of the unit to its sleep.
type truckTrouble struct {
	memory    *diagnosis.Memory
	messages  diagnosis.Messages
	frames    []can.Frame // to send in this cycle
	valid     [2]bool     // input and output speed in the last ShaftSpeeds
	pedal     time.Time   // last EBC1; zero: none yet
	lastShaft time.Time   // last ShaftSpeeds
}

// startDiagnosis gives the unit its fault memory and its diagnostic messages.
func (s *truck) startDiagnosis() {
	code := func(number uint32, text string, limp bool) diagnosis.Code {
		return diagnosis.Code{Number: number, Text: text, Fail: 500 * time.Millisecond, Pass: time.Second, Trips: 1, Limp: limp}
	}
	s.memory = diagnosis.NewMemory([]diagnosis.Code{
		code(codeTruckInput, "SPN 161 FMI 19 input shaft speed", true),
		code(codeTruckOutput, "SPN 191 FMI 19 output shaft speed", true),
		code(codeTruckGear, "SPN 523 FMI 7 current gear", true),
		code(codeTruckNetwork, "SPN 639 FMI 9 network: EBC1", false),
	})
	s.memory.Capture = s.freezeFrame
	s.memory.Notify = func(c diagnosis.Code) {
		fmt.Fprintf(s.log, "%s: %.2f s: %s\n", s.name, s.lastCycle.Sub(s.start).Seconds(), c.Text)
	}
	s.messages = diagnosis.Messages{Address: 3, Memory: s.memory, Send: func(id uint32, data []byte) error {
		f := can.Frame{ID: id, Length: uint8(len(data))}
		copy(f.Data[:], data)
		s.frames = append(s.frames, f)
		return nil
	}}
}

// freezeFrame returns the values of DM4: those of the engine are not available; then gear, output and input speed.
func (s *truck) freezeFrame() []byte {
	data := []byte{notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, notAvailable, byte(s.gear + 125)}
	for _, w := range []float64{s.out, s.in} {
		data = binary.LittleEndian.AppendUint16(data, uint16(math.Round(max(w, 0)/shaftBit)))
	}
	return data
}

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle.
func (s *truck) checkInputs(t, dt float64) {
	passed := time.Duration(math.Round(dt * 1e9))
	if s.lastCycle.Sub(s.lastShaft) < truckTimeout {
		s.memory.Report(codeTruckInput, !s.valid[0], passed)
		s.memory.Report(codeTruckOutput, !s.valid[1], passed)
	}
	if !s.pedal.IsZero() && t > truckTimeout.Seconds() {
		s.memory.Report(codeTruckNetwork, s.lastCycle.Sub(s.pedal) > truckTimeout, passed)
	}
	if s.fresh && !s.busy() && t > s.engaged+fixed {
		s.memory.Report(codeTruckGear, math.Abs(s.slip()) > max(wrongSlip, wrongRatio*math.Abs(s.ratios[s.gear]*s.out)), passed)
	}
}

// diagnosticFrames returns the diagnostic messages that are due.
func (s *truck) diagnosticFrames() []can.Frame {
	s.frames = nil
	_ = s.messages.Advance(sinceEpoch(s.lastCycle)) // Send cannot fail
	return s.frames
}

// sinceEpoch converts the time of a law to that of the diagnosis.
func sinceEpoch(t time.Time) time.Duration { return time.Duration(t.UnixNano()) }

// storedCodes lists the codes with a failure since the memory was cleared, for the last line of a unit.
func storedCodes(m *diagnosis.Memory) (text string) {
	for i, c := range m.Stored() {
		if i == 0 {
			text = "; trouble codes"
		}
		text += " " + c.Name()
	}
	return text
}
