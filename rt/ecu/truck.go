package ecu

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"
)

// Gears of the truck's gearbox, as in truck.yaml.
var (
	truckRatio = [5]float64{1: 2.86, 2: 1.62, 3: 1, 4: 0.72} // input over output speed

	// Pressures of C1, C2, C3, C4, C5, RC, bar.
	truckBars = [5][6]float64{{}, {8, 0, 0, 0, 18, 0}, {8, 0, 0, 9, 18, 0}, {8, 0, 9, 9, 0, 0}, {0, 6, 9, 9, 0, 0}}
)

// A shift, s: when the on-coming clutch has its pressure, when the off-going one begins
// to lose its own, and when it has lost it; and the engine's torque meanwhile.
const (
	truckFill    = 0.5
	truckHold    = 0.1
	truckRelease = 0.3
	truckReduced = 40  // %, what TSC1 leaves of the torque
	truckCut     = 0.1 // s, in which it is taken away
	truckReturn  = 0.2 // and given back
	truckDwell   = 1.0 // at most, between shifts
	truckSlip    = 2.0 // rad/s, below which the new gear is engaged
	truckClaim   = 250 * time.Millisecond
)

// truckName is the unit's NAME: function 3, a transmission, identity 3333, maker 0.
const truckName = 3<<40 | 3333

// truck is the transmission control unit of a truck on SAE J1939. It sleeps until it
// hears ShaftSpeeds, claims its address, 3, and 250 ms later sends TSC1, ETC1 and the
// clutch pressures every 10 ms and ETC2 every 100 ms. It shifts by the speed of the output
// shaft, up to the gear that TC1 asks for; while it shifts up, TSC1 limits the engine.
// After a second without ShaftSpeeds it sleeps again.
type truck struct {
	*session // mute when another node has the address

	// Speeds of the output shaft, rad/s, above which the gear is left upwards and below
	// which downwards.
	up, down [5]float64

	in, out float64 // shafts, rad/s
	fresh   bool
	highest int     // gear that TC1 allows
	brake   float64 // pedal, %

	gear, from int     // from differs while the pressures change
	began      float64 // s, of the shift
	engaged    float64 // s, when the slip had gone; NaN before
	readings   int     // of vanished slip
	shifts     int

	shafts rolling // of ShaftSpeeds
}

func newTruck(s *session) law {
	s.delay = truckClaim
	return &truck{
		session: s,
		up:      [5]float64{1: 45, 2: 80, 3: 120, 4: math.Inf(1)},
		down:    [5]float64{1: math.Inf(-1), 2: 22, 3: 45, 4: 80},
	}
}

func (s *truck) parameters() (list []Parameter) {
	for gear := 1; gear <= 3; gear++ {
		list = append(list, Parameter{fmt.Sprintf("up_%d", gear), "rad/s", 0, 1e4, &s.up[gear]},
			Parameter{fmt.Sprintf("down_%d", gear+1), "rad/s", 0, 1e4, &s.down[gear+1]})
	}

	return list
}

// truckHears lists the identifiers that concern the unit: the bench's groups, claims of
// its address, and requests for claims from anybody.
func truckHears() []uint32 {
	list := []uint32{idShafts, idTC1, idEBC1, idClaim}
	for source := range uint32(255) {
		list = append(list, extended|0x18EAFF00|source, extended|0x18EA0300|source)
	}
	return list
}

func (s *truck) result() string { return fmt.Sprintf("; %d shifts, gear %d", s.shifts, s.gear) }

// hear takes a frame from the bus.
func (s *truck) hear(f *can.Frame, now time.Time) {
	if f.ID == idClaim {
		s.contend(f)
		return
	}

	if f.ID&0x3FF0000 == 0xEA0000 {
		if f.Length >= 3 && bits(f, 0, 24) == 0xEE00 && s.awake {
			_ = s.claim() // what the bus does not take is asked for again
		}
		return
	}

	if !s.accept(f) {
		return
	}
	switch f.ID {
	case idTC1:
		if gear := int(bits(f, 16, 8)) - 125; gear >= 1 && gear <= 4 {
			s.highest = gear
		}
	case idEBC1:
		if raw := bits(f, 8, 8); raw <= 250 {
			s.brake = float64(raw) * 0.4
		}
	case idShafts:
		s.measure(f, now)
	}
}

func (s *truck) measure(f *can.Frame, now time.Time) {
	if !s.awake && f.Data[7]&15 == 0 {
		s.shafts = rolling{}
	}
	s.counts.Lost += s.shafts.missing(f.Data[7])
	in, ok1 := speedOf(f, 0)
	out, ok2 := speedOf(f, 16)
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
	s.gear, s.engaged, s.mute, s.highest = 1, 0, false, 4
	for s.gear < 4 && s.out > s.up[s.gear] {
		s.gear++
	}
	s.from = s.gear
	fmt.Fprintf(s.log, "truck: 0.00 s: gear %d, address 3 claimed\n", s.gear)
	_ = s.claim()
}

// claim claims the address, or says that the unit has none.
func (s *truck) claim() error {
	id := uint32(idClaim)
	if s.mute {
		id = idNoAddress
	}
	return s.send(group(truckName).frame(id))
}

// contend defends the address against a higher NAME, and leaves it to a lower one.
func (s *truck) contend(f *can.Frame) {
	switch {
	case f.Length != 8 || !s.awake:
	case s.mute:
	case binary.LittleEndian.Uint64(f.Data[:]) > truckName:
		_ = s.claim()
	default:
		s.mute = true
		fmt.Fprintln(s.log, "truck: another node has address 3: nothing is sent any more")
		_ = s.claim()
	}
}

// step is one cycle of 10 ms.
func (s *truck) step(t, _ float64) []can.Frame {
	if s.fresh {
		s.decide(t)
		s.watch(t)
	}

	s.fresh = false

	limit, percent := s.torque(t)
	list := []can.Frame{tsc1(limit, percent, s.count), s.etc1(), clutches(s.pressures(t), s.count)}
	if s.counts.Cycles%10 == 1 {
		list = append(list, s.etc2())
	}
	return list
}

// busy says that a shift is under way.
func (s *truck) busy() bool { return s.gear != s.from }

// decide starts the next shift when it is due.
func (s *truck) decide(t float64) {
	to := s.gear
	switch {
	case s.busy() || t < s.began+truckDwell:
	case s.out < s.down[s.gear] || s.gear > s.highest:
		to--
	case s.gear < s.highest && s.out > s.up[s.gear] && s.brake == 0:
		to++
	}

	if to != s.gear && to >= 1 {
		fmt.Fprintf(s.log, "truck: %.2f s: shift %d -> %d\n", t, s.gear, to)
		s.from, s.gear, s.began, s.engaged, s.readings = s.gear, to, t, math.NaN(), 0
		s.shifts++
	}
}

// watch ends a shift: the slip has vanished for three readings or was given its time,
// the pressures are what they shall be, and the engine has its torque back.
func (s *truck) watch(t float64) {
	if !s.busy() {
		return
	}
	if math.IsNaN(s.engaged) {
		if s.readings++; math.Abs(s.slip()) > truckSlip {
			s.readings = 0
		}
		if s.readings >= 3 || t >= s.began+truckDwell {
			s.engaged = t
		}
	}

	if t >= s.began+truckFill && t >= s.engaged+truckReturn {
		fmt.Fprintf(s.log, "truck: %.2f s: gear %d engaged, ratio %.2f\n", t, s.gear, s.ratio())
		s.from = s.gear
	}
}

// slip is by how much the input shaft is faster than the gear wants it, rad/s.
func (s *truck) slip() float64 { return s.in - truckRatio[s.gear]*s.out }

// ratio is that of the shafts, as measured; of the gear while they stand.
func (s *truck) ratio() float64 {
	if s.out < 1 {
		return truckRatio[s.gear]
	}
	return s.in / s.out
}

// torque is what TSC1 says: while the unit shifts up a limit, %, that is taken down and
// given back by and by.
func (s *truck) torque(t float64) (limit bool, percent float64) {
	if !s.busy() || s.gear < s.from {
		return false, noLimit
	}
	percent = 100 - (100-truckReduced)*min(1, (t-s.began)/truckCut)
	if !math.IsNaN(s.engaged) {
		percent += (100 - percent) * min(1, (t-s.engaged)/truckReturn)
	}
	return true, percent
}

// pressures are those of the clutches, bar.
func (s *truck) pressures(t float64) (bar [6]float64) {
	since := t - s.began
	for i := range bar {
		off, on := truckBars[s.from][i], truckBars[s.gear][i]
		switch {
		case !s.busy() || off == on:
			bar[i] = on
		case on > off:
			bar[i] = off + (on-off)*min(1, since/truckFill)
		default:
			bar[i] = off + (on-off)*min(max((since-truckHold)/(truckRelease-truckHold), 0), 1)
		}
	}

	return bar
}

// etc1 is electronic transmission controller 1: the shafts, and whether it shifts.
func (s *truck) etc1() can.Frame {
	g := unset
	g.raw(0, 6, 1) // driveline engaged, no lock-up, no shift
	g.flag(4, s.busy())
	g.value(8, 16, s.out/rpm, rpmBit, 0)
	slip := 0.0
	if s.in > 0 {
		slip = min(math.Abs(s.slip())/s.in*100, 100)
	}
	g.value(24, 8, slip, 0.4, 0)
	g.value(40, 16, s.in/rpm, rpmBit, 0)
	return g.frame(idETC1)
}

// etc2 is electronic transmission controller 2: the gears. The range is "D ".
func (s *truck) etc2() can.Frame {
	g := unset
	g.value(0, 8, float64(s.gear), 1, -125)
	g.value(8, 16, s.ratio(), 0.001, 0)
	g.value(24, 8, float64(s.from), 1, -125)
	const drive = 'D' | ' '<<8
	g.raw(32, 16, drive)
	g.raw(48, 16, drive)
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
	idShafts    = extended | 0x0CFF0180 // proprietary B, from what stands for the wiring
	idClaim     = extended | 0x18EEFF03 // address claimed, from 3
	idNoAddress = extended | 0x18EEFFFE // cannot claim
)

const (
	rpm      = math.Pi / 30 // rad/s
	rpmBit   = 0.125        // of speeds, rpm
	shaftBit = rpmBit * rpm // the same, rad/s
	noLimit  = 125          // %, the largest torque that can be asked for
	truckBar = 0.1          // bar per bit
)

// tsc1 is torque/speed control 1: at most this torque, %, or with limit false nothing.
// Its checksum, of three bits, is over the seven bytes before it, the counter and the
// identifier.
func tsc1(limit bool, percent float64, counter uint8) can.Frame {
	g := unset
	mode := uint64(0)
	if limit {
		mode = 3
	}
	g.raw(0, 2, mode)
	g.raw(4, 2, 1) // priority high
	g.raw(8, 16, 0xFAFF)
	g.value(24, 8, percent, 1, -125)
	g.raw(32, 8, 0)
	g.raw(40, 4, 0)
	g.raw(56, 4, uint64(counter&7))
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
		g.value(8*i, 8, p, truckBar, 0)
	}
	g.raw(56, 4, uint64(counter&15))
	return g.frame(idClutches)
}

// speedOf reads a speed of 16 bits, rad/s; ok is false where the frame says that there
// is none.
func speedOf(f *can.Frame, at int) (w float64, ok bool) {
	raw := bits(f, at, 16)
	return float64(raw) * shaftBit, raw <= 0xFAFF
}
