package gearbox

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

const (
	cycle             = 10 * time.Millisecond // period of the gearbox units
	maxContradictions = 20                    // consecutive contradicting Status frames before a log line
)

// powershift is the transmission control unit of the powershift gearbox. It sleeps until it receives
// Speeds (0x200). From then on it sends the two pressure frames (0x110, 0x111) every 10 ms, and shifts
// by time and speed. After a second without Speeds it sleeps again; the next drive starts anew.
//
// Faults that the unit finds are stored. After some it is in limp-home, and holds its gear, until the next operation
// cycle or until the code is cleared.
type powershift struct {
	*unit.Base
	powershiftTrouble
	shift shiftLaw
	w     [4]float64          // shaft speeds, rad/s
	fresh bool                // w is newer than the last cycle
	speed unit.RollingCounter // counter of Speeds
	state unit.RollingCounter // counter of Status

	contradicted int // consecutive Status frames that contradict the gear
}

func newPowershift(s *unit.Base) unit.Law {
	p := &powershift{Base: s, shift: shiftLaw{logf: s.Logf}}
	p.startDiagnosis()
	return p
}

func (s *powershift) Parameters() []unit.Parameter { return nil }

// receive handles a received frame.
func (s *powershift) Receive(f *can.Frame, now time.Time) {
	if s.Server.Deaf(diagnosis.NormalMessages) || !s.CountFrame(f) {
		return
	}
	counter := f.Data[7] >> 4
	if f.ID == idStatus {
		s.Counts.Lost += s.state.CountMissing(counter)
		s.compare(decodeStatus(f))
		return
	}

	if !s.Awake && counter == 0 {
		s.speed, s.state = unit.RollingCounter{}, unit.RollingCounter{} // a new bench starts
	}
	missing := s.speed.CountMissing(counter)
	s.Counts.Lost += missing
	s.speeds.Note(missing, now)
	s.w, s.fresh = decodeSpeeds(f), true
	if s.Wake(now) {
		s.BeginCycle(now)
		s.frozenIn, s.frozenOut = frozen{}, frozen{}
		s.shift.begin(s.w)
	}
}

// compare logs a gear that the speeds confirm and Status contradicts.
func (s *powershift) compare(state [8]int8) {
	for _, clutch := range s.shift.gear {
		if s.Awake && !s.shift.busy && state[clutch-1] != 0 {
			s.contradicted++
			if s.contradicted == maxContradictions {
				s.Logf("gear %v should be engaged, but Status (0x202) says clutch %d is not",
					s.shift.gear, clutch)
			}

			return
		}
	}

	s.contradicted = 0
}

// step runs one cycle of 10 ms.
func (s *powershift) Step(t, dt float64) []can.Frame {
	s.checkInputs(t, dt)
	s.shift.holds = s.Memory.LimpHome()
	p := s.shift.step(t, s.w, s.fresh)
	s.fresh = false
	if s.Server.Silent(diagnosis.NormalMessages) {
		return nil
	}
	return []can.Frame{
		encode(idPressure1, [4]float64(p[:4]), s.Counter),
		encode(idPressure2, [4]float64(p[4:]), s.Counter),
	}
}

// Identifiers of the frames, as in powershift.dbc.
const (
	idPressure1 = 0x110 // TCU_Pressure_1: clutches 1 to 4
	idPressure2 = 0x111 // TCU_Pressure_2: clutches 5 to 8
	idSpeeds    = 0x200
	idStatus    = 0x202
)

const barPerBit = 0.01 // pressure_C1 .. pressure_C8, 12 bits

// radPerBit is the resolution of w1 .. w4, 15 bits signed, rad/s.
var radPerBit = [4]float64{0.02, 0.01, 0.005, 0.001}

// encode packs four pressures, bar, and the rolling counter into a pressure
// frame: 12 bits each from bit 0 upwards, the counter in bits 52 to 55. Bit 0
// is the lowest bit of byte 0.
func encode(id uint32, bar [4]float64, counter uint8) can.Frame {
	var g unit.Payload
	for i, p := range bar {
		g.SetBits(12*i, 12, uint64(math.RoundToEven(min(max(p, 0), 40)/barPerBit)))
	}
	g.SetBits(52, 4, uint64(counter))
	return g.Frame(id)
}

// decodeSpeeds reads w1 .. w4, rad/s, from a Speeds frame.
func decodeSpeeds(f *can.Frame) (w [4]float64) {
	for i := range w {
		w[i] = float64(unit.Signed(f, 15*i, 15)) * radPerBit[i]
	}
	return w
}

// decodeStatus reads the states of the eight clutches from a Status frame: -1
// and 1 slipping backward and forward, 0 locked, 2 free.
func decodeStatus(f *can.Frame) (state [8]int8) {
	for i := range state {
		state[i] = int8(unit.Signed(f, 3*i, 3))
	}
	return state
}

// The gearbox: clutches 1 and 2 couple shafts 1-2, clutches 3 to 5 shafts 2-3,
// clutches 6 to 8 shafts 3-4. Index 0 is unused: clutches count from 1.
var (
	clutchRatio  = [9]float64{1: 3, 2: 2, 3: 4, 4: 3, 5: 2, 6: 4, 7: 2, 8: 1}
	fullPressure = [9]float64{1: 18, 2: 24, 3: 17.5, 4: 17.5, 5: 17.5, 6: 18, 7: 18, 8: 18} // bar
)

const (
	releaseTime     = 0.06 // time in which the off-going pressure falls to zero, s
	fillTime        = 0.2  // time in which the on-coming pressure rises to its slip value, s
	applyTime       = 0.1  // time in which the on-coming pressure rises from there to full, s
	maxSlipTime     = 1.5  // time after which a persistent slip is logged, s
	minSlipReadings = 2    // consecutive readings without slip before the pressure rises
)

// gear holds the engaged clutches between shafts 1-2, 2-3 and 3-4; 0: none.
type gear [3]int

func (g gear) String() string {
	if g == (gear{}) {
		return "neutral"
	}
	return fmt.Sprintf("%d-%d-%d", g[0], g[1], g[2])
}

// ratio returns |w1/w4| of the engaged gear.
func (g gear) ratio() float64 { return clutchRatio[g[0]] * clutchRatio[g[1]] * clutchRatio[g[2]] }

// engaged reports whether the speeds, rad/s, fit the gear.
func (g gear) engaged(w [4]float64) bool {
	for stage, clutch := range g {
		if !vanished(stage, clutch, w) {
			return false
		}
	}

	return true
}

// slip returns the relative speed of a clutch between shafts stage and stage+1, on its left shaft,
// rad/s. The shafts turn in opposite directions.
func slip(stage, clutch int, w [4]float64) float64 {
	return w[stage] + clutchRatio[clutch]*w[stage+1]
}

// vanished reports whether a slip is within the resolution of the two speeds.
func vanished(stage, clutch int, w [4]float64) bool {
	return math.Abs(slip(stage, clutch, w)) <= radPerBit[stage]+clutchRatio[clutch]*radPerBit[stage+1]
}

// order is a gear to shift to.
type order struct {
	to   gear
	slip [3]float64 // slip pressure of the on-coming clutch of each stage, bar; unused if the clutch stays
	due  func(t, wheel float64) bool
}

var first = gear{1, 3, 6} // ratio 48

// opening is the start of a drive: single, double and triple swap at the times
// and near the pressures of Morselli figures 8 to 10. The slip force must be above
// what the gear transmits once it is engaged (250 N·m times the ratios before
// the clutch), and larger by more towards the wheel, so that the inner shafts
// settle first.
var opening = []order{
	// 620 N; 250 N needed
	{gear{2, 3, 6}, [3]float64{12.4, 0, 0}, func(t, _ float64) bool { return t >= 0.5 }},
	// 450, 1700 N; 250, 750 N
	{gear{1, 5, 6}, [3]float64{9, 8.5, 0}, func(t, _ float64) bool { return t >= 1.7 }},
	// 650, 1800, 4500 N; 250, 500, 1500 N
	{gear{2, 4, 7}, [3]float64{13, 9, 9}, func(t, _ float64) bool { return t >= 2.5 }},
}

// driving repeats without end: the engine gives a constant 250 N·m, the load takes 1500 N·m at the
// wheel. In ratio 12 (3000 N·m) the vehicle gains 0.55
// rad/s in a second, in ratio 8 (2000 N·m) 0.2, in ratio 4 (1000 N·m) it loses
// 0.2. Before ratio 12 is engaged again, engine and slipping clutches bring the
// engine up from 38 to 114 rad/s.
//
// The first and the last gear have the pressures of all three clutches, so that a unit can engage them
// in a moving vehicle.
var driving = []order{
	// 650, 900, 3500 N; 250, 500, 1500 N needed
	{gear{2, 4, 7}, [3]float64{13, 4.5, 7}, func(_, wheel float64) bool { return wheel <= slow }},
	// 900 N; 500 N
	{gear{2, 5, 7}, [3]float64{0, 4.5, 0}, func(_, wheel float64) bool { return wheel >= 10.5 }},
	// 650, 1800, 1800 N; 250, 500, 1000 N
	{gear{2, 5, 8}, [3]float64{13, 9, 3.6}, func(_, wheel float64) bool { return wheel >= fast }},
}

const slow, fast = 9.5, 11 // range of the wheel speed, rad/s

// shiftLaw is the control law: speeds in, pressures out, no clock and no bus.
type shiftLaw struct {
	logf   func(format string, args ...any)
	gear   gear       // engaged gear, or target of the shift under way
	from   gear       // clutches to release
	order  order      // order of the shift under way
	next   int        // index of the next order: opening, then driving repeatedly
	busy   bool       // a shift is under way
	holds  bool       // no further shift begins
	began  float64    // start of the shift, s
	ended  float64    // end of the last shift, s
	report float64    // time at which a persistent slip is logged, s
	seen   [3]int     // consecutive readings without slip, by stage
	raised [3]float64 // time at which the slip had vanished, s; NaN before
	base   [3]float64 // pressure at that time, bar
}

// begin starts the drive at t = 0 from the measured speeds, rad/s: with the opening if the vehicle is in
// first gear, otherwise with driving.
func (u *shiftLaw) begin(w [4]float64) {
	*u = shiftLaw{logf: u.logf}
	if first.engaged(w) {
		u.gear = first
		u.logf("0.00 s: gear %v, ratio %g", first, first.ratio())
		return
	}

	i := 0
	if math.Abs(w[3]) >= fast {
		i = len(driving) - 1
	}
	u.next = len(opening) + i
	u.shift(0, driving[i])
}

// step runs one cycle at t, s since begin, with the last measured speeds w, rad/s; fresh marks new
// speeds. It returns the pressures of clutches 1 to 8, bar.
func (u *shiftLaw) step(t float64, w [4]float64, fresh bool) [8]float64 {
	if fresh {
		if !u.busy && !u.holds {
			u.decide(t, w)
		}
		u.watch(t, w)
	}

	var p [8]float64
	done := true
	for stage, clutch := range u.gear {
		on, off := clutch, u.from[stage]
		if !u.busy || on == off {
			p[on-1] = fullPressure[on]
			continue
		}

		if off != 0 {
			p[off-1] = fullPressure[off] * max(0, 1-(t-u.began)/releaseTime)
		}
		p[on-1] = u.oncoming(stage, t)
		done = done && p[on-1] == fullPressure[on]
	}

	if u.busy && done {
		u.busy, u.ended = false, t
		u.logf("%.2f s: gear %v engaged, ratio %g", t, u.gear, u.gear.ratio())
	}

	return p
}

// oncoming returns the pressure of the on-coming clutch of a stage, bar: rising to the slip value, held
// while the clutch slips, then rising to full.
func (u *shiftLaw) oncoming(stage int, t float64) float64 {
	if since := u.raised[stage]; !math.IsNaN(since) {
		full := fullPressure[u.gear[stage]]
		if t >= since+applyTime {
			return full
		}
		return u.base[stage] + (full-u.base[stage])*(t-since)/applyTime
	}

	return u.order.slip[stage] * min(1, (t-u.began)/fillTime)
}

// decide starts the next shift when it is due.
func (u *shiftLaw) decide(t float64, w [4]float64) {
	list, i := opening, u.next
	if i >= len(opening) {
		list, i = driving, (i-len(opening)+1)%len(driving)
	}
	if list[i].due(t, math.Abs(w[3])) {
		u.next++
		u.shift(t, list[i])
	}
}

func (u *shiftLaw) shift(t float64, o order) {
	u.logf("%.2f s: shift %v -> %v", t, u.gear, o.to)
	u.from, u.gear, u.order = u.gear, o.to, o
	u.busy, u.began, u.report = true, t, t+maxSlipTime
	u.seen = [3]int{}
	for stage := range u.raised {
		u.raised[stage] = math.NaN()
	}
}

// watch checks the slip of the on-coming clutches. After two readings without slip, the pressure rises;
// a persistent slip is logged.
func (u *shiftLaw) watch(t float64, w [4]float64) {
	if !u.busy {
		return
	}
	late := t >= u.report
	for stage, clutch := range u.gear {
		if clutch == u.from[stage] || !math.IsNaN(u.raised[stage]) {
			continue
		}
		if !vanished(stage, clutch, w) {
			u.seen[stage] = 0
			if late {
				u.logf("%.2f s: clutch %d still slips by %.3g rad/s, "+
					"%.1f s after the shift to %v began: pressure held",
					t, clutch, slip(stage, clutch, w), t-u.began, u.gear)
			}

			continue
		}

		if u.seen[stage]++; u.seen[stage] >= minSlipReadings {
			u.base[stage] = u.oncoming(stage, t)
			u.raised[stage] = t
		}
	}

	if late {
		u.report += maxSlipTime
	}
}
