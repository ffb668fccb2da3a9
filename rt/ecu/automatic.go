package ecu

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
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
	protectedCRC = 0x1D
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
	ignitionKey

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
	shafts, pedals, oils input

	cycleStart time.Time // begin of the operation cycle
	sameCycle  bool      // the next wake-up goes on with the operation cycle

	memory              *diagnosis.Memory
	frozenIn, frozenOut frozen
	control             control
}

func newAutomatic(s *session) law {
	return newAutomaticOf(s, &fourSpeedGears, []float64{1: 40, 2: 85, 3: 140}, []float64{1: 205, 2: 370, 3: 600}, nil)
}

// newAutomaticOf returns the unit with a gear table and its speeds for upshifts.
func newAutomaticOf(s *session, gears *gearTable, light, full []float64, eight *eightSpeed) *automatic {
	a := &automatic{
		transmission: transmission{session: s, gearTable: gears}, ignitionKey: ignitionKey{afterRun: 3},
		light: light, full: full, eight: eight,
		cold: 20, hot: 140, oil: warmOil,
		shafts: input{lost: codeShaftsLost, invalid: codeShaftsInvalid, timeout: 100 * time.Millisecond},
		pedals: input{lost: codePedalsLost, invalid: codePedalsInvalid, timeout: 100 * time.Millisecond},
		oils:   input{timeout: time.Second},
	}
	a.startDiagnosis()
	return a
}

func (s *automatic) parameters() (list []Parameter) {
	for gear := 1; gear < s.top(); gear++ {
		name := fmt.Sprintf("up_%d", gear)
		list = append(list, Parameter{name + "_light", "rad/s", 0, 1e4, &s.light[gear]}, Parameter{name + "_full", "rad/s", 0, 1e4, &s.full[gear]})
	}
	list = append(list, Parameter{"T_cold", "degC", -40, 215, &s.cold}, Parameter{"T_hot", "degC", -40, 215, &s.hot},
		Parameter{"after_run", "s", 0, 3600, &s.afterRun}, Parameter{"wake_up", "s", 0, 1e4, &s.wakeUp})
	if s.eight != nil {
		list = append(list, s.eight.parameters()...)
	}
	return list
}

// receive handles a received frame.
func (s *automatic) receive(f *can.Frame, now time.Time) {
	if f.ID == idNMBench {
		if s.server.Deaf(diagnosis.NetworkManagement) {
			return
		}
		s.counts.Received++
		s.heard, s.managed = true, true
		s.asked = s.asked || f.Length > 1 && f.Data[1]&1 != 0
		return
	}
	if s.server.Deaf(diagnosis.NormalMessages) {
		return
	}
	s.counts.Received++
	from := map[uint32]*input{idShaftSpeeds: &s.shafts, idPedals: &s.pedals, idGearboxOil: &s.oils}[f.ID]
	if s.eight != nil && f.ID == idEngineTorque {
		from = &s.eight.input
	}
	missing, ok := from.take(f, now)
	if !ok {
		s.counts.Malformed++
		return
	}
	s.counts.Lost += missing
	switch f.ID {
	case idPedals:
		if s.rawLever = int(bits(f, 12, 4)); s.rawLever <= leverD {
			s.lever = s.rawLever
		}
		s.accelerator, s.brake = float64(bits(f, 16, 8))*automaticPedal, float64(bits(f, 24, 8))*automaticBrake
		s.speed = float64(signed(f, 32, 16)) * vehicleSpeed
		if s.eight != nil {
			s.eight.wish = int(bits(f, 51, 4))
		}
		s.ignite(int(bits(f, 48, 3)), now)
	case idEngineTorque:
		s.eight.torque = float64(signed(f, 16, 16)) * torqueStep
	case idGearboxOil:
		s.rawOil = float64(bits(f, 16, 16))*oilStep + oilOffset
		if s.oilInRange() {
			s.oil = s.rawOil
		}
	case idShaftSpeeds:
		s.in, s.out = float64(signed(f, 16, 16))*automaticSpeed, float64(signed(f, 32, 16))*automaticSpeed
		s.engine = float64(signed(f, 48, 16)) * automaticSpeed
		s.fresh = true
		s.wakeBy(now)
	}
}

// step runs one cycle of 10 ms.
func (s *automatic) step(t, dt float64) []can.Frame {
	if s.sleepAfterRun() {
		return nil
	}
	if s.eight != nil {
		s.eight.measure(s, dt)
	}
	s.checkInputs(t, dt)
	if s.memory.Status(codeOilSensor)&diagnosis.TestFailed != 0 {
		s.oil = warmOil
	}
	if s.fresh || s.memory.LimpHome() {
		s.checkOil(t)
		s.decide(t)
		s.watch(t)
	}
	s.fresh = false
	if s.eight != nil {
		s.eight.step(s, t, dt)
	}
	if s.server.Silent(diagnosis.NormalMessages) {
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
	fmt.Fprintf(s.log, "%s: %.2f s: oil at %.1f degC: %s\n", s.name, t, s.oil, gears)
}

// decide starts the next shift when it is due.
func (s *automatic) decide(t float64) {
	to := s.gear
	stopped := math.Abs(s.out) < standstill
	forward := s.isForward(s.gear)
	switch {
	case s.isOff():
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
		case s.limps || s.memory.LimpHome():
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
	case !s.skips && s.memory.LimpHome():
		return limpGear
	case !s.skips && s.control.gear != 0:
		return s.control.gear
	case s.limps || s.memory.LimpHome():
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
	var g payload
	g.setBits(8, 4, uint64((s.counts.Cycles-1)%15))
	g.setBits(12, 4, uint64(s.gear))
	list, step := s.commanded(t), automaticBar
	if s.eight != nil {
		list, step = s.eight.currents(), solenoidStep
	}
	for i, v := range list {
		g.setValue(16+8*i, 8, v, step, 0)
	}
	f := g.frame(idClutchPressures)
	f.Data[0] = crc1A(&f)
	return f
}

// crc1A returns the checksum of AUTOSAR's E2E profile 1A over the identifier and the bytes behind the
// checksum: CRC-8 with the polynomial of SAE J1850, without initial value and final inversion.
func crc1A(f *can.Frame) (crc uint8) {
	for _, b := range append([]byte{byte(f.ID), byte(f.ID >> 8)}, f.Data[1:8]...) {
		crc ^= b
		for range 8 {
			carry := crc >> 7
			crc = crc<<1 ^ carry*protectedCRC
		}
	}
	return crc
}
