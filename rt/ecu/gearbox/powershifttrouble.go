package gearbox

import (
	"encoding/binary"
	"math"
	"time"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Data identifiers of the powershift unit, besides didGear, didRatio, didShifts, didLimpHome and unit.IdentifierOfTime.
const (
	didShaft = 0x1011 // speed of the first shaft; those of the others follow
	shafts   = 4
)

const (
	powershiftRatioBit = 0.01 // of didRatio
	smallestSlip       = 1.0  // slip in a gear that is never a wrong ratio, rad/s
	rests              = 0.5  // speed of the output shaft below which the vehicle stands, rad/s
)

// powershiftTrouble is the diagnosis of the powershift unit. In limp-home the unit holds its gear.
type powershiftTrouble struct {
	unit.Operation
	speeds              unit.Input
	frozenIn, frozenOut frozen
}

// startDiagnosis gives the unit its fault memory and its diagnosis server.
func (s *powershift) startDiagnosis() {
	const ms = time.Millisecond
	s.speeds = unit.Input{Lost: codeShaftsLost, Invalid: codeShaftsInvalid, Timeout: 100 * ms}
	s.Operation = unit.NewOperation(s.Base, []diagnosis.Code{
		{Number: codeInputSpeed, Text: "P0715 input speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeOutputSpeed, Text: "P0720 output speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeRatio, Text: "P0730 incorrect gear ratio", Fail: 500 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeSlip, Text: "P0894 transmission component slipping", Fail: 100 * ms, Pass: 1000 * ms, Trips: 1},
		{Number: codeShaftsLost, Text: "U1100 lost communication: Speeds", Fail: 400 * ms, Pass: 500 * ms, Trips: 1},
		{Number: codeShaftsInvalid, Text: "U1401 invalid data: Speeds", Fail: 200 * ms, Pass: 500 * ms, Trips: 1},
	}, ": limp-home, gear held")
	identifiers := []diagnosis.Identifier{
		{ID: didGear, Read: func() []byte { return []byte{byte(s.shift.gear[0]), byte(s.shift.gear[1]), byte(s.shift.gear[2])} }},
		{ID: didRatio, Read: func() []byte { return unit.SignedBytes(s.shift.gear.ratio(), powershiftRatioBit) }},
		{ID: didShifts, Read: func() []byte { return binary.BigEndian.AppendUint32(nil, uint32(s.shift.next)) }},
		{ID: didLimpHome, Read: func() []byte { return []byte{map[bool]byte{true: 1}[s.Memory.LimpHome()]} }},
	}
	snapshot := []uint16{didGear, didRatio, unit.IdentifierOfTime}
	for i := range shafts {
		id := uint16(didShaft + i)
		identifiers = append(identifiers, diagnosis.Identifier{ID: id, Read: func() []byte { return unit.SignedBytes(s.w[i], radPerBit[i]) }})
		snapshot = append(snapshot, id)
	}
	s.Serve(diagnosis.Config{
		Snapshot: snapshot, Identifiers: identifiers,
		VIN:        "WLS00000000000048",
		Standstill: func() bool { return math.Abs(s.w[3]) < rests },
	})
}

func (s *powershift) Summary() string { return s.StoredCodes() }

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle.
func (s *powershift) checkInputs(t, dt float64) {
	passed := unit.Seconds(dt)
	s.speeds.Report(s.Memory, t > unit.StartTime && s.speeds.Seen(), s.LastCycle, passed)
	if !s.fresh {
		return
	}
	s.Memory.Report(codeSlip, s.shift.busy && t >= s.shift.began+maxSlipTime, passed)
	geared := s.w[3] * s.shift.gear.ratio() // the output speed on the input shaft: it moves far enough within a gear
	in, out := s.frozenIn.check(s.w[0], geared, t), s.frozenOut.check(s.w[3], s.w[0], t)
	if s.shift.busy || t < s.shift.ended+fixed {
		s.frozenIn, s.frozenOut = frozen{}, frozen{}
		return
	}
	s.Memory.Report(codeInputSpeed, in, passed)
	s.Memory.Report(codeOutputSpeed, out, passed)
	if !in && !out {
		s.Memory.Report(codeRatio, s.shift.gear.contradicts(s.w), passed)
	}
}

// contradicts reports whether the speeds, rad/s, cannot be those of the gear.
func (g gear) contradicts(w [4]float64) bool {
	for stage, clutch := range g {
		speed := max(math.Abs(w[stage]), clutchRatio[clutch]*math.Abs(w[stage+1]))
		if math.Abs(slip(stage, clutch, w)) > smallestSlip+wrongRatio*speed {
			return true
		}
	}
	return false
}
