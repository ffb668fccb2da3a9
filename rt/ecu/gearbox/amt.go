package gearbox

import (
	"fmt"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
)

// Gears of the gearbox of amt12.yaml by its teeth: splitter K1 and K2, main group reverse and 1 to 3, range low
// and high.
var (
	amtSplit = [2]float64{39. / 31, 36. / 37}
	amtMain  = [4]float64{-62. / 23, 64. / 22, 45. / 26, 37. / 36}
	amtRange = [2]float64{1 + 100./28, 1}
)

// amtGear is a gear as positions of the three groups; the zero of a gear is neutral, -1 and -2 are reverse.
type amtGear struct{ split, main, rng int }

// groupsOf returns the positions of the groups in a gear that is not neutral.
func groupsOf(gear int) amtGear {
	if gear < 0 {
		return amtGear{split: -1 - gear}
	}
	g := gear - 1
	return amtGear{g % 2, 1 + g%6/2, g / 6}
}

// amtRatio returns the ratio of input and output shaft in a gear; 0 in neutral.
func amtRatio(gear int) float64 {
	if gear == 0 {
		return 0
	}
	g := groupsOf(gear)
	return amtSplit[g.split] * amtMain[g.main] * amtRange[g.rng]
}

// Properties of engine and clutch.
const (
	amtTop       = 12
	amtIdle      = 600 * rpm
	amtGoverned  = 2150 * rpm // largest speed that a shift may lead to
	amtReference = 2500.0     // torque of 100 %, N.m
	amtClutch    = 4000.0     // torque of the closed clutch, N.m
	amtBrake     = 250.0      // torque of the brake of the countershaft, N.m
	amtFork      = 12.0       // target of an engaged sleeve, mm; its stop is at 10 mm
	amtStanding  = 5 * rpm    // output speed of a standing truck
)

// amt is the control unit of an automated manual gearbox of 12 gears on SAE J1939. Every 10 ms it sends TSC1, ETC1
// and ShiftActuators, every 100 ms ETC2. It shifts by the speed of the input shaft, several gears at once where the
// engine speed allows, up to the gear that TC1 requests; with the parameter manual it drives the requested gear.
// amtshift.go has the sequence of a shift. In limp-home it stays in its gear, in neutral where its sleeve has left the gear
// and does not enter the next one.
type amt struct {
	*unit.Base
	*truckNode
	amtShift

	requested    int        // gear of TC1
	accelerator  float64    // %
	load         float64    // torque of the engine, share of amtReference
	engine, lay  float64    // speeds of engine and countershaft, rad/s
	gates        [2]float64 // strokes of the sleeves R/1 and 2/3, mm
	known, found bool       // the sensors have been received; the gear has been read from them
	sensed       time.Time  // last ShiftSensors
	counterG     unit.RollingCounter

	closed bool    // the clutch is closed
	clutch float64 // command of the clutch, 0 to 1
	grip   float64 // torque of the clutch while it starts the truck, N.m

	manual, startGear       float64
	up, upLoad, after       float64 // rpm
	down, downTo            float64 // rpm
	kiss, launch, maxTorque float64
}

func newAmt(s *unit.Base) unit.Law {
	a := &amt{Base: s, startGear: 1, up: 1350, upLoad: 450, after: 1050, down: 900, downTo: 1150,
		kiss: 0.3, launch: 800, maxTorque: 16}
	a.truckNode = newTruckNode(s, func() int { return a.gear })
	return a
}

func (a *amt) Parameters() []unit.Parameter {
	return []unit.Parameter{
		unit.NewParameter("manual", "", 0, 1, &a.manual),
		unit.NewParameter("start_gear", "", 1, 6, &a.startGear),
		unit.NewParameter("up", "rpm", 700, 2100, &a.up),
		unit.NewParameter("up_load", "rpm", 0, 1000, &a.upLoad),
		unit.NewParameter("after", "rpm", 600, 2000, &a.after),
		unit.NewParameter("down", "rpm", 600, 2000, &a.down),
		unit.NewParameter("down_to", "rpm", 600, 2000, &a.downTo),
		unit.NewParameter("kiss", "", 0, 0.9, &a.kiss),
		unit.NewParameter("launch", "N.m/s", 10, 1e5, &a.launch),
		unit.NewParameter("max_torque", "kN.m", 1, 100, &a.maxTorque),
	}
}

func (a *amt) Summary() string {
	return fmt.Sprintf("; %d shifts, %d repeated, gear %s", a.shifts, a.repeats, gearName(a.gear)) + a.StoredCodes()
}

// gearName returns N, R1, R2 or the number of a gear.
func gearName(gear int) string {
	switch {
	case gear < 0:
		return fmt.Sprintf("R%d", -gear)
	case gear == 0:
		return "N"
	}
	return fmt.Sprint(gear)
}

// Receive handles a received frame.
func (a *amt) Receive(f *can.Frame, now time.Time) {
	switch {
	case a.handled(f, now):
	case f.ID == idTC1:
		a.requested = min(max(int(unit.Bits(f, 16, 8))-125, -2), amtTop)
	case f.ID == idEEC1:
		if raw := unit.Bits(f, 8, 8); raw <= 250 {
			a.accelerator = float64(raw) - 125
		}
		if raw := unit.Bits(f, 16, 8); raw <= 250 {
			a.load = (float64(raw) - 125) / 100
		}
		if w, ok := speedOf(f, 24); ok {
			a.engine = w
		}
	case f.ID == idShiftSensors:
		a.Counts.Lost += a.counterG.CountMissing(f.Data[7])
		a.lay, _ = speedOf(f, 0)
		for i := range a.gates {
			a.gates[i] = float64(unit.Bits(f, 24+8*i, 8))*0.1 - 12.5
		}
		a.known, a.sensed = true, now
	case f.ID == idShafts && a.measure(f, now) && a.Wake(now):
		a.known, a.found, a.closed, a.amtShift = false, false, false, amtShift{}
		a.Logf("0.00 s: address 3 claimed")
		a.truckNode.begin()
	}
}

// Step runs one cycle of 10 ms.
func (a *amt) Step(t, dt float64) []can.Frame {
	a.checkInputs(t, dt)
	if a.known {
		if !a.found {
			a.find(t)
		}
		a.Memory.Report(codeTruckGear, a.failed(), unit.Seconds(dt))
		if a.fresh {
			a.decide(t)
		}
		a.advance(t, dt)
	}
	a.fresh = false

	list := []can.Frame{tsc1(a.mode, a.speed, a.percent, a.Counter), a.etc1(a.closed, a.phase != amtDrive, a.engine-a.shaft[0]), a.actuators()}
	if a.Counts.Cycles%10 == 1 {
		ratio := amtRatio(a.gear)
		if a.shaft[1] > 1 {
			ratio = a.shaft[0] / a.shaft[1]
		}
		list = append(list, etc2(a.gear, a.from, ratio))
	}
	return append(list, a.diagnosticFrames()...)
}

// actuators packs ShiftActuators.
func (a *amt) actuators() can.Frame {
	g := unit.Unset
	g.SetValue(0, 16, a.clutch*100, 0.0025, 0)
	g.SetValue(16, 8, a.brakeForce*100, 0.4, 0)
	g.SetValue(24, 8, a.split*100, 1, -125)
	g.SetValue(32, 8, a.rng*100, 1, -125)
	for i, s := range a.targets {
		g.SetValue(40+8*i, 8, s, 0.1, -12.5)
	}
	g.SetBits(56, 4, uint64(a.Counter&15))
	return g.Frame(idActuators)
}

const (
	idEEC1         = extended | 0x0CF00400 // from the engine, 0
	idActuators    = extended | 0x18FF0203 // proprietary B
	idShiftSensors = extended | 0x0CFF0380 // proprietary B, in place of wired sensors
)
