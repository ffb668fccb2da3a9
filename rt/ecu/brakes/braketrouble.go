package brakes

import (
	"fmt"
	"math"
	"time"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// wheelCodes are the trouble codes of the four sensors: C0035, C0040, C0045, C0050.
var wheelCodes = [4]uint32{0x403500, 0x404000, 0x404500, 0x405000}

// Trouble codes of the frames of a brake unit.
const (
	codeSpeedsLost      = 0xD10000 // U1100, of the maker
	codeSpeedsInvalid   = 0xD40100 // U1401, of the maker
	codePressureLost    = 0xD10100 // U1101, of the maker
	codePressureInvalid = 0xD40200 // U1402, of the maker
)

// didWheel is the data identifier of the speed of the first wheel; those of the others follow.
const didWheel = 0x1031

const (
	wheelSpeedBit = 0.01 // of didWheel, m/s
	sensorShare   = 0.3  // a sensor reads too little below this share of the slowest other wheel
	sensorSpeed   = 3.0  // speed of the slowest other wheel from which on sensors are compared, m/s
	brakeRests    = 0.3  // speed below which the vehicle stands, m/s
)

// brakeTrouble is the diagnosis of a brake unit. The codes do not change the control.
type brakeTrouble struct {
	unit.Operation
	frames [2]unit.Input // of the speeds, and of the demanded pressure
}

// startDiagnosis gives the unit its fault memory and its diagnosis server. wheels are the names of its wheels.
func (s *brake) startDiagnosis(wheels [4]string, vin string) {
	const ms = time.Millisecond
	var codes []diagnosis.Code
	var identifiers []diagnosis.Identifier
	snapshot := []uint16{unit.IdentifierOfTime}
	for i, name := range wheels {
		codes = append(codes, diagnosis.Code{Number: wheelCodes[i], Fail: 500 * ms, Pass: 1000 * ms, Trips: 1,
			Text: fmt.Sprintf("C%04X speed sensor of %s", wheelCodes[i]>>8&0x3FFF, name)})
		id := uint16(didWheel + i)
		identifiers = append(identifiers, diagnosis.Identifier{ID: id, Read: func() []byte { return unit.SignedBytes(s.wheel[i].v, wheelSpeedBit) }})
		snapshot = append(snapshot, id)
	}
	s.frames = [2]unit.Input{
		{Lost: codeSpeedsLost, Invalid: codeSpeedsInvalid, Timeout: 100 * ms},
		{Lost: codePressureLost, Invalid: codePressureInvalid, Timeout: 100 * ms},
	}
	for i, what := range []string{"speeds", "demanded pressure"} {
		codes = append(codes,
			diagnosis.Code{Number: s.frames[i].Lost, Text: fmt.Sprintf("U%d lost communication: %s", 1100+i, what), Fail: 400 * ms, Pass: 500 * ms, Trips: 1},
			diagnosis.Code{Number: s.frames[i].Invalid, Text: fmt.Sprintf("U%d invalid data: %s", 1401+i, what), Fail: 200 * ms, Pass: 500 * ms, Trips: 1})
	}
	s.Operation = unit.NewOperation(s.Base, codes, "")
	s.Serve(diagnosis.Config{
		Snapshot: snapshot, Identifiers: identifiers, VIN: vin,
		Standstill: func() bool { return s.fastest() < brakeRests },
	})
}

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle. A sensor that reads much
// less than all others is wrong; while the driver brakes its wheel may lock.
func (s *brake) checkInputs(t, dt float64, braking bool) {
	passed := unit.Seconds(dt)
	for i := range s.frames {
		f := &s.frames[i]
		f.Report(s.Memory, t > unit.StartTime && f.Seen(), s.LastCycle, passed)
	}
	if braking || !math.IsNaN(s.stop) {
		return
	}
	for i := range s.wheel {
		slowest := math.Inf(1)
		for j := range s.wheel {
			if j != i {
				slowest = min(slowest, s.wheel[j].v)
			}
		}
		if slowest >= sensorSpeed {
			s.Memory.Report(wheelCodes[i], s.wheel[i].v < sensorShare*slowest, passed)
		}
	}
}
