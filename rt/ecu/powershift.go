package ecu

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/brutella/can"
)

const (
	cycle = 10 * time.Millisecond // of the units of gearboxes
	doubt = 20                    // Status frames that contradict the unit before it says so
)

// powershift is the transmission control unit of the powershift gearbox. It
// sleeps until it hears a Speeds frame (0x200); from then on it sends the two
// pressure frames (0x110, 0x111) every 10 ms and shifts by time and speed. Its
// clock starts with that frame. After a second without Speeds it stops sending
// and sleeps again: the next drive starts anew.
type powershift struct {
	*session
	unit  unit
	w     [4]float64
	fresh bool // w came after the latest cycle
	speed rolling
	state rolling

	contradicted int // consecutive Status frames that deny the gear
}

func newPowershift(s *session) law { return &powershift{session: s, unit: unit{log: s.log}} }

func (s *powershift) parameters() []Parameter { return nil }
func (s *powershift) result() string          { return "" }

// hear takes a frame from the bus.
func (s *powershift) hear(f *can.Frame, now time.Time) {
	if !s.accept(f) {
		return
	}
	counter := f.Data[7] >> 4
	if f.ID == idStatus {
		s.counts.Lost += s.state.missing(counter)
		s.compare(decodeStatus(f))
		return
	}

	if !s.awake && counter == 0 {
		s.speed, s.state = rolling{}, rolling{} // another bench begins
	}
	s.counts.Lost += s.speed.missing(counter)
	s.w, s.fresh = decodeSpeeds(f), true
	if s.wake(now) {
		s.unit.begin(s.w)
	}
}

// compare reports a gear that the speeds confirm and the bench denies.
func (s *powershift) compare(state [8]int8) {
	for _, clutch := range s.unit.gear {
		if s.awake && !s.unit.busy && state[clutch-1] != 0 {
			s.contradicted++
			if s.contradicted == doubt {
				fmt.Fprintf(s.log, "powershift: gear %v should be engaged, but Status (0x202) says clutch %d is not\n",
					s.unit.gear, clutch)
			}

			return
		}
	}

	s.contradicted = 0
}

// step is one cycle of 10 ms.
func (s *powershift) step(t, _ float64) []can.Frame {
	p := s.unit.step(t, s.w, s.fresh)
	s.fresh = false
	return []can.Frame{
		encode(idPressure1, [4]float64(p[:4]), s.count),
		encode(idPressure2, [4]float64(p[4:]), s.count),
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
// frame: 12 bits each from bit 0 upwards, the counter in bits 52 to 55, bit 0
// being the lowest bit of byte 0.
func encode(id uint32, bar [4]float64, counter uint8) can.Frame {
	var g group
	for i, p := range bar {
		g.raw(12*i, 12, uint64(math.RoundToEven(min(max(p, 0), 40)/barPerBit)))
	}
	g.raw(52, 4, uint64(counter))
	return g.frame(id)
}

// decodeSpeeds reads w1 .. w4, rad/s, from a Speeds frame.
func decodeSpeeds(f *can.Frame) (w [4]float64) {
	for i := range w {
		w[i] = float64(signed(f, 15*i, 15)) * radPerBit[i]
	}
	return w
}

// decodeStatus reads the states of the eight clutches from a Status frame: -1
// and 1 slipping backward and forward, 0 locked, 2 free.
func decodeStatus(f *can.Frame) (state [8]int8) {
	for i := range state {
		state[i] = int8(signed(f, 3*i, 3))
	}
	return state
}

// The gearbox: clutches 1 and 2 couple shafts 1-2, clutches 3 to 5 shafts 2-3,
// clutches 6 to 8 shafts 3-4. Index 0 is unused: clutches count from 1.
var (
	ratioOf = [9]float64{1: 3, 2: 2, 3: 4, 4: 3, 5: 2, 6: 4, 7: 2, 8: 1}
	fullOf  = [9]float64{1: 18, 2: 24, 3: 17.5, 4: 17.5, 5: 17.5, 6: 18, 7: 18, 8: 18} // bar
)

const (
	release  = 0.06 // s, in which the off-going pressure falls to zero
	fill     = 0.2  // s, in which the on-coming pressure rises to its slip value
	apply    = 0.1  // s, in which it rises from there to full
	patience = 1.5  // s, after which a slip that does not vanish is reported
	readings = 2    // of vanished slip before the pressure is raised
)

// gear names the clutch that is engaged between shafts 1-2, 2-3 and 3-4;
// 0 is none.
type gear [3]int

func (g gear) String() string {
	if g == (gear{}) {
		return "neutral"
	}
	return fmt.Sprintf("%d-%d-%d", g[0], g[1], g[2])
}

// ratio is |w1/w4| while the gear is engaged.
func (g gear) ratio() float64 { return ratioOf[g[0]] * ratioOf[g[1]] * ratioOf[g[2]] }

// engaged reports whether the speeds, rad/s, fit the gear.
func (g gear) engaged(w [4]float64) bool {
	for stage, clutch := range g {
		if !vanished(stage, clutch, w) {
			return false
		}
	}

	return true
}

// slip is the relative speed of a clutch between shafts stage and stage+1,
// measured on its left shaft, rad/s. The shafts turn in opposite directions.
func slip(stage, clutch int, w [4]float64) float64 {
	return w[stage] + ratioOf[clutch]*w[stage+1]
}

// vanished reports whether a slip is no larger than two roundings of the
// speeds explain.
func vanished(stage, clutch int, w [4]float64) bool {
	return math.Abs(slip(stage, clutch, w)) <= radPerBit[stage]+ratioOf[clutch]*radPerBit[stage+1]
}

// order is a gear to shift to.
type order struct {
	to   gear
	slip [3]float64 // bar at which the on-coming clutch of each stage slips; unused where it stays
	due  func(t, wheel float64) bool
}

var first = gear{1, 3, 6} // ratio 48

// opening is how a drive begins: single, double and triple swap at the times
// and near the pressures of Morselli, figures 8 to 10. The slip force must be above
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

// driving goes on for ever: the engine gives 250 N·m whatever happens, the load
// takes 1500 N·m at the wheel. In ratio 12 (3000 N·m) the vehicle gains 0.55
// rad/s in a second, in ratio 8 (2000 N·m) 0.2, in ratio 4 (1000 N·m) it loses
// 0.2. Before ratio 12 is engaged again, engine and slipping clutches bring the
// engine up from 38 to 114 rad/s.
//
// The pressures of the first and the last gear are those of all three clutches,
// so that a unit can engage them that finds the vehicle on the move.
var driving = []order{
	// 650, 900, 3500 N; 250, 500, 1500 N needed
	{gear{2, 4, 7}, [3]float64{13, 4.5, 7}, func(_, wheel float64) bool { return wheel <= slow }},
	// 900 N; 500 N
	{gear{2, 5, 7}, [3]float64{0, 4.5, 0}, func(_, wheel float64) bool { return wheel >= 10.5 }},
	// 650, 1800, 1800 N; 250, 500, 1000 N
	{gear{2, 5, 8}, [3]float64{13, 9, 3.6}, func(_, wheel float64) bool { return wheel >= fast }},
}

const slow, fast = 9.5, 11 // rad/s, between which the wheel is kept

// unit is the control law: speeds in, pressures out, no clock and no bus.
type unit struct {
	log    io.Writer
	gear   gear       // engaged, or to be engaged when the shift ends
	from   gear       // the clutches to release
	order  order      // of the shift under way
	next   int        // index of the next order: opening, then driving again and again
	busy   bool       // a shift is under way
	began  float64    // s
	report float64    // s, when a slip will be reported
	seen   [3]int     // consecutive readings without slip, by stage
	raised [3]float64 // s, when the slip had vanished; NaN before
	base   [3]float64 // bar at that moment
}

// begin starts the drive at t = 0 from the speeds measured then: the opening
// when the vehicle is in first gear, otherwise straight into driving.
func (u *unit) begin(w [4]float64) {
	*u = unit{log: u.log}
	if first.engaged(w) {
		u.gear = first
		fmt.Fprintf(u.log, "powershift: 0.00 s: gear %v, ratio %g\n", first, first.ratio())
		return
	}

	i := 0
	if math.Abs(w[3]) >= fast {
		i = len(driving) - 1
	}
	u.next = len(opening) + i
	u.shift(0, driving[i])
}

// step is one cycle: the time since begin, s, the speeds measured last, rad/s,
// and whether they are new. It returns the pressures of the clutches 1 to 8, bar.
func (u *unit) step(t float64, w [4]float64, fresh bool) [8]float64 {
	if fresh {
		if !u.busy {
			u.decide(t, w)
		}
		u.watch(t, w)
	}

	var p [8]float64
	done := true
	for stage, clutch := range u.gear {
		on, off := clutch, u.from[stage]
		if !u.busy || on == off {
			p[on-1] = fullOf[on]
			continue
		}

		if off != 0 {
			p[off-1] = fullOf[off] * max(0, 1-(t-u.began)/release)
		}
		p[on-1] = u.oncoming(stage, t)
		done = done && p[on-1] == fullOf[on]
	}

	if u.busy && done {
		u.busy = false
		fmt.Fprintf(u.log, "powershift: %.2f s: gear %v engaged, ratio %g\n", t, u.gear, u.gear.ratio())
	}

	return p
}

// oncoming is the pressure of the on-coming clutch of a stage, bar: filled to
// its slip value, held while it slips, then raised.
func (u *unit) oncoming(stage int, t float64) float64 {
	if since := u.raised[stage]; !math.IsNaN(since) {
		full := fullOf[u.gear[stage]]
		if t >= since+apply {
			return full
		}
		return u.base[stage] + (full-u.base[stage])*(t-since)/apply
	}

	return u.order.slip[stage] * min(1, (t-u.began)/fill)
}

// decide starts the next shift when it is due.
func (u *unit) decide(t float64, w [4]float64) {
	list, i := opening, u.next
	if i >= len(opening) {
		list, i = driving, (i-len(opening)+1)%len(driving)
	}
	if list[i].due(t, math.Abs(w[3])) {
		u.next++
		u.shift(t, list[i])
	}
}

func (u *unit) shift(t float64, o order) {
	fmt.Fprintf(u.log, "powershift: %.2f s: shift %v -> %v\n", t, u.gear, o.to)
	u.from, u.gear, u.order = u.gear, o.to, o
	u.busy, u.began, u.report = true, t, t+patience
	u.seen = [3]int{}
	for stage := range u.raised {
		u.raised[stage] = math.NaN()
	}
}

// watch looks at the slip of the on-coming clutches: gone for two readings, it
// lets the pressure rise; there for too long, it is reported.
func (u *unit) watch(t float64, w [4]float64) {
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
				fmt.Fprintf(u.log, "powershift: %.2f s: clutch %d still slips by %.3g rad/s, "+
					"%.1f s after the shift to %v began: pressure held\n",
					t, clutch, slip(stage, clutch, w), t-u.began, u.gear)
			}

			continue
		}

		if u.seen[stage]++; u.seen[stage] >= readings {
			u.base[stage] = u.oncoming(stage, t)
			u.raised[stage] = t
		}
	}

	if late {
		u.report += patience
	}
}
