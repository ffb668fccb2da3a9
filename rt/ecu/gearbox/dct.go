package gearbox

import (
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Identifiers of the frames, as in dct7.dbc. They are the data identifiers of the protection, too.
const (
	idDctClutches     = 0x130
	idDctForks        = 0x131
	idDctSpeeds       = 0x220
	idDctRails        = 0x221
	idDctDriver       = 0x222
	idDctTemperatures = 0x223
	idDctIgnition     = 0x224
	idDctEngine       = 0x225
)

// Gears of the double-clutch gearbox: 0 neutral, 1 to 7, 8 reverse.
const dctReverse = 8

var (
	dctNames = [9]string{"N", "1", "2", "3", "4", "5", "6", "7", "R"}

	// speed of the input shaft over that of the differential: teeth of the pair times the final drive
	dctRatio = [9]float64{
		1: 49. / 13 * 71 / 16, 2: 50. / 22 * 71 / 16, 3: 49. / 32 * 71 / 16, 4: 46. / 41 * 71 / 16,
		5: 40. / 34 * 71 / 22, 6: 39. / 41 * 71 / 22, 7: 35. / 44 * 71 / 22, dctReverse: -50. / 12 * 71 / 22,
	}

	// sleeve and direction of a gear: S13, S24, S57, S6R
	dctSleeve = [9]int{1: 0, 3: 0, 2: 1, 4: 1, 5: 2, 7: 2, 6: 3, dctReverse: 3}
	dctSide   = [9]float64{1: 1, 3: -1, 2: 1, 4: -1, 5: 1, 7: -1, 6: 1, dctReverse: -1}
)

// half returns the half gearbox of a gear: 0 odd gears and K1, 1 even gears, reverse and K2.
func half(gear int) int { return 1 - gear&1 }

const (
	dctOutput = rpm / 16 // rad/s per bit of n_output
	railStep  = 1e-5     // m per bit of DctRails
	dctBar    = 0.01     // bar per bit of DctClutches
	forceStep = 1.0      // N per bit of DctForks

	railNeutral  = 1.2e-3  // a sleeve nearer to neutral is in neutral, m
	railEngaged  = 9.5e-3  // a sleeve beyond is engaged, m
	railEnd      = 11.7e-3 // a fork pushes until here, m
	railSynchron = 1.4e-3  // from here on the ring blocks and the fork pushes with its full force, m
	railDetent   = 6e-3    // within it the detent takes a sleeve to neutral, m
	strongest    = 1500.0  // force of a fork, N
	pushTime     = 0.25    // time after which a fork pushes harder, s
	forkTime     = 1.5     // time in which a fork must reach its end, s

	barPerTorque = 1 / 30.24 // bar per N·m of a clutch
	holdTorque   = 90.0      // torque of a closed clutch above that of the engine, N·m
	engineTorque = 250.0     // largest torque of the engine, N·m
	dctSlip      = 4.0       // slip below which a clutch closes, rad/s
	slowestGear  = 83.0      // least speed of the engine in a gear that the driver wishes: above idle speed, rad/s
	slowEngine   = 70.0      // engine speed below which the clutches open, rad/s
)

// railsOld is the age of DctRails from which on the forks rest.
const railsOld = 30 * time.Millisecond

// dct is the transmission control unit of the car with a double-clutch gearbox. It sleeps until it receives
// DctSpeeds (0x220), and then sends DctClutches (0x130) and DctForks (0x131) every 10 ms. In D it drives through the
// clutch of one half of the gearbox, while it engages the gear that it expects next in the other half. A shift
// exchanges the clutches; the engine is limited meanwhile. With the foot off the brake the car creeps.
//
// Faults that the unit finds in its inputs are stored. In limp-home it holds its gear until the next operation cycle.
// Without DctDriver the accelerator counts as released.
//
// Where DctIgnition tells the state of the ignition, the unit opens its clutches when the ignition ends, goes on for its
// after-run, and then sleeps; it takes part in the network management with NM_TCU (0x511).
type dct struct {
	*unit.Base
	unit.Ignition
	unit.Operation

	kiss, creep         float64 // pressure at which a clutch begins to transmit, bar; creeping torque, N·m
	upLight, upFull     float64 // speeds of the input shaft for an upshift with light and full accelerator, rad/s
	downLight, downFull float64 // the same for a downshift
	push                float64 // force of a fork that synchronises, N
	shiftTime, cut      float64 // shortest time of a change of the engine speed, s; share of the accelerator in an upshift under load

	fresh               bool
	in                  [2]float64 // input shafts, rad/s
	out, engine         float64    // differential and engine, rad/s
	road, roadRate      float64    // filtered speed of the differential, rad/s, and its rate, rad/s2
	torque              float64    // of the engine, N.m
	rail                [4]float64 // m
	lever, rawLever     int
	accelerator         float64 // 0 to 1
	pedal, steady       float64 // accelerator of the previous cycle; time without a change of it, s
	wish                int     // gear of the driver; 0: none
	brake, speed        float64 // bar, km/h
	disc                [2]float64
	speeds, rails       unit.Input
	driver, temperature unit.Input
	ignition, motor     unit.Input
	inputs              map[uint32]*unit.Input // by identifier

	gear int // gear that drives, or to which the clutches are exchanged; 0: none
	from int // gear before; differs during an exchange
	exchange
	share   float64    // share of the accelerator that the engine gets
	ended   float64    // end of the last exchange, s
	closed  bool       // the clutch of the gear does not slip
	still   int        // readings without slip
	want    [2]int     // gear of each half
	force   [4]float64 // of the forks, N
	moving  [4]float64 // time since which a fork pushes, s; NaN: it rests
	stuck   [4]bool    // the fork has pushed for too long
	runs    int        // cycles for which the engine has run away from its clutch
	broken  [2]bool    // the clutch of a half does not close
	slipped float64    // time since which a clutch slips that should be closed, s
	shifts  int
}

func newDct(s *unit.Base) unit.Law {
	d := &dct{
		Base: s, Ignition: unit.NewIgnition(s), kiss: 1.5, creep: 22, push: 400, shiftTime: 0.3, cut: 0.6,
		upLight: 199, upFull: 628, downLight: 115, downFull: 272, // 1900, 6000, 1100 and 2600 rpm
		speeds: unit.Input{Lost: codeShaftsLost, Invalid: codeShaftsInvalid, Timeout: 100 * time.Millisecond},
		rails:  unit.Input{Lost: codeRailsLost, Invalid: codeRailsInvalid, Timeout: 100 * time.Millisecond},
		driver: unit.Input{Lost: codePedalsLost, Invalid: codePedalsInvalid, Timeout: 100 * time.Millisecond},
		motor:  unit.Input{Lost: codeTorqueLost, Invalid: codeEngineInvalid, Timeout: 100 * time.Millisecond},
	}
	d.inputs = map[uint32]*unit.Input{idDctSpeeds: &d.speeds, idDctRails: &d.rails, idDctDriver: &d.driver,
		idDctTemperatures: &d.temperature, idDctIgnition: &d.ignition, idDctEngine: &d.motor}
	d.startDiagnosis()
	return d
}

func (s *dct) Parameters() []unit.Parameter {
	return append([]unit.Parameter{
		unit.NewParameter("kiss", "bar", 0, 10, &s.kiss), unit.NewParameter("creep", "N.m", 0, 100, &s.creep),
		unit.NewParameter("push", "N", 50, strongest, &s.push),
		unit.NewParameter("shift_time", "s", 0.1, 2, &s.shiftTime), unit.NewParameter("torque_cut", "", 0, 1, &s.cut),
		unit.NewParameter("up_light", "rad/s", 0, 1e3, &s.upLight), unit.NewParameter("up_full", "rad/s", 0, 1e3, &s.upFull),
		unit.NewParameter("down_light", "rad/s", 0, 1e3, &s.downLight), unit.NewParameter("down_full", "rad/s", 0, 1e3, &s.downFull),
	}, s.KeyParameters()...)
}

// Receive handles a received frame.
func (s *dct) Receive(f *can.Frame, now time.Time) {
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
	case idDctSpeeds:
		s.in = [2]float64{float64(unit.Signed(f, 16, 16)) * automaticSpeed, float64(unit.Signed(f, 32, 16)) * automaticSpeed}
		s.out = float64(unit.Signed(f, 48, 16)) * dctOutput
		s.fresh = true
		if !s.IsOff() && s.Wake(now) {
			s.begin(now)
		}
	case idDctRails:
		for i := range s.rail {
			s.rail[i] = float64(unit.Signed(f, 16+12*i, 12)) * railStep
		}
	case idDctDriver:
		if s.rawLever = int(unit.Bits(f, 12, 4)); s.rawLever <= leverD {
			s.lever = s.rawLever
		}
		s.accelerator, s.brake = float64(unit.Bits(f, 16, 8))*automaticPedal, float64(unit.Bits(f, 24, 8))*automaticBrake
		s.speed, s.wish = float64(unit.Signed(f, 32, 16))*vehicleSpeed, gearWish(f, 48, 7)
	case idDctEngine:
		s.engine, s.torque = float64(unit.Signed(f, 16, 16))*automaticSpeed, float64(unit.Signed(f, 32, 16))*torqueStep
	case idDctTemperatures:
		for i := range s.disc {
			s.disc[i] = float64(unit.Bits(f, 32+16*i, 16))*oilStep + oilOffset
		}
	case idDctIgnition:
		if s.Turn(int(unit.Bits(f, 12, 3)), now) && s.Awake {
			s.begin(now)
		}
	}
}

// begin begins a drive, and with it an operation cycle.
func (s *dct) begin(now time.Time) {
	s.BeginCycle(now)
	s.gear, s.from, s.closed, s.want, s.exchange = 0, 0, false, [2]int{}, exchange{}
	s.road, s.roadRate, s.share = s.out, 0, 1
	s.ended, s.slipped, s.stuck, s.broken = -1, math.NaN(), [4]bool{}, [2]bool{}
	for i := range s.moving {
		s.moving[i] = math.NaN()
	}
}

// Step runs one cycle of 10 ms.
func (s *dct) Step(t, dt float64) []can.Frame {
	if s.SleepAfterRun() {
		return nil
	}
	s.fresh = s.fresh || s.IsOff() // without speeds the unit goes on to open its clutches
	s.checkInputs(t, dt)
	if s.driver.Late(s.LastCycle) {
		s.accelerator = 0
	}
	if s.motor.Late(s.LastCycle) {
		s.torque = s.accelerator * engineTorque
		if s.closed && s.gear != 0 { // otherwise the clutch would not open at a stop
			s.engine = s.in[half(s.gear)]
		}
	}
	if s.steady += dt; math.Abs(s.accelerator-s.pedal) > pressedPedal {
		s.steady = 0
	}
	s.pedal = s.accelerator
	s.filter(dt)
	if s.fresh {
		s.decide(t)
		if s.still++; s.gear == 0 || math.Abs(s.engine-s.in[half(s.gear)]) > dctSlip {
			s.still = 0
		}
	}
	s.watch(t)
	s.fresh = false
	pressure, mode, limit := s.clutches(t, dt)
	s.force = s.forks(t, pressure)
	if s.Server.Silent(diagnosis.NormalMessages) {
		return nil
	}
	return []can.Frame{s.clutchFrame(pressure, mode, limit), s.forkFrame()}
}

// engaged returns the gear that the sleeves of a half have engaged; 0: none.
func (s *dct) engaged(h int) int {
	for gear := 1; gear <= dctReverse; gear++ {
		if half(gear) == h && s.rail[dctSleeve[gear]]*dctSide[gear] > railEngaged {
			return gear
		}
	}
	return 0
}

// decide chooses the gears of both halves, and starts an exchange of the clutches when it is due.
func (s *dct) decide(t float64) {
	stopped := math.Abs(s.out) < standstill/dctRatio[1]*4
	switch {
	case s.IsOff() || s.lever != leverD && s.lever != leverR:
		s.leave(t)
		if stopped {
			s.want = [2]int{1, 2}
		}
		return
	case s.busy():
		s.goOn(t)
		return
	case s.lever == leverR && s.gear != dctReverse && stopped:
		s.want = [2]int{1, dctReverse}
		s.leave(t)
		if s.engaged(1) == dctReverse && !s.broken[1] {
			s.take(t, dctReverse, dctReverse)
		}
		return
	case !stopped && (s.lever == leverR && s.out > 0 || s.lever == leverD && s.gear == dctReverse): // against the motion
		s.leave(t)
		return
	case s.lever == leverR:
		return
	case !s.rails.Seen() || !s.motor.Seen():
		return
	case s.gear == 0 && s.driven() != 0: // the unit takes over the moving car
		s.gear = s.driven()
		s.from, s.closed, s.want[half(s.gear)] = s.gear, true, s.gear
		return
	case s.gear == 0 || s.gear == dctReverse:
		first := s.lowest()
		s.want[half(first)] = first
		if s.want[1-half(first)] == dctReverse || s.want[1-half(first)] == 0 {
			s.want[1-half(first)] = s.neighbour(first)
		}
		s.leave(t)
		if s.engaged(half(first)) == first && !s.broken[half(first)] {
			s.take(t, first, first)
		}
		return
	}

	s.want[half(s.gear)] = s.gear
	if s.Memory.LimpHome() {
		if stopped && s.broken != [2]bool{} && s.gear != s.lowest() {
			s.leave(t) // the car starts in the lowest gear of the other half
		}
		return
	}
	next := s.scheduled()
	if next != s.gear && (t > s.ended+0.3 || s.aim != s.gear) { // one by way of a bridge gear goes on at once
		step := s.bridge(next)
		s.want[half(step)] = step
		if s.engaged(half(step)) == step {
			s.take(t, step, next)
		}
		return
	}
	if ahead := s.expected(); ahead != s.gear {
		s.want[half(ahead)] = ahead
	}
}

// leave opens the clutches where a gear drives.
func (s *dct) leave(t float64) {
	if s.gear != 0 {
		s.take(t, 0, 0)
	}
}

// driven returns the forward gear that is engaged and turns with the engine of the moving car; 0: none.
func (s *dct) driven() int {
	for h, w := range s.in {
		if gear := s.engaged(h); gear != dctReverse && s.at(gear) > slowEngine && math.Abs(s.engine-w) < dctSlip {
			return gear
		}
	}
	return 0
}

// lowest returns the gear with which the car goes on at its speed.
func (s *dct) lowest() int {
	gear := 1
	if s.wish != 0 {
		gear = s.wished()
	} else {
		for gear < 7 && s.at(gear) > s.up() {
			gear++
		}
	}
	if s.broken[half(gear)] {
		gear = s.neighbour(gear)
	}
	return gear
}

// neighbour returns the gear above, below of the highest.
func (s *dct) neighbour(gear int) int {
	if gear < 7 {
		return gear + 1
	}
	return gear - 1
}

// up returns the speed of the input shaft for an upshift, down that for a downshift, rad/s.
func (s *dct) up() float64 { return s.upLight + s.load()*(s.upFull-s.upLight) }

func (s *dct) down() float64 { return s.downLight + s.load()*(s.downFull-s.downLight) }

// load returns the accelerator between light and full, 0 to 1.
func (s *dct) load() float64 {
	return min(max((s.accelerator-lightPedal)/(fullPedal-lightPedal), 0), 1)
}

// scheduled returns the gear for the speed and the accelerator, or the driver's. The unit chooses while the accelerator
// rests.
func (s *dct) scheduled() int {
	if s.wish != 0 {
		return s.wished()
	}
	to := s.gear
	if s.steady < steadyPedal {
		return to
	}
	for s.closed && to < 7 && s.at(to) > s.up() {
		to++
	}
	for to > 1 && s.at(to) < s.down() {
		to--
	}
	return to
}

// wished returns the driver's gear, or the nearest one whose speed is allowed.
func (s *dct) wished() int {
	to := s.wish
	for to < 7 && s.at(to) > fastestInput {
		to++
	}
	for to > 1 && s.at(to) < slowestGear {
		to--
	}
	return to
}

// expected returns the gear that the unit preselects; the present one: no change.
func (s *dct) expected() int {
	w, middle := s.at(s.gear), (s.up()+s.down())/2
	switch {
	case s.gear == 1, s.gear < 7 && w > middle+50*rpm:
		return s.gear + 1
	case s.gear == 7, w < middle-50*rpm:
		return s.gear - 1
	}
	return s.gear
}

// clutches returns the pressures of K1 and K2, bar, and the limit of the engine.
func (s *dct) clutches(t, dt float64) (bar [2]float64, mode int, limit float64) {
	s.torques(t, dt)
	for i, torque := range s.carry {
		if torque > 0 {
			bar[i] = s.kiss + torque*barPerTorque
		}
	}
	if s.share < 1 {
		return bar, 3, s.accelerator * s.share
	}
	return bar, 0, 1
}

// forks returns the forces of the forks, N. The sleeves of a half move only while its clutch is open.
func (s *dct) forks(t float64, bar [2]float64) (force [4]float64) {
	blind := s.blind()
	for i := range force {
		h, want := i&1, 0
		if gear := s.want[h]; gear != 0 && dctSleeve[gear] == i && !s.broken[h] { // a shaft without a clutch rests
			want = gear
		}
		at, to := s.rail[i], 0.0
		if want != 0 {
			to = dctSide[want]
		}
		other := s.rail[i^2] // of the same half
		arrived := to != 0 && at*to > railEnd || to == 0 && math.Abs(at) < railDetent
		carries := bar[h] > 0 && (s.gear == 0 || half(s.gear) == h || s.busy())
		waits := to != 0 && math.Abs(other) > railNeutral // the other sleeve leaves first
		if s.held(i, t) {
			continue
		}
		if arrived || carries || waits || blind {
			s.moving[i] = math.NaN()
			continue
		}
		if math.IsNaN(s.moving[i]) {
			s.moving[i] = t
		}
		switch {
		case to == 0:
			force[i] = -math.Copysign(s.push/2, at)
		case at*to < -railNeutral: // from the other side through neutral
			force[i] = to * s.push / 2
		case at*to < railSynchron:
			force[i] = to * s.push / 3
		default:
			force[i] = to * min(strongest, s.push*max(1, (t-s.moving[i])/pushTime))
		}
	}
	return force
}

// blind reports whether the positions of the sleeves are not known: then the forks rest.
func (s *dct) blind() bool { return s.rails.Wrong() || s.rails.Age(s.LastCycle) > railsOld }

// held reports whether a fork rests because it has pushed for too long: until the next operation cycle, or until its
// code is cleared.
func (s *dct) held(i int, t float64) bool {
	if s.stuck[i] && s.Memory.Status(codeSleeve)&diagnosis.TestFailed == 0 {
		s.stuck[i], s.moving[i] = false, t
	}
	return s.stuck[i]
}

// clutchFrame packs the gears, the pressures and the limit of the engine.
func (s *dct) clutchFrame(bar [2]float64, mode int, limit float64) can.Frame {
	var g unit.Payload
	g.SetBits(12, 4, uint64(s.gear))
	g.SetBits(16, 4, uint64(s.preselected()))
	g.SetBits(20, 2, uint64(mode))
	g.SetBits(24, 8, uint64(math.RoundToEven(limit/automaticPedal)))
	for i, p := range bar {
		g.SetBits(32+12*i, 12, uint64(math.RoundToEven(min(max(p, 0), 20)/dctBar)))
	}
	return s.Protect(g, idDctClutches)
}

// preselected returns the gear engaged in the half that does not drive.
func (s *dct) preselected() int {
	if s.gear == 0 {
		return s.engaged(0)
	}
	return s.engaged(1 - half(s.gear))
}

// forkFrame packs the forces of the forks.
func (s *dct) forkFrame() can.Frame {
	var g unit.Payload
	for i, f := range s.force {
		g.SetBits(16+12*i, 12, uint64(int64(math.RoundToEven(min(max(f, -strongest), strongest)/forceStep)))&0xFFF)
	}
	return s.Protect(g, idDctForks)
}
