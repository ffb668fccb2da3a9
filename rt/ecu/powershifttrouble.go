package ecu

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
)

// Data identifiers of the powershift unit, besides didGear, didRatio, didShifts, didLimpHome and didTime.
const (
	didShaft = 0x1011 // speed of the first shaft; those of the others follow
	shafts   = 4
)

const (
	powershiftRatioBit = 0.01 // of didRatio
	smallestSlip       = 1.0  // slip in a gear that is never a wrong ratio, rad/s
	rests              = 0.5  // speed of the output shaft below which the vehicle stands, rad/s
)

// operation is the fault memory of a unit with its operation cycle, which begins when the unit wakes up, and with a
// hard reset.
type operation struct {
	memory     *diagnosis.Memory
	cycleStart time.Time
	sameCycle  bool // the next wake-up goes on with the operation cycle
}

// beginCycle begins an operation cycle at a wake-up.
func (o *operation) beginCycle(now time.Time) {
	if !o.sameCycle {
		o.memory.BeginCycle()
		o.cycleStart = now
	}
	o.sameCycle = false
}

// restart lets the unit sleep until its next wake-up frame.
func (o *operation) restart(s *session, kind byte) {
	s.awake = false
	o.sameCycle = kind == diagnosis.SoftReset
}

// watchedFrame supervises a frame to the unit.
type watchedFrame struct {
	lost, invalid uint32    // trouble codes
	seen          time.Time // last frame; zero: none yet
	good, bad     int       // frames since the last cycle, bad: with too many missing before
}

// note notes a frame with the number of frames missing before it.
func (f *watchedFrame) note(missing int64, now time.Time) {
	f.seen = now
	if missing > mostMissing {
		f.bad++
	} else {
		f.good++
	}
}

// report reports the frame to a fault memory, once per cycle, at t since the wake-up, s.
func (f *watchedFrame) report(m *diagnosis.Memory, t float64, now time.Time, passed time.Duration) {
	if t > fixed && !f.seen.IsZero() {
		m.Report(f.lost, now.Sub(f.seen) > 100*time.Millisecond, passed)
	}
	if f.bad+f.good > 0 {
		m.Report(f.invalid, f.bad > 0, passed)
	}
	f.good, f.bad = 0, 0
}

// powershiftTrouble is the diagnosis of the powershift unit. In limp-home the unit holds its gear.
type powershiftTrouble struct {
	operation
	speeds              watchedFrame
	frozenIn, frozenOut frozen
}

// startDiagnosis gives the unit its fault memory and its diagnosis server.
func (s *powershift) startDiagnosis() {
	const ms = time.Millisecond
	s.speeds = watchedFrame{lost: codeShaftsLost, invalid: codeShaftsInvalid}
	s.memory = diagnosis.NewMemory([]diagnosis.Code{
		{Number: codeInputSpeed, Text: "P0715 input speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeOutputSpeed, Text: "P0720 output speed sensor", Fail: 300 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeRatio, Text: "P0730 incorrect gear ratio", Fail: 500 * ms, Pass: 1000 * ms, Trips: 1, Limp: true},
		{Number: codeSlip, Text: "P0894 transmission component slipping", Fail: 100 * ms, Pass: 1000 * ms, Trips: 1},
		{Number: codeShaftsLost, Text: "U1100 lost communication: Speeds", Fail: 400 * ms, Pass: 500 * ms, Trips: 1},
		{Number: codeShaftsInvalid, Text: "U1401 invalid data: Speeds", Fail: 200 * ms, Pass: 500 * ms, Trips: 1},
	})
	s.memory.Notify = func(c diagnosis.Code) {
		limp := ""
		if c.Limp {
			limp = ": limp-home, gear held"
		}
		fmt.Fprintf(s.log, "%s: %.2f s: %s%s\n", s.name, s.lastCycle.Sub(s.start).Seconds(), c.Text, limp)
	}
	identifiers := []diagnosis.Identifier{
		{ID: didGear, Read: func() []byte { return []byte{byte(s.unit.gear[0]), byte(s.unit.gear[1]), byte(s.unit.gear[2])} }},
		{ID: didRatio, Read: func() []byte { return signedBytes(s.unit.gear.ratio(), powershiftRatioBit) }},
		{ID: didShifts, Read: func() []byte { return binary.BigEndian.AppendUint32(nil, uint32(s.unit.next)) }},
		{ID: didLimpHome, Read: func() []byte { return []byte{map[bool]byte{true: 1}[s.memory.LimpHome()]} }},
		{ID: didTime, Read: func() []byte {
			return binary.BigEndian.AppendUint32(nil, uint32(s.lastCycle.Sub(s.cycleStart).Milliseconds()))
		}},
	}
	snapshot := []uint16{didGear, didRatio, didTime}
	for i := range shafts {
		id := uint16(didShaft + i)
		identifiers = append(identifiers, diagnosis.Identifier{ID: id, Read: func() []byte { return signedBytes(s.w[i], radPerBit[i]) }})
		snapshot = append(snapshot, id)
	}
	s.server = diagnosis.New(diagnosis.Config{
		Request: idDiagnosisRequest, Response: idDiagnosisResponse, Functional: idDiagnosisToAll,
		Send: func(id uint32, data [8]byte) error {
			return s.send(can.Frame{ID: id, Length: 8, Data: data})
		},
		Memory: s.memory, Snapshot: snapshot, Identifiers: identifiers,
		VIN: "WLS00000000000048", Software: "powershift 1.0", Name: "powershift",
		Standstill: func() bool { return math.Abs(s.w[3]) < rests },
		Reset:      func(kind byte) { s.restart(s.session, kind) },
	})
}

func (s *powershift) summary() string { return storedCodes(s.memory) }

// checkInputs reports the plausibility of the inputs to the fault memory, once per cycle.
func (s *powershift) checkInputs(t, dt float64) {
	passed := time.Duration(math.Round(dt * 1e9))
	s.speeds.report(s.memory, t, s.lastCycle, passed)
	if !s.fresh {
		return
	}
	s.memory.Report(codeSlip, s.unit.busy && t >= s.unit.began+maxSlipTime, passed)
	geared := s.w[3] * s.unit.gear.ratio() // the output speed on the input shaft: it moves far enough within a gear
	in, out := s.frozenIn.check(s.w[0], geared, t), s.frozenOut.check(s.w[3], s.w[0], t)
	if s.unit.busy || t < s.unit.ended+fixed {
		s.frozenIn, s.frozenOut = frozen{}, frozen{}
		return
	}
	s.memory.Report(codeInputSpeed, in, passed)
	s.memory.Report(codeOutputSpeed, out, passed)
	if !in && !out {
		s.memory.Report(codeRatio, s.unit.gear.contradicts(s.w), passed)
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
