package gearbox

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Trouble codes of the double-clutch unit besides those of the automatic gearbox, SAE J2012, failure type 00.
const (
	codeInputSpeed2  = 0x276500 // P2765
	codeDctSlip      = 0x081100 // P0811
	codeSleeve       = 0x091900 // P0919
	codeRailsLost    = 0xD10100 // U1101, of the maker
	codeRailsInvalid = 0xD40200 // U1402, of the maker

	codeEngineInvalid = 0xD40300 // U1403, of the maker
)

// Data identifiers besides those of the automatic gearbox.
const (
	didPreselected = 0x1101
	didInput2      = 0x1102
	didDiscs       = 0x1103
)

const (
	hotDisc   = 250.0 // temperature of a disc above which it is too hot, degC
	slipsLong = 1.0   // time for which a closed clutch may slip, s
)

// startDiagnosis gives the unit its fault memory and its diagnosis server.
func (s *dct) startDiagnosis() {
	const ms = time.Millisecond
	s.Operation = unit.NewOperation(s.Base, []diagnosis.Code{
		{Number: codeOverTemperature, Text: "P0218 transmission over temperature", Fail: 500 * ms, Pass: 500 * ms, Trips: 1},
		{Number: codeLever, Text: "P0705 transmission range sensor", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeInputSpeed, Text: "P0715 input speed sensor A", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeInputSpeed2, Text: "P2765 input speed sensor B", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeOutputSpeed, Text: "P0720 output speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeDctSlip, Text: "P0811 excessive clutch slippage", Fail: 500 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeSleeve, Text: "P0919 gear shift position", Fail: 100 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codePedalsLost, Text: "U0100 lost communication: DctDriver", Fail: 400 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codePedalsInvalid, Text: "U0401 invalid data: DctDriver", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeShaftsLost, Text: "U1100 lost communication: DctSpeeds", Fail: 400 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeShaftsInvalid, Text: "U1401 invalid data: DctSpeeds", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeRailsLost, Text: "U1101 lost communication: DctRails", Fail: 400 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeRailsInvalid, Text: "U1402 invalid data: DctRails", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeTorqueLost, Text: "U1102 lost communication: DctEngine", Fail: 400 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeEngineInvalid, Text: "U1403 invalid data: DctEngine", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
	}, ": limp-home")
	number := func(v func() int) func() []byte { return func() []byte { return []byte{byte(v())} } }
	scaled := func(v *float64, scale float64) func() []byte {
		return func() []byte { return unit.SignedBytes(*v, scale) }
	}
	s.Serve(diagnosis.Config{
		Snapshot: []uint16{didGear, didPreselected, didInput, didInput2, didOutput, didEngine, didVehicle, unit.IdentifierOfTime},
		Identifiers: []diagnosis.Identifier{
			{ID: didGear, Read: number(func() int { return s.gear })},
			{ID: didPreselected, Read: number(s.preselected)},
			{ID: didInput, Read: scaled(&s.in[0], automaticSpeed)},
			{ID: didInput2, Read: scaled(&s.in[1], automaticSpeed)},
			{ID: didOutput, Read: scaled(&s.out, dctOutput)},
			{ID: didIgnition, Read: number(func() int { return s.Key })},
			{ID: didLever, Read: number(func() int { return s.lever })},
			{ID: didShifts, Read: func() []byte { return binary.BigEndian.AppendUint32(nil, uint32(s.shifts)) }},
			{ID: didLimpHome, Read: func() []byte { return []byte{map[bool]byte{true: 1}[s.Memory.LimpHome()]} }},
			{ID: didDiscs, Read: func() []byte { return append(unit.SignedBytes(s.disc[0], 0.1), unit.SignedBytes(s.disc[1], 0.1)...) }},
			{ID: didEngine, Read: scaled(&s.engine, automaticSpeed)},
			{ID: didVehicle, Read: scaled(&s.speed, vehicleSpeed)},
		},
		VIN:        "WLS00000000000029",
		Standstill: func() bool { return math.Abs(s.out) < rests },
	})
}

func (s *dct) Summary() string {
	return fmt.Sprintf("; %d shifts, gear %s", s.shifts, dctNames[s.gear]) + s.StoredCodes()
}

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle. No test runs while the
// ignition is off: then missing frames are right.
func (s *dct) checkInputs(t, dt float64) {
	if s.IsOff() {
		return
	}
	passed := unit.Seconds(dt)
	started := s.InCycle().Seconds() > unit.StartTime
	for _, i := range []*unit.Input{&s.speeds, &s.rails, &s.driver, &s.motor} {
		i.Report(s.Memory, started, s.LastCycle, passed)
	}
	if s.driver.Seen() {
		s.Memory.Report(codeLever, s.rawLever > leverD, passed)
	}
	if s.temperature.Seen() {
		s.Memory.Report(codeOverTemperature, max(s.disc[0], s.disc[1]) > hotDisc, passed)
	}
	late := [4]bool{}
	for i := range s.moving {
		late[i] = t-s.moving[i] > forkTime
	}
	s.Memory.Report(codeSleeve, late != [4]bool{}, passed)
	for i := range late {
		s.stuck[i] = s.stuck[i] || late[i] && s.Memory.Status(codeSleeve)&diagnosis.TestFailed != 0
	}
	if s.fresh {
		s.checkSpeeds(t, passed)
	}
}

// checkSpeeds reports the plausibility of the speeds: an input shaft has the ratio of the gear that its half has
// engaged. Where both contradict the output shaft, that one is wrong.
func (s *dct) checkSpeeds(t float64, passed time.Duration) {
	wrong, known := [2]bool{}, [2]bool{}
	for h := range 2 {
		gear := s.engaged(h)
		if gear == 0 || s.blind() {
			continue
		}
		speed := dctRatio[gear] * s.out
		known[h], wrong[h] = true, math.Abs(s.in[h]-speed) > max(2*wrongSlip, wrongRatio*math.Abs(speed))
	}
	both := known[0] && known[1]
	if both {
		s.Memory.Report(codeOutputSpeed, wrong[0] && wrong[1], passed)
	}
	for h, code := range [2]uint32{codeInputSpeed, codeInputSpeed2} {
		if known[h] && !(both && wrong[0] && wrong[1]) {
			s.Memory.Report(code, wrong[h], passed)
		}
	}

	if s.gear == 0 || !s.closed || s.motor.Late(s.LastCycle) || math.Abs(s.engine-s.in[half(s.gear)]) < 3*dctSlip {
		s.slipped = math.NaN()
	} else if math.IsNaN(s.slipped) {
		s.slipped = t
	}
	switch {
	case s.broken == [2]bool{}:
		s.Memory.Report(codeDctSlip, t-s.slipped > slipsLong, passed)
	case s.Memory.Status(codeDctSlip)&diagnosis.TestFailed == 0: // a tester has cleared the code
		s.broken = [2]bool{}
	}
}
