package brakes

import (
	"math"
	"time"

	"github.com/brutella/can"

	"lockstep/rt/ecu/diagnosis"
	"lockstep/rt/ecu/unit"
)

// brakeCycle is the period in which a brake unit sends and receives the speeds of the wheels.
const brakeCycle = 5 * time.Millisecond

// brakeWiring describes the frames and sensors of a brake unit.
type brakeWiring struct {
	speeds   uint32  // frame of the four speeds, which wakes the unit
	pressure uint32  // frame of the brake pressure that the driver demands
	edges    uint32  // frame of the edges of wheels 1 and 2; the next identifier has wheels 3 and 4
	turning  string  // name of the turning parts in the log
	radius   float64 // wheel radius, m
	teeth    int     // teeth of a sensor wheel
	smooth   float64 // cycles over which an acceleration is smoothed
	bar      float64 // pressure, bar per bit, 12 bits
}

// identifiers lists the frames that the unit receives.
func (w *brakeWiring) identifiers() []uint32 {
	return []uint32{w.speeds, w.pressure, w.edges, w.edges + 1}
}

// brake is the common part of the slip controllers: sensors at four wheels, the demanded pressure,
// and the stops with slip control.
type brake struct {
	*unit.Base
	sensors
	brakeTrouble
	wiring          *brakeWiring
	demand          float64             // demanded pressure, bar
	pressureCounter unit.RollingCounter // counter of the pressure frame

	stops int     // stops with slip control
	stop  float64 // start of the present stop, s; NaN: none
	from  float64 // speed at that time, m/s
}

func newBrake(s *unit.Base, w *brakeWiring) brake {
	return brake{Base: s, sensors: newSensors(w.radius, w.teeth, w.smooth), wiring: w, stop: math.NaN()}
}

// receiveFrame handles a received frame and reports whether the frame woke the unit.
func (s *brake) receiveFrame(f *can.Frame, now time.Time) (woke bool) {
	if s.Server.Deaf(diagnosis.NormalMessages) || !s.CountFrame(f) {
		return false
	}
	w, counter := s.wiring, f.Data[7]>>4
	switch f.ID {
	case w.pressure:
		missing := s.pressureCounter.CountMissing(counter)
		s.Counts.Lost += missing
		s.frames[1].Note(missing, now)
		s.demand = float64(unit.Bits(f, 0, 12)) * w.bar
		return false
	case w.speeds:
		if !s.Awake && counter == 0 { // a new bench starts
			s.sensors, s.pressureCounter = newSensors(w.radius, w.teeth, w.smooth), unit.RollingCounter{}
		}
		s.frames[0].Note(s.updateClock(&s.values, f, now), now)
		s.updateSpeeds(decodeFourSpeeds(f, w.radius))
		if woke = s.Wake(now); woke {
			s.BeginCycle(now)
			s.Logf("0.00 s: %s at %.1f m/s", w.turning, s.fastest())
		}
		return woke
	}

	pair := int(f.ID - w.edges)
	s.updateClock(&s.pairs[pair], f, now)
	s.updateEdges(f, pair)
	return false
}

// updateClock advances a clock by the counter of a frame. After a pause in which the counter may have
// wrapped, it marks a gap. It returns the number of frames missing before.
func (s *brake) updateClock(c *clock, f *can.Frame, now time.Time) (lost int64) {
	lost = c.CountMissing(f.Data[7] >> 4)
	c.gap, c.received = now.Sub(c.received) > 15*brakeCycle, now
	s.Counts.Lost += lost
	c.now += float64(1+lost) * brakeCycle.Seconds()
	return lost
}

// trackStops counts the stops with slip control and logs each at its end; v is the speed of the
// vehicle, m/s. It reports whether a stop has begun.
func (s *brake) trackStops(t, v float64, needed, over bool) (begun bool) {
	switch {
	case math.IsNaN(s.stop) && needed:
		s.stop, s.from = t, v
		s.stops++
		return true
	case !math.IsNaN(s.stop) && over:
		s.Logf("%.2f s: from %.1f to %.1f m/s in %.2f s", t, s.from, v, t-s.stop)
		s.stop = math.NaN()
	}

	return false
}

// decodeFourSpeeds reads WheelSpeeds, or AxleSpeeds as speeds at the rim, m/s; radius in m.
func decodeFourSpeeds(f *can.Frame, radius float64) (v [4]float64) {
	for i := range v {
		v[i] = float64(unit.Signed(f, 15*i, 15)) * wheelBit * radius
	}
	return v
}

const (
	edgeBit       = 1e-6   // age of an edge, s per bit, 16 bits
	maxEdgeAge    = 0.0655 // age at the end of its range, s: the wheel stands
	maxEdgeSpeed  = 200.0  // speed above that of any wheel, m/s: the edge count has restarted
	maxIdleCycles = 4      // cycles without edges after which speed values are used
)

// clock is the time of the bench by the counter of a frame that comes every 5 ms. Delayed frames
// arrive all at once; their counters keep their times apart.
type clock struct {
	unit.RollingCounter
	now      float64   // time of the last frame, s
	received time.Time // arrival of the last frame
	gap      bool      // an unknown number of frames is missing before the last one
}

// sensor is a wheel-speed sensor. A unit receives its speed as a value, or the number of edges and
// the age of the last edge. Neither shows the direction.
type sensor struct {
	v, rate float64 // speed at the rim, m/s, and acceleration, m/s2
	mid     float64 // time of v, s
	n       uint8   // edges, modulo 256
	begun   bool    // n is known
	known   bool    // at is known
	at      float64 // time of the last edge, s
}

// update sets the speed at the time mid, s; the acceleration is smoothed over smooth updates.
func (w *sensor) update(v, mid, smooth float64) {
	if d := mid - w.mid; d > 1e-4 {
		w.rate += ((v-w.v)/d - w.rate) / smooth
	}
	w.v, w.mid = v, mid
}

// updateFromEdges takes the number of edges, modulo 256, and the age of the last one, s, that are known at now, s;
// pitch is the distance of two edges at the rim, m. The speed is the mean between the last edges of two
// updates. Without a new edge, the time since the last edge bounds the speed; at maxEdgeAge the wheel
// stands.
func (w *sensor) updateFromEdges(n uint8, age, now, pitch, smooth float64) {
	passed, at := n-w.n, now-age
	begun := w.begun
	w.n, w.begun = n, true
	switch {
	case age >= maxEdgeAge:
		w.known = false
		w.update(0, now, smooth)
	case passed == 0 || !begun:
		if bound := pitch / age; w.known && bound < w.v {
			w.update(bound, now, smooth)
		}
	default:
		if v := float64(passed) * pitch / (at - w.at); w.known && v > 0 && v < maxEdgeSpeed {
			w.update(v, (at+w.at)/2, smooth)
		}
		w.known, w.at = true, at
	}
}

// sensors are the four sensors of a vehicle. While edges are received, the speed values of the same
// sensors are ignored.
type sensors struct {
	wheel  [4]sensor
	values clock    // clock of the frame with speed values
	pairs  [2]clock // clocks of the frames with edges
	idle   int      // cycles since the last edges
	at     float64  // time of the speed values in the previous cycle, s
	pitch  float64  // distance of two edges at the rim, m
	smooth float64  // cycles over which an acceleration is smoothed
}

func newSensors(radius float64, teeth int, smooth float64) sensors {
	return sensors{idle: maxIdleCycles, pitch: 2 * math.Pi * radius / float64(teeth), smooth: smooth}
}

// updateSpeeds sets four speeds at the rim, m/s, unless edges are received.
func (s *sensors) updateSpeeds(v [4]float64) {
	s.idle++
	for i := range s.wheel {
		if s.values.gap {
			s.wheel[i].mid = s.values.now
		}
		if s.idle > maxIdleCycles {
			s.wheel[i].update(math.Abs(v[i]), s.values.now, s.smooth)
		}
	}
}

// updateEdges sets the speeds of a pair of wheels from edges.
func (s *sensors) updateEdges(f *can.Frame, pair int) {
	s.idle = 0
	for i := range 2 {
		if s.pairs[pair].gap {
			s.wheel[2*pair+i].known = false
		}
		n, age := uint8(unit.Bits(f, 24*i, 8)), float64(unit.Bits(f, 24*i+8, 16))*edgeBit
		s.wheel[2*pair+i].updateFromEdges(n, age, s.pairs[pair].now, s.pitch, s.smooth)
	}
}

// fastest returns the speed of the fastest wheel, m/s.
func (s *sensors) fastest() (v float64) {
	for _, w := range s.wheel {
		v = max(v, w.v)
	}
	return v
}
