package gearbox

import (
	"encoding/binary"
	"math"
	"time"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Data identifiers.
const (
	didOil = 0x1001 + iota
	didGear
	didRatio
	didInput
	didOutput
	didIgnition
	didLever
	didAccelerator
	didShifts
	didLimpHome
	didPressures
	didEngine
	didVehicle
)

// automaticCodes are the trouble codes of the unit. Presence for Fail stores one, absence for Pass clears the bit
// testFailed. Limp-home lasts until the end of the operation cycle.
func automaticCodes() []diagnosis.Code {
	const ms = time.Millisecond
	return []diagnosis.Code{
		{Number: codeOverTemperature, Text: "P0218 transmission fluid over temperature", Fail: 500 * ms, Pass: 500 * ms, Trips: 1},
		{Number: codeLever, Text: "P0705 transmission range sensor", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeOilSensor, Text: "P0710 transmission fluid temperature sensor", Fail: 1000 * ms, Pass: 1000 * ms, Trips: 1},
		{Number: codeInputSpeed, Text: "P0715 input speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeOutputSpeed, Text: "P0720 output speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeRatio, Text: "P0730 incorrect gear ratio", Fail: 500 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeSlip, Text: "P0894 transmission component slipping", Fail: 1000 * ms, Pass: 1000 * ms, Trips: 2},
		{Number: codePedalsLost, Text: "U0100 lost communication: Pedals", Fail: 400 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codePedalsInvalid, Text: "U0401 invalid data: Pedals", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeShaftsLost, Text: "U1100 lost communication: ShaftSpeeds", Fail: 400 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
		{Number: codeShaftsInvalid, Text: "U1401 invalid data: ShaftSpeeds", Fail: 200 * ms, Pass: 500 * ms, Trips: 1, Limp: true},
	}
}

// startDiagnosis gives the unit its fault memory and its diagnosis server.
func (s *automatic) startDiagnosis() {
	codes := automaticCodes()
	if s.eight != nil {
		codes = eightSpeedCodes()
	}
	s.Operation = unit.NewOperation(s.Base, codes, ": limp-home")
	s.Serve(diagnosis.Config{
		Snapshot:    []uint16{didGear, didRatio, didInput, didOutput, didOil, didEngine, didVehicle, unit.IdentifierOfTime},
		Identifiers: s.identifiersOfData(), Routines: s.routines(), PIDs: s.emissionData(),
		VIN:        "WLS00000000000027",
		Standstill: func() bool { return math.Abs(s.out) < standstill },
		Reset:      s.reset,
	})
}

func (s *automatic) Summary() string { return s.transmission.Summary() + s.StoredCodes() }

// reset restarts the unit. A hard reset and key off and on begin an operation cycle.
func (s *automatic) reset(kind byte) {
	s.control = control{}
	s.Restart(kind)
}

// begin begins a drive, and with it an operation cycle.
func (s *automatic) begin(now time.Time) {
	s.hold(neutral)
	if s.eight != nil {
		s.eight.takeOver(s)
	}
	s.BeginCycle(now)
}

// ignite takes the state of the ignition from Pedals. An ignition begins an operation cycle, and while it is on the
// frame keeps the unit awake; only ShaftSpeeds wake it.
func (s *automatic) ignite(state int, now time.Time) {
	if s.Turn(state, now) && s.Awake {
		s.begin(now)
	}
}

// wakeBy wakes the unit, and keeps it awake.
func (s *automatic) wakeBy(now time.Time) {
	if !s.IsOff() && s.Wake(now) {
		s.begin(now)
	}
}

// identifiersOfData returns the data identifiers of the unit.
func (s *automatic) identifiersOfData() []diagnosis.Identifier {
	one := func(v func() int) func() []byte { return func() []byte { return []byte{byte(v())} } }
	scaled := func(v *float64, scale float64) func() []byte {
		return func() []byte { return unit.SignedBytes(*v, scale) }
	}
	return []diagnosis.Identifier{
		{ID: didOil, Read: scaled(&s.oil, oilStep)},
		{ID: didGear, Size: 1, Read: one(func() int { return s.gear }), Secure: true, Control: s.controlGear},
		{ID: didRatio, Read: func() []byte { return unit.SignedBytes(s.ratio(), 0.001) }},
		{ID: didInput, Read: scaled(&s.in, automaticSpeed)},
		{ID: didOutput, Read: scaled(&s.out, automaticSpeed)},
		{ID: didIgnition, Read: one(func() int { return s.Key })},
		{ID: didLever, Read: one(func() int { return s.lever })},
		{ID: didAccelerator, Read: one(func() int { return int(math.Round(s.accelerator / automaticPedal)) })},
		{ID: didShifts, Read: func() []byte { return binary.BigEndian.AppendUint32(nil, uint32(s.shifts)) }},
		{ID: didLimpHome, Read: one(func() int {
			if s.Memory.LimpHome() {
				return 1
			}
			return 0
		})},
		{ID: didPressures, Read: func() (data []byte) {
			for _, p := range s.commanded(s.Elapsed()) {
				data = append(data, byte(math.Round(p/automaticBar)))
			}
			return data
		}},
		{ID: didEngine, Read: scaled(&s.engine, automaticSpeed)},
		{ID: didVehicle, Read: scaled(&s.speed, vehicleSpeed)},
	}
}

// emissionData returns the parameters of the emission-related services: engine speed, speed of the car,
// accelerator and time since the start.
func (s *automatic) emissionData() []diagnosis.PID {
	quarterRPM := func(raw int16) []byte { return binary.BigEndian.AppendUint16(nil, uint16(max(raw, 0))) }
	value := func(b []byte) int16 { return int16(binary.BigEndian.Uint16(b)) }
	kmh := func(raw int16) []byte { return []byte{byte(min(math.Abs(float64(raw))*vehicleSpeed, 255))} }
	return []diagnosis.PID{
		{ID: 0x0C, Read: func() []byte { return quarterRPM(value(unit.SignedBytes(s.engine, automaticSpeed))) },
			Frozen: didEngine, Shown: func(v []byte) []byte { return quarterRPM(value(v)) }},
		{ID: 0x0D, Read: func() []byte { return kmh(value(unit.SignedBytes(s.speed, vehicleSpeed))) },
			Frozen: didVehicle, Shown: func(v []byte) []byte { return kmh(value(v)) }},
		{ID: 0x1F, Read: func() []byte {
			return binary.BigEndian.AppendUint16(nil, uint16(min(s.InCycle().Seconds(), math.MaxUint16)))
		}},
		{ID: 0x49, Read: func() []byte { return []byte{byte(s.accelerator * 255)} }},
	}
}
