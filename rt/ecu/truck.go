package ecu

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"
)

const (
	truckReduced    = 40  // engine torque limit in TSC1 during an upshift, %
	truckReduceTime = 0.1 // time in which the torque is reduced, s

	truckClaim = 250 * time.Millisecond // time from the address claim to the first frame
)

// truckName is the unit's NAME: function 3, a transmission, identity 3333, maker 0.
const truckName = 3<<40 | 3333

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

	fresh   bool    // speeds newer than the last cycle
	highest int     // highest gear that TC1 allows
	brake   float64 // brake pedal, %

	shafts rollingCounter // counter of ShaftSpeeds

	truckTrouble
}

func newTruck(s *session) law {
	s.delay = truckClaim
	t := &truck{
		transmission: transmission{session: s, gearTable: &fourSpeedGears},
		up:           [5]float64{1: 45, 2: 80, 3: 120, 4: math.Inf(1)},
		down:         [5]float64{1: math.Inf(-1), 2: 22, 3: 45, 4: 80},
	}
	t.startDiagnosis()
	return t
}

func (s *truck) summary() string { return s.transmission.summary() + storedCodes(s.memory) }

func (s *truck) parameters() (list []Parameter) {
	for gear := 1; gear <= 3; gear++ {
		list = append(list, Parameter{fmt.Sprintf("up_%d", gear), "rad/s", 0, 1e4, &s.up[gear]},
			Parameter{fmt.Sprintf("down_%d", gear+1), "rad/s", 0, 1e4, &s.down[gear+1]})
	}

	return list
}

// truckIdentifiers lists the identifiers that the unit receives: the groups of the bench, claims of its
// address, and requests for claims from any node.
func truckIdentifiers() []uint32 {
	list := []uint32{idShafts, idTC1, idEBC1, idClaim}
	for source := range uint32(255) {
		list = append(list, extended|0x18EAFF00|source, extended|0x18EA0300|source)
	}
	return list
}

// receive handles a received frame.
func (s *truck) receive(f *can.Frame, now time.Time) {
	if f.ID == idClaim {
		s.contend(f)
		return
	}

	if f.ID&0x3FF0000 == 0xEA0000 {
		s.answer(f, now)
		return
	}

	if !s.countFrame(f) {
		return
	}
	switch f.ID {
	case idTC1:
		if gear := int(bits(f, 16, 8)) - 125; gear >= 1 && gear <= 4 {
			s.highest = gear
		}
	case idEBC1:
		s.pedal = now
		if raw := bits(f, 8, 8); raw <= 250 {
			s.brake = float64(raw) * 0.4
		}
	case idShafts:
		s.measure(f, now)
	}
}

// answer answers a request for the address claim or for a diagnostic message.
func (s *truck) answer(f *can.Frame, now time.Time) {
	switch pgn := uint32(bits(f, 0, 24)); {
	case f.Length < 3 || !s.awake:
	case pgn == 0xEE00:
		_ = s.claim() // a lost claim is requested again
	default:
		s.messages.Request(pgn, byte(f.ID), f.ID>>8&0xFF == 0xFF, sinceEpoch(now))
	}
}

func (s *truck) measure(f *can.Frame, now time.Time) {
	if !s.awake && f.Data[7]&15 == 0 {
		s.shafts = rollingCounter{}
	}
	s.counts.Lost += s.shafts.countMissing(f.Data[7])
	in, ok1 := speedOf(f, 0)
	out, ok2 := speedOf(f, 16)
	s.valid, s.lastShaft = [2]bool{ok1, ok2}, now
	if !ok1 || !ok2 {
		return
	}
	s.in, s.out, s.fresh = in, out, true
	if s.wake(now) {
		s.begin()
	}
}

// begin starts a drive in the gear that fits the speed.
func (s *truck) begin() {
	s.mute, s.highest = false, 4
	s.memory.BeginCycle()
	gear := 1
	for gear < 4 && s.out > s.up[gear] {
		gear++
	}
	s.hold(gear)
	fmt.Fprintf(s.log, "truck: 0.00 s: gear %d, address 3 claimed\n", s.gear)
	_ = s.claim()
}

// claim sends the address claim, or "cannot claim" without an address.
func (s *truck) claim() error {
	id := uint32(idClaim)
	if s.mute {
		id = idNoAddress
	}
	return s.send(payload(truckName).frame(id))
}

// contend defends the address against a higher NAME, and loses it to a lower one.
func (s *truck) contend(f *can.Frame) {
	switch {
	case f.Length != 8 || !s.awake:
	case s.mute:
	case binary.LittleEndian.Uint64(f.Data[:]) > truckName:
		_ = s.claim()
	default:
		s.mute = true
		fmt.Fprintln(s.log, "truck: another node has address 3; the unit stops sending")
		_ = s.claim()
	}
}

// step runs one cycle of 10 ms.
func (s *truck) step(t, dt float64) []can.Frame {
	s.checkInputs(t, dt)
	if s.fresh || s.memory.LimpHome() {
		s.decide(t)
		s.watch(t)
	}

	s.fresh = false

	limit, percent := s.torque(t)
	list := []can.Frame{tsc1(limit, percent, s.counter), s.etc1(), clutches(s.pressures(t), s.counter)}
	if s.counts.Cycles%10 == 1 {
		list = append(list, s.etc2())
	}
	return append(list, s.diagnosticFrames()...)
}

// decide starts the next shift when it is due. In limp-home the unit goes to third gear and stays there.
func (s *truck) decide(t float64) {
	to := s.gear
	switch {
	case !s.settled(t):
	case s.memory.LimpHome():
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
func (s *truck) torque(t float64) (limit bool, percent float64) {
	if !s.busy() || s.gear < s.from {
		return false, noLimit
	}
	percent = 100 - (100-truckReduced)*min(1, (t-s.began)/truckReduceTime)
	if !math.IsNaN(s.engaged) {
		percent += (100 - percent) * min(1, (t-s.engaged)/restoreTime)
	}
	return true, percent
}

// etc1 packs electronic transmission controller 1: shaft speeds and whether a shift is under way.
func (s *truck) etc1() can.Frame {
	g := unset
	g.setBits(0, 6, 1) // driveline engaged, no lock-up, no shift
	g.setBit(4, s.busy())
	g.setValue(8, 16, s.out/rpm, rpmBit, 0)
	slip := 0.0
	if s.in > 0 {
		slip = min(math.Abs(s.slip())/s.in*100, 100)
	}
	g.setValue(24, 8, slip, 0.4, 0)
	g.setValue(40, 16, s.in/rpm, rpmBit, 0)
	return g.frame(idETC1)
}

// etc2 packs electronic transmission controller 2: the gears. The range is "D ".
func (s *truck) etc2() can.Frame {
	g := unset
	g.setValue(0, 8, float64(s.gear), 1, -125)
	g.setValue(8, 16, s.ratio(), 0.001, 0)
	g.setValue(24, 8, float64(s.from), 1, -125)
	const drive = 'D' | ' '<<8
	g.setBits(32, 16, drive)
	g.setBits(48, 16, drive)
	return g.frame(idETC2)
}

// Identifiers of the truck's frames, of 29 bits: SAE J1939. The unit has address 3.
const (
	extended = 1 << 31

	idTSC1      = extended | 0x0C000003 // to the engine, 0
	idETC1      = extended | 0x0CF00203
	idETC2      = extended | 0x18F00503
	idClutches  = extended | 0x18FF0003 // proprietary B
	idTC1       = extended | 0x0C010305 // from the shift console, 5
	idEBC1      = extended | 0x18F0010B
	idShafts    = extended | 0x0CFF0180 // proprietary B, in place of wired sensors
	idClaim     = extended | 0x18EEFF03 // address claimed, from 3
	idNoAddress = extended | 0x18EEFFFE // cannot claim
)

const (
	rpm      = math.Pi / 30 // rad/s
	rpmBit   = 0.125        // of speeds, rpm
	shaftBit = rpmBit * rpm // the same, rad/s
	noLimit  = 125          // largest torque limit, %: no limit
	truckBar = 0.1          // bar per bit
)

// tsc1 packs torque/speed control 1: a torque limit, %, or none if limit is false. Its checksum of three
// bits covers the seven bytes before it, the counter and the identifier.
func tsc1(limit bool, percent float64, counter uint8) can.Frame {
	g := unset
	mode := uint64(0)
	if limit {
		mode = 3
	}
	g.setBits(0, 2, mode)
	g.setBits(4, 2, 1) // priority high
	g.setBits(8, 16, 0xFAFF)
	g.setValue(24, 8, percent, 1, -125)
	g.setBits(32, 8, 0)
	g.setBits(40, 4, 0)
	g.setBits(56, 4, uint64(counter&7))
	f := g.frame(idTSC1)
	sum := uint(counter & 7)
	for _, b := range f.Data[:7] {
		sum += uint(b)
	}
	for id := uint(idTSC1 &^ extended); id > 0; id >>= 8 {
		sum += id & 0xFF
	}
	f.Data[7] = byte((sum>>6&3+sum>>3+sum)&7)<<4 | counter&7
	return f
}

// clutches packs the pressures of C1 to C5 and RC, bar.
func clutches(bar [6]float64, counter uint8) can.Frame {
	g := unset
	for i, p := range bar {
		g.setValue(8*i, 8, p, truckBar, 0)
	}
	g.setBits(56, 4, uint64(counter&15))
	return g.frame(idClutches)
}

// speedOf reads a speed of 16 bits, rad/s; ok is false if the speed is not available.
func speedOf(f *can.Frame, at int) (w float64, ok bool) {
	raw := bits(f, at, 16)
	return float64(raw) * shaftBit, raw <= 0xFAFF
}
