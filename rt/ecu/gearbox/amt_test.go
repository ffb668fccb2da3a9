package gearbox

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit/unittest"
)

// The ratios of the gears fall by a step of 1.25 to 1.31 from gear to gear, and gear 12 is direct.
func TestRatiosOfAmtFallByOneStep(t *testing.T) {
	for gear := 1; gear < amtTop; gear++ {
		if step := amtRatio(gear) / amtRatio(gear+1); !(step > 1.24 && step < 1.32) {
			t.Errorf("gear %d over gear %d: %g", gear, gear+1, step)
		}
	}
	if r := amtRatio(amtTop); r != 1 {
		t.Errorf("gear 12 has the ratio %g", r)
	}
	if r := amtRatio(-2) / amtRatio(2); !(math.Abs(r+62./23*22/64) < 1e-12) {
		t.Errorf("R2 over gear 2: %g", r)
	}
}

// amtRig is the unit amt12 of a standing truck, with sleeves that the test moves.
type amtRig struct {
	t     *testing.T
	u     *unittest.Unit
	line  *unittest.Line
	log   bytes.Buffer
	k     int
	gates [2]float64 // mm
	blind bool       // ShiftSensors is not sent
}

// drive steps the unit for a while with a request for a gear.
func (g *amtRig) drive(seconds float64, gear int) {
	g.t.Helper()
	for range int(math.Round(seconds * 100)) {
		g.k++
		g.line.Now = time.Duration(g.k) * 10 * time.Millisecond
		sensors := can.Frame{ID: idShiftSensors, Length: 8, Data: [8]byte{3: byte(math.Round((g.gates[0] + 12.5) * 10)), 4: byte(math.Round((g.gates[1] + 12.5) * 10)), 7: byte(g.k & 15)}}
		engine := can.Frame{ID: idEEC1, Length: 8, Data: [8]byte{1: 125, 2: 125}}
		binary.LittleEndian.PutUint16(engine.Data[3:], 600*8)
		request := can.Frame{ID: idTC1, Length: 8, Data: [8]byte{2: byte(gear + 125)}}
		for _, f := range []can.Frame{shaftFrame(0, 0, uint8(g.k-1)), sensors, engine, request} {
			if g.blind && f.ID == idShiftSensors {
				continue
			}
			g.u.Receive(unittest.Pack(g.t, f), g.line.Now-1)
		}
		if err := g.u.Tick(g.line.Now); err != nil {
			g.t.Fatal(err)
		}
	}
}

// actuators returns the last ShiftActuators.
func (g *amtRig) actuators() (f can.Frame) {
	for _, s := range g.line.All {
		if s.ID == idActuators {
			f = s
		}
	}
	return f
}

// largest returns the largest commands of the clutch and of the brake of the countershaft so far, %.
func (g *amtRig) largest() (clutch, brake float64) {
	for _, f := range g.line.All {
		if f.ID == idActuators {
			clutch = max(clutch, float64(binary.LittleEndian.Uint16(f.Data[:]))*0.0025)
			brake = max(brake, float64(f.Data[2])*0.4)
		}
	}
	return clutch, brake
}

// clearCodes requests DM11.
func (g *amtRig) clearCodes() {
	clear := can.Frame{ID: extended | 0x18EA03F9, Length: 3, Data: [8]byte{0xD3, 0xFE}}
	g.u.Receive(unittest.Pack(g.t, clear), g.line.Now)
}

// The sleeve of gear 1 does not move: the unit touches the clutch and tries again. When the sleeve moves, the gear is
// engaged with the clutch open.
func TestAmtRepeatsAnEngagement(t *testing.T) {
	g := &amtRig{t: t, line: &unittest.Line{T: t}}
	g.u = newUnit(t, "amt12", g.line, &g.log)
	unit := g.u.Law.(*amt)
	for unit.repeats < 2 && g.k < 400 {
		g.drive(0.01, 12)
	}
	if unit.gear != 1 || strings.Count(g.log.String(), "gear 1 does not engage") != 2 {
		t.Errorf("gear %d after %d attempts:\n%s", unit.gear, unit.repeats, &g.log)
	}
	if touched, _ := g.largest(); !(touched > 30) {
		t.Errorf("the clutch never touches: it closes to %g %%", touched)
	}
	for unit.phase != amtEngage && g.k < 400 {
		g.drive(0.01, 12)
	}
	g.gates[0] = 10
	g.drive(1, 12)
	if f := g.actuators(); !strings.Contains(g.log.String(), "gear 1 engaged") || f.Data[0] != 0 || f.Data[1] != 0 || f.Data[5] != 245 {
		t.Errorf("actuators % X:\n%s", f.Data, &g.log)
	}
}

// Without ShiftSensors the unit does not know that a sleeve has moved: the shift waits for them, with the clutch open, and
// counts no attempt.
func TestAmtWaitsForItsShiftSensors(t *testing.T) {
	g := &amtRig{t: t, line: &unittest.Line{T: t}}
	g.u = newUnit(t, "amt12", g.line, &g.log)
	unit := g.u.Law.(*amt)
	for unit.phase != amtEngage && g.k < 400 {
		g.drive(0.01, 12)
	}
	g.blind, g.gates[0] = true, 10
	g.drive(5, 12)
	if f := g.actuators(); unit.phase != amtEngage || f.Data[0] != 0 || f.Data[1] != 0 {
		t.Errorf("phase %d, actuators % X", unit.phase, f.Data)
	}
	g.blind = false
	if g.drive(1, 12); unit.repeats != 0 || unit.failed() || !strings.Contains(g.log.String(), "gear 1 engaged") {
		t.Errorf("%d repeated:\n%s", unit.repeats, &g.log)
	}
}

// A sleeve that never moves: after three attempts the unit stays in neutral with one trouble code, for as long as it is
// asked for the gear. When the code is cleared it tries three times again.
func TestAmtGivesUpAGearThatDoesNotEngage(t *testing.T) {
	g := &amtRig{t: t, line: &unittest.Line{T: t}}
	g.u = newUnit(t, "amt12", g.line, &g.log)
	unit := g.u.Law.(*amt)
	for _, attempts := range []int{3, 6} {
		g.drive(60, 12)
		if unit.repeats != attempts || unit.gear != 0 || unit.phase != amtDrive || unit.clutch != 0 || unit.targets != [2]float64{} {
			t.Fatalf("gear %d, phase %d after %d attempts, want neutral after %d:\n%s", unit.gear, unit.phase, unit.repeats, attempts, &g.log)
		}
		if n := strings.Count(g.log.String(), "SPN 523 FMI 7"); n != attempts/3 {
			t.Errorf("%d trouble codes after %d attempts:\n%s", n, attempts, &g.log)
		}
		g.clearCodes()
	}
}

// A sleeve that does not leave gear 1: the unit tries three times, once with a touch of the clutch and once with the brake
// of the countershaft, then stays in the gear with one trouble code. When the code is cleared and the sleeve moves, the
// unit shifts to neutral.
func TestAmtStaysInAGearThatItsSleeveDoesNotLeave(t *testing.T) {
	g := &amtRig{t: t, line: &unittest.Line{T: t}, gates: [2]float64{10, 0}}
	g.u = newUnit(t, "amt12", g.line, &g.log)
	unit := g.u.Law.(*amt)
	g.drive(3, 0)
	if unit.phase != amtDrive || unit.gear != 1 || unit.repeats != 3 || unit.targets != [2]float64{amtFork, 0} {
		t.Fatalf("after 3 s gear %d, phase %d, %d attempts, want gear 1 after three:\n%s", unit.gear, unit.phase, unit.repeats, &g.log)
	}
	if clutch, brake := g.largest(); !(clutch > 30 && clutch < 32 && brake > 20 && brake < 26) {
		t.Errorf("the clutch closes to %g %%, the brake to %g %%; want 60 N.m of 4000 and of 250 N.m", clutch, brake)
	}
	g.drive(60, 0)
	if n := strings.Count(g.log.String(), "SPN 523 FMI 7"); n != 1 || unit.repeats != 3 || unit.gear != 1 {
		t.Errorf("gear %d, %d trouble codes after %d attempts:\n%s", unit.gear, n, unit.repeats, &g.log)
	}
	g.clearCodes()
	g.drive(0.4, 0) // the torque goes, the clutch opens
	g.gates[0] = 0
	g.drive(2, 0)
	if unit.gear != 0 || unit.phase != amtDrive || unit.repeats != 3 || unit.failed() {
		t.Errorf("gear %d, phase %d after %d attempts:\n%s", unit.gear, unit.phase, unit.repeats, &g.log)
	}
}

// A sleeve that leaves its gear when the clutch has taken the torque off its teeth: the shift goes on, without a code.
func TestAmtFreesASleeveOfTorque(t *testing.T) {
	g := &amtRig{t: t, line: &unittest.Line{T: t}, gates: [2]float64{10, 0}}
	g.u = newUnit(t, "amt12", g.line, &g.log)
	unit := g.u.Law.(*amt)
	for g.k < 300 && unit.clutch == 0 {
		g.drive(0.01, -1)
	}
	g.gates[0] = 0
	g.drive(0.5, -1)
	g.gates[0] = -10
	g.drive(3, -1)
	if unit.gear != -1 || unit.phase != amtDrive || unit.repeats != 1 || strings.Contains(g.log.String(), "SPN") {
		t.Errorf("gear %d, phase %d after %d attempts:\n%s", unit.gear, unit.phase, unit.repeats, &g.log)
	}
}
