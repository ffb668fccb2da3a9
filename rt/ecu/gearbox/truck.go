package gearbox

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/unit"
)

const (
	truckReduced    = 40  // engine torque limit in TSC1 during an upshift, %
	truckReduceTime = 0.1 // time in which the torque is reduced, s
)

// truck is the transmission control unit of a truck on SAE J1939. It sleeps until it
// receives ShaftSpeeds, and then claims its address, 3. After 250 ms it sends TSC1, ETC1 and the clutch
// pressures every 10 ms and ETC2 every 100 ms. It shifts by the speed of the output shaft, up to the
// gear that TC1 requests. During an upshift, TSC1 limits the engine torque. After a second without
// ShaftSpeeds the unit sleeps again. It stores faults of its inputs; DM1, DM2 and DM4 tell them, DM3 and DM11
// clear them.
type truck struct {
	transmission // its session is mute while another node has the address

	// Speeds of the output shaft for an upshift, above, and for a downshift, below, by gear, rad/s.
	up, down [5]float64

	highest int // highest gear that TC1 allows

	*truckNode
}

func newTruck(s *unit.Base) unit.Law {
	t := &truck{
		transmission: transmission{Base: s, gearTable: &fourSpeedGears},
		up:           [5]float64{1: 45, 2: 80, 3: 120, 4: math.Inf(1)},
		down:         [5]float64{1: math.Inf(-1), 2: 22, 3: 45, 4: 80},
	}
	t.truckNode = newTruckNode(s, func() int { return t.gear })
	return t
}

func (s *truck) Summary() string { return s.transmission.Summary() + s.StoredCodes() }

func (s *truck) Parameters() (list []unit.Parameter) {
	for gear := 1; gear <= 3; gear++ {
		list = append(list, unit.NewParameter(fmt.Sprintf("up_%d", gear), "rad/s", 0, 1e4, &s.up[gear]),
			unit.NewParameter(fmt.Sprintf("down_%d", gear+1), "rad/s", 0, 1e4, &s.down[gear+1]))
	}

	return list
}

// receive handles a received frame.
func (s *truck) Receive(f *can.Frame, now time.Time) {
	switch {
	case s.handled(f, now):
	case f.ID == idTC1:
		if gear := int(unit.Bits(f, 16, 8)) - 125; gear >= 1 && gear <= 4 {
			s.highest = gear
		}
	case f.ID == idShafts && s.measure(f, now):
		s.in, s.out = s.shaft[0], s.shaft[1]
		if s.Wake(now) {
			s.begin()
		}
	}
}

// begin starts a drive in the gear that fits the speed.
func (s *truck) begin() {
	s.highest = 4
	gear := 1
	for gear < 4 && s.out > s.up[gear] {
		gear++
	}
	s.hold(gear)
	s.Logf("0.00 s: gear %d, address 3 claimed", s.gear)
	s.truckNode.begin()
}

// step runs one cycle of 10 ms.
func (s *truck) Step(t, dt float64) []can.Frame {
	s.checkInputs(t, dt)
	if s.fresh && !s.busy() && t > s.engaged+fixed {
		s.Memory.Report(codeTruckGear, math.Abs(s.slip()) > max(wrongSlip, wrongRatio*math.Abs(s.ratios[s.gear]*s.out)), unit.Seconds(dt))
	}
	if s.fresh || s.Memory.LimpHome() {
		s.decide(t)
		s.watch(t)
	}

	s.fresh = false

	mode, percent := s.torque(t)
	list := []can.Frame{tsc1(mode, math.NaN(), percent, s.Counter), s.etc1(true, s.busy(), s.slip()), clutches(s.pressures(t), s.Counter)}
	if s.Counts.Cycles%10 == 1 {
		list = append(list, etc2(s.gear, s.from, s.ratio()))
	}
	return append(list, s.diagnosticFrames()...)
}

// decide starts the next shift when it is due. In limp-home the unit goes to third gear and stays there.
func (s *truck) decide(t float64) {
	to := s.gear
	switch {
	case !s.settled(t):
	case s.Memory.LimpHome():
		to = limpGear
	case s.out < s.down[s.gear] || s.gear > s.highest:
		to--
	case s.gear < s.highest && s.out > s.up[s.gear] && s.brake == 0:
		to++
	}

	if to != s.gear && to >= 1 {
		s.shift(t, to)
	}
}

// torque returns the torque limit of TSC1, %: during an upshift, it is lowered and restored in ramps.
func (s *truck) torque(t float64) (mode uint64, percent float64) {
	if !s.busy() || s.gear < s.from {
		return overrideOff, noLimit
	}
	percent = 100 - (100-truckReduced)*min(1, (t-s.began)/truckReduceTime)
	if !math.IsNaN(s.engaged) {
		percent += (100 - percent) * min(1, (t-s.engaged)/restoreTime)
	}
	return overrideLimit, percent
}

const (
	idClutches = extended | 0x18FF0003 // proprietary B
	truckBar   = 0.1                   // bar per bit
)

// clutches packs the pressures of C1 to C5 and RC, bar.
func clutches(bar [6]float64, counter uint8) can.Frame {
	g := unit.Unset
	for i, p := range bar {
		g.SetValue(8*i, 8, p, truckBar, 0)
	}
	g.SetBits(56, 4, uint64(counter&15))
	return g.Frame(idClutches)
}
