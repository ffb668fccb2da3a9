package gearbox

import (
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// Identifiers of the frames that hp8.dbc has beside those of automatic.dbc.
const (
	idEngineRequest = 0x121
	idEngineTorque  = 0x213
)

// Shift elements in the order of ClutchPressures: A, B, C, D, E, and the lock-up clutch of the converter.
const lockUp = 5

const (
	torqueStep = 0.1   // N.m per bit of EngineTorque
	limitStep  = 0.004 // share of the throttle per bit of EngineRequest

	fullTorque   = 450  // of the engine, N.m
	inputInertia = 0.31 // of engine, converter and input shaft, kg.m2
	stallGain    = 2.0  // turbine over pump torque of the converter at speed ratio 0
	coupling     = 0.86 // speed ratio from which the two torques are equal

	idleTorque   = 20.0  // input torque that moves no shift by itself, N.m
	torquePhase  = 0.12  // time in which the torque goes from the off-going to the on-coming element, s
	coastTime    = 1.0   // longest planned time of a shift while coasting, s
	syncTime     = 0.06  // the same at the end of a shift in which the engine finds its speed, s
	holdMargin   = 1.1   // pressure of an element that holds its torque over the least one
	sameRatio    = 0.02  // difference between the measured ratio and that of the gear, share
	closeTime    = 0.1   // time from the end of the slip to full pressure, s
	engineShare  = 0.7   // part of the input torque that accelerates the input shaft in a short shift
	easeTime     = 0.5   // longest shift in which the output keeps the rest, s; a longer one hurries with all of it
	syncRate     = 900.0 // largest rate of the input speed that a shift plans, rad/s2
	slipGain     = 2.0   // torque per slip beyond the plan, N.m.s/rad
	limitGrows   = 0.3   // time from the end of the slip to the full throttle, s
	fastestInput = 650.0 // largest speed of the input shaft in a gear that the driver wishes, rad/s
	slowestInput = 75.0  // least speed of it, rad/s

	lockUpBar     = 14.0      // pressure of the locked lock-up clutch, bar
	lockUpTime    = 0.5       // time in which it closes, s
	lockUpOpens   = 0.8       // share of the speed at which it closes
	lockUpSlip    = 10.0      // slip that a closed one must not have, rad/s
	startedEngine = 500 * rpm // speed of an engine that runs by itself, rad/s
	longestStart  = 1.5       // time with the starter, s
	releasedBrake = 5.0       // brake pressure below which the engine starts, bar
	pressedBrake  = 10.0      // brake pressure from which it stops, bar
	drivenSpeed   = 10.0      // speed of the car between two stops of the engine, km/h
	pressedPedal  = 0.01      // accelerator at which the engine starts, and change of it that is a movement
	steadyPedal   = 0.05      // time without a movement of the accelerator before the unit chooses a gear, s
)

// eightSpeedGears are those of hp8.yaml, by the teeth of its planetary sets.
var eightSpeedGears = gearTable{
	names:  []string{"N", "1", "2", "3", "4", "5", "6", "7", "8", "R"},
	ratios: []float64{1: 4.714286, 2: 3.142857, 3: 2.106383, 4: 1.666667, 5: 1.284694, 6: 1, 7: 0.839161, 8: 0.666667, 9: -3.316770},
	held: [][6]float64{
		{18, 18, 0, 0, 0},
		{18, 18, 18, 0, 0}, {18, 18, 0, 0, 18}, {0, 18, 18, 0, 18}, {0, 18, 0, 18, 18},
		{0, 18, 18, 18, 0}, {0, 0, 18, 18, 18}, {18, 0, 18, 18, 0}, {18, 0, 0, 18, 18},
		{18, 18, 0, 18, 0},
	},
	downShare: 0.75, skips: true,
}

var (
	// share is the torque of each element over the input torque, by gear: statics of the planetary sets.
	share = [9][5]float64{
		1: {1.2381, 2.4762, 1, 0, 0}, 2: {0.4921, 1.6508, 0, 0, 0.6667}, 3: {0, 1.1064, 0.6596, 0, 1.1064},
		4: {0, 0.6667, 0, 0.3974, 0.5143}, 5: {0, 0.2847, 0.573, 0.7427, 0}, 6: {0, 0, 1, 1, 0.3833},
		7: {0.1608, 0, 0.5175, 0.8392, 0}, 8: {0.3333, 0, 0, 0.6667, 0.4111},
	}
	perBar = [5]float64{90, 142.8, 60.5, 90.7, 65.5} // torque of A to E, N.m/bar
)

// Kinds of a shift between two forward gears.
const (
	byClutch = iota // the on-coming element moves the input shaft
	byEngine        // the engine moves it, and the off-going element holds it back
)

// eightSpeed is what the unit of eight speeds has beside that of four: shifts from clutch to clutch, requests to
// the engine, the lock-up clutch, the driver's gear, and start-stop.
//
// A shift in which the torque of the engine moves the input shaft away from the new speed begins with the hand-over of
// the torque; then the on-coming element moves the shaft (power-on upshift, coasting downshift). In the others the
// off-going element lets the shaft move, and the on-coming one closes at the new speed (power-on downshift).
type eightSpeed struct {
	unit.Input         // frames of EngineTorque
	torque     float64 // of the engine, N.m
	wish       int     // gear of the driver; 0: none

	pedal  float64 // accelerator of the previous cycle
	steady float64 // time without a change of it, s

	pistons
	stepped time.Time  // time of the previous cycle
	bar     [6]float64 // pressures of this cycle above the kiss point, bar
	fill    float64    // time in which the on-coming element fills, s
	kind    int        // of the shift
	on, off int        // its elements
	began   float64    // start of the shift at hand, s
	slip    float64    // slip at its start, rad/s
	plan    float64    // planned time of the change of the input speed, s
	sync    float64    // time at which the on-coming element closes, s; NaN before
	offBar  float64    // pressure of the off-going element then, bar
	onBar   float64    // pressure of the on-coming one at the end of the slip, bar
	limit   float64    // share of the throttle that the unit allows

	lockSpeed float64 // input speed from which the lock-up clutch closes, rad/s
	locks     bool    // it closes or is closed
	locked    float64 // time with full pressure, s

	startStop  float64 // 1: the engine stops at standstill
	stopDelay  float64 // standstill before it stops, s
	still      float64 // time at standstill, s
	driven     bool    // the car was driven since the last stop
	engineStop bool    // the unit has stopped the engine
	starting   float64 // time of the starter, s; 0: off
	stops      int     // number of stops
	shiftTime  float64 // shortest planned time of a change of the input speed, s
	cut        float64 // share of the throttle during a power-on upshift
}

func newEightSpeed(s *unit.Base) unit.Law {
	e := &eightSpeed{
		Input:   unit.Input{Lost: codeTorqueLost, Invalid: codeTorqueInvalid, Timeout: 100 * time.Millisecond},
		pistons: pistons{kiss: 1, fillTime: 0.13},
		limit:   1, lockSpeed: 130, startStop: 1, stopDelay: 1, shiftTime: 0.3, cut: 0.5, sync: math.NaN(), began: -1,
	}
	return newAutomaticOf(s, &eightSpeedGears,
		[]float64{1: 33, 2: 50, 3: 75, 4: 94, 5: 122, 6: 157, 7: 187},
		[]float64{1: 133, 2: 200, 3: 298, 4: 377, 5: 489, 6: 628, 7: 748}, e)
}

func (e *eightSpeed) parameters() []unit.Parameter {
	return []unit.Parameter{
		unit.NewParameter("lock_up", "rad/s", 0, 1e4, &e.lockSpeed), unit.NewParameter("shift_time", "s", 0.1, 2, &e.shiftTime), unit.NewParameter("torque_cut", "", 0, 1, &e.cut),
		unit.NewParameter("kiss", "bar", 0, 5, &e.kiss), unit.NewParameter("fill_time", "s", 0, 1, &e.fillTime),
		unit.NewParameter("start_stop", "", 0, 1, &e.startStop), unit.NewParameter("stop_delay", "s", 0, 60, &e.stopDelay),
	}
}

// measure takes the inputs of a cycle.
func (e *eightSpeed) measure(s *automatic, dt float64) {
	if e.steady += dt; math.Abs(s.accelerator-e.pedal) > pressedPedal {
		e.steady = 0
	}
	e.pedal = s.accelerator
	if e.Late(s.LastCycle) {
		e.torque = s.accelerator * fullTorque
	}
}

// takeOver takes over the elements that hold a gear of the moving car. At the first start their pistons are full; those of
// a unit that has slept have drained since.
func (e *eightSpeed) takeOver(s *automatic) {
	s.hold(e.gearOf(s))
	if !e.stepped.IsZero() {
		e.drain(s.LastCycle.Sub(e.stepped).Seconds())
		return
	}
	for i, bar := range s.held[s.gear] {
		if s.gear != neutral && bar > 0 {
			e.filled[i] = 1
		}
	}
}

// step runs one cycle: pressures and requests to the engine.
func (e *eightSpeed) step(s *automatic, t, dt float64) {
	e.limit, e.stepped = 1, s.LastCycle
	if s.IsOff() { // no engine, no pump
		e.bar, e.engineStop, e.starting, e.locks = [6]float64{}, false, 0, false
		e.command(e.bar, [6]bool{}, dt)
		return
	}
	var closes [6]bool
	for i, bar := range s.held[s.gear] {
		closes[i] = bar > 0
	}
	lock := e.bar[lockUp]
	on, off, swap := s.swap(s.from, s.gear)
	switch {
	case s.busy() && swap && s.isForward(s.from) && s.isForward(s.gear):
		e.handOver(s, t, on, off)
		closes[off] = e.kind == byEngine && math.IsNaN(s.engaged) && math.IsNaN(e.sync) // it may hold again
	default:
		if s.began != e.began {
			e.began, e.fill = s.began, 0
			for i := range closes {
				if closes[i] {
					e.fill = max(e.fill, e.left(i))
				}
			}
		}
		e.bar = s.pressures(max(s.began, t-e.fill))
	}
	e.bar[lockUp] = e.lockUp(s, lock, dt)
	closes[lockUp] = e.locks
	e.command(e.bar, closes, dt)
	e.stopAndStart(s, dt)
}

// inputTorque returns the torque on the input shaft, N.m.
func (e *eightSpeed) inputTorque(s *automatic) float64 {
	if e.torque <= 0 || e.locked > 0 || s.engine < startedEngine {
		return e.torque
	}
	return e.torque * max(1, stallGain-(stallGain-1)/coupling*max(0, s.in/s.engine))
}

// handOver sets the pressures of a shift from the element off to the element on.
func (e *eightSpeed) handOver(s *automatic, t float64, on, off int) {
	torque := e.inputTorque(s)
	if s.began != e.began {
		e.beginShift(s, torque, on, off)
	}
	e.bar = s.held[s.gear]
	need := share[s.gear][on] * math.Abs(torque) / perBar[on] // holds the input torque in the new gear, bar
	switch {
	case !math.IsNaN(s.engaged):
		closed := min(1, (t-s.engaged)/closeTime)
		e.bar[off] = e.offBar * (1 - closed)
		e.bar[on] = e.onBar + (s.held[s.gear][on]-e.onBar)*closed
		if e.kind == byClutch && torque > 0 {
			e.limit = min(1, s.accelerator*(e.cut+(1-e.cut)*min(1, (t-s.engaged)/limitGrows)))
		}
		return
	case e.kind == byClutch:
		e.moveInput(s, t, torque, need)
	default:
		e.letEngine(s, t, math.Abs(torque), need)
	}
	e.bar[on], e.bar[off] = min(e.bar[on], s.held[s.gear][on]), min(e.bar[off], s.held[s.from][off])
	e.offBar, e.onBar = e.bar[off], e.bar[on]
}

// beginShift plans a shift.
func (e *eightSpeed) beginShift(s *automatic, torque float64, on, off int) {
	e.began, e.slip, e.sync, e.on, e.off, e.fill = s.began, s.slip(), math.NaN(), on, off, e.left(on)
	inertia := inputInertia * math.Abs(e.slip) / max(math.Abs(torque), idleTorque)
	switch {
	case !(-torque*e.slip > 0 && math.Abs(torque) > idleTorque):
		e.kind, e.plan = byClutch, min(max(e.shiftTime, inertia), 2*e.shiftTime)
	case torque < 0 && inertia/engineShare > coastTime: // the drag of the engine would take too long
		e.kind, e.plan = byClutch, coastTime
	default:
		e.kind, e.plan = byEngine, max(e.shiftTime, math.Abs(e.slip)/syncRate, inertia, min(inertia/engineShare, easeTime))
	}
	s.longest = max(dwell, e.fill+2*e.plan+torquePhase+closeTime)
}

// hold returns the pressure of the off-going element that holds an input torque in the previous gear, bar.
func (e *eightSpeed) hold(s *automatic, torque float64) float64 {
	return share[s.from][e.off] * max(0, torque) / perBar[e.off]
}

// moveInput fills the on-coming element while the off-going one falls to what it needs, hands the torque over, and moves
// the input shaft with the on-coming element. After the planned time its pressure rises further.
func (e *eightSpeed) moveInput(s *automatic, t, torque, need float64) {
	start, holds := s.began+e.fill, holdMargin*e.hold(s, math.Abs(torque))
	if t < start {
		e.bar[e.on], e.bar[e.off] = 0, holds+(s.held[s.from][e.off]-holds)*(start-t)/e.fill
		return
	}
	passed := min(1, (t-start)/torquePhase)
	e.bar[e.off], e.bar[e.on] = holds*(1-passed), need*passed
	over := t - start - torquePhase
	if over <= 0 {
		return
	}
	inertia := share[s.gear][e.on] * inputInertia * math.Abs(e.slip) / e.plan / perBar[e.on]
	e.bar[e.on] += inertia * min(1, over/torquePhase) * (1 + 2*max(0, over/e.plan-1))
	if torque > 0 {
		e.limit = s.accelerator * e.cut
	}
}

// letEngine lets the engine move the input shaft along a planned slip, and closes the on-coming element at its end.
func (e *eightSpeed) letEngine(s *automatic, t, torque, need float64) {
	since, rate := t-s.began, math.Abs(e.slip)/e.plan
	slip := s.slip() * math.Copysign(1, e.slip) // falls to 0
	if math.IsNaN(e.sync) && e.filled[e.on] == 1 && (slip < rate*(syncTime/2+actuation) || since > 2*e.plan+torquePhase) {
		e.sync = t
	}
	if !math.IsNaN(e.sync) {
		closed := (t - e.sync) / syncTime
		e.bar[e.on], e.bar[e.off] = need*closed, e.offBar*max(0, 1-closed)
		return
	}
	behind := slip - math.Abs(e.slip)*(1-min(1, max(0, since-torquePhase/2)/e.plan))
	e.bar[e.on], e.bar[e.off] = 0, e.hold(s, torque-inputInertia*rate*min(1, since/torquePhase)-slipGain*behind)
}

// gearOf returns the forward gear whose ratio the shafts of a moving car have; neutral if there is none.
func (e *eightSpeed) gearOf(s *automatic) int {
	for gear := 1; gear <= s.top() && s.out > standstill; gear++ {
		if math.Abs(s.in-s.ratios[gear]*s.out) < sameRatio*s.in {
			return gear
		}
	}
	return neutral
}

// lockUp returns the pressure of the lock-up clutch. It keeps its pressure during a shift.
func (e *eightSpeed) lockUp(s *automatic, bar, dt float64) float64 {
	share := 1.0
	if e.locks {
		share = lockUpOpens
	}
	e.locks = s.isForward(s.gear) && s.in > share*e.lockSpeed && s.oil >= s.cold && !s.Memory.LimpHome()
	switch {
	case !e.locks:
		bar = max(0, bar-lockUpBar*dt/closeTime)
	case !s.busy() && e.filled[lockUp] == 1:
		bar = min(lockUpBar, bar+lockUpBar*dt/lockUpTime)
	}
	if e.locked += dt; bar < lockUpBar {
		e.locked = 0
	}
	return bar
}

// stopAndStart stops the engine at standstill and starts it when the driver wants to go on. The pressures stay: an
// accumulator holds them.
func (e *eightSpeed) stopAndStart(s *automatic, dt float64) {
	e.driven = e.driven || s.speed > drivenSpeed
	e.still += dt
	if math.Abs(s.out) > standstill/10 || s.brake < pressedBrake || s.accelerator > pressedPedal || s.lever == leverR {
		e.still = 0
	}
	switch {
	case e.starting > 0:
		if e.starting += dt; s.engine > startedEngine || e.starting > longestStart {
			e.starting = 0
		}
	case e.engineStop:
		if s.brake < releasedBrake || s.accelerator > pressedPedal || s.lever == leverR {
			s.Logf("%.2f s: engine starts", s.Elapsed())
			e.engineStop, e.starting = false, dt
		}
	case e.startStop > 0.5 && e.driven && s.lever == leverD && s.oil >= s.cold && e.still > e.stopDelay && !s.busy():
		s.Logf("%.2f s: engine stops", s.Elapsed())
		e.engineStop, e.driven = true, false
		e.stops++
	}
}

// wished returns the driver's gear, or the nearest one whose input speed is allowed.
func (e *eightSpeed) wished(s *automatic) int {
	to := e.wish
	for to < s.top() && s.ratios[to]*s.out > fastestInput {
		to++
	}
	for to > 1 && s.ratios[to]*s.out < slowestInput {
		to--
	}
	return to
}

// engineRequest packs the request to the engine.
func (s *automatic) engineRequest() can.Frame {
	var g unit.Payload
	g.SetBits(12, 4, uint64(s.from))
	g.SetValue(16, 8, s.eight.limit, limitStep, 0)
	g.SetBit(24, !s.eight.engineStop)
	g.SetBit(25, s.eight.starting > 0)
	g.SetBit(26, s.busy())
	return s.Protect(g, idEngineRequest)
}

// Trouble codes that the unit of four speeds does not have.
const (
	codeLockUp        = 0x074100 // P0741
	codeTorqueLost    = 0xD10200 // U1102, of the maker
	codeTorqueInvalid = 0xD40200 // U1402, of the maker
)

// eightSpeedCodes are the trouble codes of the unit of eight speeds.
func eightSpeedCodes() []diagnosis.Code {
	const ms = time.Millisecond
	return append(automaticCodes(),
		diagnosis.Code{Number: codeLockUp, Text: "P0741 torque converter clutch stuck off", Fail: 1000 * ms, Pass: 1000 * ms, Trips: 2},
		diagnosis.Code{Number: codeTorqueLost, Text: "U1102 lost communication: EngineTorque", Fail: 400 * ms, Pass: 500 * ms, Trips: 1},
		diagnosis.Code{Number: codeTorqueInvalid, Text: "U1402 invalid data: EngineTorque", Fail: 200 * ms, Pass: 500 * ms, Trips: 1})
}

// checkLockUp reports a lock-up clutch that slips with full pressure.
func (e *eightSpeed) checkLockUp(s *automatic, passed time.Duration) {
	if e.locked > fixed && !s.busy() {
		s.Memory.Report(codeLockUp, math.Abs(s.engine-s.in) > lockUpSlip, passed)
	}
}
