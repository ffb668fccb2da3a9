package gearbox

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Identifiers of the frames, as in automatic.dbc. They are the data identifiers of the protection, too.
const (
	idClutchPressures = 0x120
	idShaftSpeeds     = 0x210
	idPedals          = 0x211
	idGearboxOil      = 0x212
)

// Positions of the gear lever in Pedals.
const (
	leverP = iota
	leverR
	leverN
	leverD
)

const (
	automaticSpeed = 0.25 * rpm // rad/s per bit of ShaftSpeeds
	automaticBar   = 0.1        // bar per bit of ClutchPressures
	automaticPedal = 0.004      // share of the accelerator per bit of Pedals
	automaticBrake = 1.0        // bar per bit of Pedals
	vehicleSpeed   = 0.01       // km/h per bit of Pedals
	oilStep        = 0.1        // degC per bit of GearboxOil
	oilOffset      = -40        // degC at 0

	standstill   = 5   // output speed below which the unit engages a gear of the other direction, rad/s
	lightPedal   = 0.2 // accelerator up to which shifts come at the speeds of light load
	fullPedal    = 0.9 // accelerator from which on they come at those of full load
	coldOverWarm = 1.3 // speed of an upshift with cold oil over that with warm oil
	limpGear     = 3   // forward gear while the oil is too hot, and in limp-home
	coolBelowHot = 20  // by how much hot oil must cool down before the unit uses all gears again, K
	warmOil      = 80  // temperature that the unit takes before and without a sensor, degC
)

// automatic is the transmission control unit of the car with an automatic gearbox. It sleeps until it
// receives ShaftSpeeds (0x210), and then sends ClutchPressures (0x120) every 10 ms. It follows the lever;
// in D it shifts by the speed of the output shaft and the accelerator: a full accelerator shifts up late
// and down early. With cold oil it shifts up later, so that the converter and the engine warm up; while the
// oil is too hot it holds the third gear. It takes the oil as warm until it receives GearboxOil (0x212).
// All its frames are protected by AUTOSAR's E2E profile 1A; a frame with a wrong checksum
// counts as malformed and is not used. After a second without ShaftSpeeds the unit sleeps again.
//
// Where Pedals tells the state of the ignition, the unit opens its clutches when the ignition ends, goes on for
// its after-run, and then sleeps; it takes part in the network management with NM_TCU (0x511).
//
// Faults that the unit finds in its inputs are stored, and lead to limp-home: third gear until the next
// operation cycle. A cycle begins with the ignition, or with the first frames.
//
// The unit of hp8.yaml is the same with other gears and with an eightSpeed.
type automatic struct {
	transmission
	unit.Ignition
	unit.Operation

	// speeds of the output shaft for an upshift at light and at full load, by gear, rad/s
	light, full []float64

	eight *eightSpeed // part of the unit of eight speeds; nil in the one of four

	cold, hot float64 // oil temperatures below and above which the oil is cold and too hot, degC
	oil       float64 // temperature of the oil, degC
	limps     bool    // the oil was too hot and has not cooled down

	fresh                bool    // speeds newer than the last cycle
	lever, rawLever      int     // position of the lever: last valid one, last one
	accelerator          float64 // 0 to 1
	brake                float64 // brake pressure, bar
	speed                float64 // of the car, km/h
	engine               float64 // engine speed, rad/s
	rawOil               float64 // temperature of the oil as sent, degC
	shafts, pedals, oils unit.Input
	inputs               map[uint32]*unit.Input // by identifier

	frozenIn, frozenOut frozen
	control             control
}

func newAutomatic(s *unit.Base) unit.Law {
	return newAutomaticOf(s, &fourSpeedGears, []float64{1: 40, 2: 85, 3: 140}, []float64{1: 205, 2: 370, 3: 600}, nil)
}

// newAutomaticOf returns the unit with a gear table and its speeds for upshifts.
func newAutomaticOf(s *unit.Base, gears *gearTable, light, full []float64, eight *eightSpeed) *automatic {
	a := &automatic{
		transmission: transmission{Base: s, gearTable: gears}, Ignition: unit.NewIgnition(s),
		light: light, full: full, eight: eight,
		cold: 20, hot: 140, oil: warmOil,
		shafts: unit.Input{Lost: codeShaftsLost, Invalid: codeShaftsInvalid, Timeout: 100 * time.Millisecond},
		pedals: unit.Input{Lost: codePedalsLost, Invalid: codePedalsInvalid, Timeout: 100 * time.Millisecond},
		oils:   unit.Input{Timeout: time.Second},
	}
	a.inputs = map[uint32]*unit.Input{idShaftSpeeds: &a.shafts, idPedals: &a.pedals, idGearboxOil: &a.oils}
	if eight != nil {
		a.inputs[idEngineTorque] = &eight.Input
	}
	a.startDiagnosis()
	return a
}

func (s *automatic) Parameters() (list []unit.Parameter) {
	for gear := 1; gear < s.top(); gear++ {
		name := fmt.Sprintf("up_%d", gear)
		list = append(list, unit.NewParameter(name+"_light", "rad/s", 0, 1e4, &s.light[gear]), unit.NewParameter(name+"_full", "rad/s", 0, 1e4, &s.full[gear]))
	}
	list = append(list, unit.NewParameter("T_cold", "degC", -40, 215, &s.cold), unit.NewParameter("T_hot", "degC", -40, 215, &s.hot))
	list = append(list, s.KeyParameters()...)
	if s.eight != nil {
		list = append(list, s.eight.parameters()...)
	}
	return list
}

// Receive handles a received frame.
func (s *automatic) Receive(f *can.Frame, now time.Time) {
	if f.ID == unit.IDNMBench {
		s.ReceiveNM(f)
		return
	}
	if s.Server.Deaf(diagnosis.NormalMessages) {
		return
	}
	s.Counts.Received++
	missing, ok := s.inputs[f.ID].Take(f, now)
	if !ok {
		s.Counts.Malformed++
		return
	}
	s.Counts.Lost += missing
	switch f.ID {
	case idPedals:
		if s.rawLever = int(unit.Bits(f, 12, 4)); s.rawLever <= leverD {
			s.lever = s.rawLever
		}
		s.accelerator, s.brake = float64(unit.Bits(f, 16, 8))*automaticPedal, float64(unit.Bits(f, 24, 8))*automaticBrake
		s.speed = float64(unit.Signed(f, 32, 16)) * vehicleSpeed
		if s.eight != nil {
			s.eight.wish = gearWish(f, 51, s.top())
		}
		s.ignite(int(unit.Bits(f, 48, 3)), now)
	case idEngineTorque:
		s.eight.torque = float64(unit.Signed(f, 16, 16)) * torqueStep
	case idGearboxOil:
		s.rawOil = float64(unit.Bits(f, 16, 16))*oilStep + oilOffset
		if s.oilInRange() {
			s.oil = s.rawOil
		}
	case idShaftSpeeds:
		s.in, s.out = float64(unit.Signed(f, 16, 16))*automaticSpeed, float64(unit.Signed(f, 32, 16))*automaticSpeed
		s.engine = float64(unit.Signed(f, 48, 16)) * automaticSpeed
		s.fresh = true
		s.wakeBy(now)
	}
}

// Step runs one cycle of 10 ms.
func (s *automatic) Step(t, dt float64) []can.Frame {
	if s.SleepAfterRun() {
		return nil
	}
	s.fresh = s.fresh || s.IsOff() // without speeds the unit goes on to open its clutches
	if s.eight != nil {
		s.eight.measure(s, dt)
	}
	s.checkInputs(t, dt)
	if s.Memory.Status(codeOilSensor)&diagnosis.TestFailed != 0 {
		s.oil = warmOil
	}
	if s.fresh || s.Memory.LimpHome() {
		s.checkOil(t)
		s.decide(t)
		s.watch(t)
	}
	s.fresh = false
	if s.eight != nil {
		s.eight.step(s, t, dt)
	}
	if s.Server.Silent(diagnosis.NormalMessages) {
		return nil
	}
	list := []can.Frame{s.clutchPressures(t)}
	if s.eight != nil {
		list = append(list, s.engineRequest())
	}
	return list
}

// checkOil limits the unit to one forward gear while the oil is too hot.
func (s *automatic) checkOil(t float64) {
	limps, gears := s.oil > s.hot || s.limps && s.oil > s.hot-coolBelowHot, "all gears"
	if limps == s.limps {
		return
	}
	if s.limps = limps; limps {
		gears = "third gear only"
	}
	s.Logf("%.2f s: oil at %.1f degC: %s", t, s.oil, gears)
}

// decide starts the next shift when it is due.
func (s *automatic) decide(t float64) {
	to := s.gear
	stopped := math.Abs(s.out) < standstill
	forward := s.isForward(s.gear)
	switch {
	case s.IsOff():
		to = neutral
	case s.control.state == checkRunning:
		s.checkClutches(t)
		return
	case s.lever == leverD && forward:
		if s.settled(t) {
			to = s.scheduled()
		}
	case s.lever == leverD && (stopped || s.out > 0):
		for to = 1; to < s.top() && s.out > s.up(to); {
			to++
		}
		switch {
		case s.limps || s.Memory.LimpHome():
			to = limpGear
		case s.eight != nil && s.eight.wish != 0:
			to = s.eight.wished(s)
		}
	case s.lever == leverR && (stopped || s.out < 0):
		to = s.reverse()
	case s.lever != leverD || !forward:
		to = neutral
	}

	if to != s.gear {
		s.shift(t, to)
	}
}

// scheduled returns the gear for the speed and the accelerator: the present one, or one that a shift reaches from it.
func (s *automatic) scheduled() int {
	to := s.gear
	switch {
	case !s.skips && s.Memory.LimpHome():
		return limpGear
	case !s.skips && s.control.gear != 0:
		return s.control.gear
	case s.limps || s.Memory.LimpHome():
		to = limpGear
	case s.control.gear != 0:
		to = s.control.gear
	case s.eight != nil && s.eight.wish != 0:
		to = s.eight.wished(s)
	case s.eight != nil && s.eight.steady < steadyPedal:
		return s.gear
	default:
		for to < s.top() && s.out > s.up(to) {
			to++
		}
		for to > 1 && s.out < s.downShare*s.up(to-1) {
			to--
		}
	}
	if to != s.gear {
		to = s.toward(s.gear, to)
	}
	return to
}

// up returns the speed of the output shaft for the upshift from a gear, rad/s.
func (s *automatic) up(gear int) float64 {
	load := min(max((s.accelerator-lightPedal)/(fullPedal-lightPedal), 0), 1)
	up := s.light[gear] + load*(s.full[gear]-s.light[gear])
	if s.oil < s.cold {
		up = min(up*coldOverWarm, max(up, s.full[gear]))
	}
	return up
}

// commanded returns the pressures of the elements, bar: C1 to C5 and RC, or A to E and TCC.
func (s *automatic) commanded(t float64) [6]float64 {
	if s.eight != nil {
		return s.eight.valve
	}
	return s.pressures(t)
}

// clutchPressures packs the gear and the pressures of the elements, or SolenoidCurrents with the currents of hp8.
func (s *automatic) clutchPressures(t float64) can.Frame {
	var g unit.Payload
	g.SetBits(12, 4, uint64(s.gear))
	list, step := s.commanded(t), automaticBar
	if s.eight != nil {
		list, step = s.eight.currents(), solenoidStep
	}
	for i, v := range list {
		g.SetValue(16+8*i, 8, v, step, 0)
	}
	return s.Protect(g, idClutchPressures)
}

// gearWish returns the driver's gear, 4 bits from a position of a frame on; 0: none, or a value that names no forward gear.
func gearWish(f *can.Frame, at, top int) int {
	if wish := int(unit.Bits(f, at, 4)); wish <= top {
		return wish
	}
	return 0
}
