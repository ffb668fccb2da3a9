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

// The sleeve of gear 1 does not move: the unit touches the clutch, tries again, and stores a code after three attempts.
// When the sleeve moves, the gear is engaged with the clutch open.
func TestAmtRepeatsAnEngagementAndStoresACode(t *testing.T) {
	g := &amtRig{t: t, line: &unittest.Line{T: t}}
	g.u = newUnit(t, "amt12", g.line, &g.log)
	g.drive(4, 12)
	unit := g.u.Law.(*amt)
	if unit.gear != 1 || unit.repeats < 3 || strings.Count(g.log.String(), "gear 1 does not engage") != unit.repeats {
		t.Errorf("gear %d after %d attempts:\n%s", unit.gear, unit.repeats, &g.log)
	}
	if !strings.Contains(g.log.String(), "SPN 523 FMI 7") {
		t.Errorf("no trouble code:\n%s", &g.log)
	}
	touched := false
	for _, f := range g.line.All {
		if f.ID == idActuators {
			touched = touched || float64(binary.LittleEndian.Uint16(f.Data[:]))*0.0025 > 30
		}
	}
	if !touched {
		t.Error("the clutch never touches")
	}
	g.gates[0] = 10
	g.drive(1, 12)
	if f := g.actuators(); !strings.Contains(g.log.String(), "gear 1 engaged") || f.Data[0] != 0 || f.Data[1] != 0 || f.Data[5] != 245 {
		t.Errorf("actuators % X:\n%s", f.Data, &g.log)
	}
}
