package ecu

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/brutella/can"
)

// Identifiers of the frames, as in abs.dbc.
const (
	idAbsFront    = 0x120
	idAbsRear     = 0x121
	idWheelSpeeds = 0x1A0
	idChassis     = 0x1A1
)

const (
	absRadius   = 0.3   // m, of the wheels
	wheelBit    = 0.01  // rad/s, 15 bits signed
	absBar      = 0.1   // bar per bit of the master pressure, 12 bits
	absMetre    = 0.01  // m/s2 per bit of the acceleration, 12 bits signed
	absShare    = 0.001 // per bit of a valve's command, 10 bits
	absPedal    = 5.0   // bar, above which the driver brakes
	absCrawl    = 1.5   // m/s, below which the wheels may lock
	absSlip     = 0.12  // of the speed, which is wanted
	absMargin   = 0.05  // m/s, more than that
	absAhead    = 0.02  // s, by which the start of control looks ahead
	absBuild    = 110.0 // bar/s through the open inlet at a difference of 1 bar
	absDump     = 150.0 // bar/s through the open outlet at 1 bar
	absStep     = 600.0 // bar/s, the largest rate that is asked for
	absFollow   = 50.0  // bar/s per m/s of slip speed too little, in front
	absDamp     = 4.5   // bar per m/s of its rate
	absRearGain = 3.0   // a rear brake has a third of the torque
)

// absNames are the wheels in the order of the frames.
var absNames = [4]string{"FL", "FR", "RL", "RR"}

// absWheel is what the unit knows of a wheel and does with its valves.
type absWheel struct {
	v, rate       float64 // circumference, m/s and m/s2
	bar           float64 // pressure in the caliper as the unit reckons it
	active        bool    // the unit holds the slip
	cycles        int     // of it
	inlet, outlet float64 // 0 to 1; the inlet is closed at 1
}

// abs is the anti-lock control unit of a car. It sleeps until it hears WheelSpeeds (0x1A0);
// from then on it sends the commands of the valves (0x120, 0x121) every 5 ms. While the
// driver brakes it reckons the speed of the car from the acceleration it hears and from
// the fastest wheel, and holds a wheel that leaves its slip at it by the rate of its
// pressure; the rear wheels get what the worse of them bears. It has no sensor for the
// pressure in a caliper. After a second without WheelSpeeds it sleeps again.
type abs struct {
	duty
	wheels [4]absWheel
	pedal  float64 // bar
	along  float64 // m/s2
	gained float64 // m/s, by the acceleration since the latest cycle
	car    float64 // m/s

	stop    float64 // s, when a stop in which the unit was needed began; NaN outside
	from    float64 // m/s, at that time
	speed   rolling
	chassis rolling
}

func newAbs(line can.Writer, log io.Writer) law {
	return &abs{duty: duty{name: "abs", speeds: "WheelSpeeds", line: line, log: log}, stop: math.NaN()}
}

func (s *abs) closing(malformed uint64) string {
	var list [4]int
	for i, w := range s.wheels {
		list[i] = w.cycles
	}
	return fmt.Sprintf("%s, cycles in control of %v: %v", s.duty.closing(malformed), absNames, list)
}

// hear takes a frame from the bus.
func (s *abs) hear(f *can.Frame, now time.Time) {
	if !s.whole(f) {
		return
	}
	follower := &s.chassis
	if f.ID == idWheelSpeeds {
		if follower = &s.speed; !s.awake && f.Data[7]>>4 == 0 {
			s.speed, s.chassis = rolling{}, rolling{} // another bench begins
		}
	}
	dt := s.follow(follower, f)
	if f.ID == idWheelSpeeds {
		s.turn(f, dt, now)
		return
	}
	s.pedal = float64(bits(f, 0, 12)) * absBar
	s.along = float64(int64(bits(f, 12, 12)<<52)>>52) * absMetre
	s.gained += s.along * dt
}

// turn takes the speeds of the wheels, dt after the ones before.
func (s *abs) turn(f *can.Frame, dt float64, now time.Time) {
	for i, turns := range fourSpeeds(f) {
		w := &s.wheels[i]
		v := math.Abs(turns) * absRadius
		if s.awake {
			w.rate += ((v-w.v)/dt - w.rate) / 2
		}
		w.v = v
	}
	if s.wake(now) {
		fmt.Fprintf(s.log, "abs: 0.00 s: wheels at %.1f m/s\n", s.fastest())
	}
}

// fourSpeeds reads WheelSpeeds, or AxleSpeeds, rad/s.
func fourSpeeds(f *can.Frame) (w [4]float64) {
	for i := range w {
		w[i] = float64(int64(bits(f, 15*i, 15)<<49)>>49) * wheelBit
	}
	return w
}

func (s *abs) fastest() float64 {
	v := 0.0
	for _, w := range s.wheels {
		v = max(v, w.v)
	}
	return v
}

// tick is one cycle of 5 ms.
func (s *abs) tick(now time.Time) error {
	t, dt, ok := s.due(now)
	if !ok {
		return nil
	}
	s.control(t, dt)
	for i, id := range []uint32{idAbsFront, idAbsRear} {
		if err := s.send(valves(id, s.wheels[2*i:2*i+2], s.needed(), s.count-1)); err != nil {
			return err
		}
	}
	return nil
}

// needed says that the unit holds a wheel.
func (s *abs) needed() bool {
	for _, w := range s.wheels {
		if w.active {
			return true
		}
	}
	return false
}

// control sets the valves for the next dt, s.
func (s *abs) control(t, dt float64) {
	braking := s.pedal > absPedal
	if !braking {
		s.car = s.fastest()
	} else {
		s.car = max(s.fastest(), s.car+s.gained)
	}
	s.gained = 0
	var wish [4]float64 // bar/s
	for i := range s.wheels {
		wish[i] = s.wish(i)
	}
	if rear := s.wheels[2:]; rear[0].active || rear[1].active {
		wish[2] = min(wish[2], wish[3])
		wish[3] = wish[2]
		rear[0].active, rear[1].active = true, true
	}
	for i := range s.wheels {
		w := &s.wheels[i]
		if w.active && (!braking || s.car < absCrawl || w.bar > s.pedal-1) {
			w.active = false
		}
		w.set(wish[i], s.pedal, dt)
	}
	s.report(t, braking)
}

// wish is the rate, bar/s, at which the pressure of wheel i should change. It begins to
// hold a wheel that is about to leave the slip that is wanted.
func (s *abs) wish(i int) float64 {
	w, want := &s.wheels[i], absSlip*s.car+absMargin
	slip, faster := s.car-w.v, s.along-w.rate // m/s and m/s2
	if s.pedal > absPedal && s.car > absCrawl && slip+absAhead*faster > want {
		w.active = true
	}
	gain := 1.0
	if i >= 2 {
		gain = absRearGain
	}
	rate := gain * (absFollow*(want-slip) + absDamp*(absSlip*s.along-faster))
	return min(max(rate, -absStep), absStep)
}

// set reckons the pressure over the dt that has passed with the commands as they were, and
// turns the rate that is wanted into new ones.
func (w *absWheel) set(wish, pedal, dt float64) {
	if in, out := w.rates(pedal); w.inlet > 0 || w.outlet > 0 {
		w.bar = max(0, w.bar+((1-w.inlet)*in-w.outlet*out)*dt)
	} else {
		w.bar += min(pedal-w.bar, in*dt)
	}
	in, out := w.rates(pedal)
	switch {
	case !w.active:
		w.inlet, w.outlet = 0, 0
		return
	case wish > 0:
		w.inlet, w.outlet = 1-min(1, wish/in), 0
	default:
		w.inlet, w.outlet = 1, min(1, -wish/out)
	}
	w.cycles++
}

// rates are those of the pressure with the inlet and with the outlet open, bar/s.
func (w *absWheel) rates(pedal float64) (in, out float64) {
	return absBuild * math.Sqrt(max(pedal-w.bar, 0.5)), absDump * math.Sqrt(max(w.bar, 0.5))
}

// report tells of a stop when it is over.
func (s *abs) report(t float64, braking bool) {
	switch {
	case math.IsNaN(s.stop) && s.needed():
		s.stop, s.from = t, s.car
		s.stops++
	case !math.IsNaN(s.stop) && (!braking || s.car < absCrawl):
		fmt.Fprintf(s.log, "abs: %.2f s: from %.1f to %.1f m/s in %.2f s\n", t, s.from, s.car, t-s.stop)
		s.stop = math.NaN()
	}
}

// valves packs the commands of two wheels: inlet and outlet of each in 10 bits from bit 0
// on, the pump in bit 40, whether the unit holds the wheel in bits 41 and 42, the counter
// in bits 60 to 63.
func valves(id uint32, pair []absWheel, pump bool, counter uint8) can.Frame {
	word := uint64(counter&15) << 60
	flag := func(bit int, on bool) {
		if on {
			word |= 1 << bit
		}
	}
	for i, w := range pair {
		word |= uint64(math.RoundToEven(w.inlet/absShare)) << (20 * i)
		word |= uint64(math.RoundToEven(w.outlet/absShare)) << (20*i + 10)
		flag(41+i, w.active)
	}
	flag(40, pump)
	f := can.Frame{ID: id, Length: 8}
	binary.LittleEndian.PutUint64(f.Data[:], word)
	return f
}
