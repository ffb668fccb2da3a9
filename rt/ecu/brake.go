package ecu

import (
	"fmt"
	"math"
	"time"

	"github.com/brutella/can"
)

// brakeCycle is how often a unit of a brake sends, and hears the speeds of the wheels.
const brakeCycle = 5 * time.Millisecond

// brakeWiring is how a unit of a brake sees its vehicle.
type brakeWiring struct {
	speeds   uint32  // frame of the four speeds, which wakes the unit
	pressure uint32  // frame of the pressure that the driver asks for
	edges    uint32  // frame of the edges of the first two wheels; the other two are in the next one
	turning  string  // what turns
	radius   float64 // m, of the wheels
	teeth    int     // of their sensors
	smooth   float64 // cycles over which an acceleration is smoothed
	bar      float64 // bar per bit of the pressure, 12 bits
}

// hears lists the identifiers that concern the unit.
func (w *brakeWiring) hears() []uint32 {
	return []uint32{w.speeds, w.pressure, w.edges, w.edges + 1}
}

// brake is what the slip controllers of brakes have in common: sensors at four wheels, the
// pressure that the driver asks for, and the stops in which the unit was needed.
type brake struct {
	*session
	sensors
	wiring *brakeWiring
	demand float64 // bar
	asked  rolling // of the frame of the pressure

	stops int
	stop  float64 // s, when the stop under way began; NaN outside
	from  float64 // m/s, at that time
}

func newBrake(s *session, w *brakeWiring) brake {
	return brake{session: s, sensors: newSensors(w.radius, w.teeth, w.smooth), wiring: w, stop: math.NaN()}
}

// listen takes a frame from the bus, and reports whether it has woken the unit.
func (s *brake) listen(f *can.Frame, now time.Time) (woke bool) {
	if !s.accept(f) {
		return false
	}
	w, counter := s.wiring, f.Data[7]>>4
	switch f.ID {
	case w.pressure:
		s.counts.Lost += s.asked.missing(counter)
		s.demand = float64(bits(f, 0, 12)) * w.bar
		return false
	case w.speeds:
		if !s.awake && counter == 0 { // another bench begins
			s.sensors, s.asked = newSensors(w.radius, w.teeth, w.smooth), rolling{}
		}
		s.follow(&s.values, f, now)
		s.take(fourSpeeds(f, w.radius))
		if woke = s.wake(now); woke {
			fmt.Fprintf(s.log, "%s: 0.00 s: %s at %.1f m/s\n", s.name, w.turning, s.fastest())
		}
		return woke
	}

	pair := int(f.ID - w.edges)
	s.follow(&s.pairs[pair], f, now)
	s.takeEdges(f, pair)
	return false
}

// follow takes the counter of a frame, and with it the time, unless the counter may have gone
// round in between.
func (s *brake) follow(c *clock, f *can.Frame, now time.Time) {
	lost := c.missing(f.Data[7] >> 4)
	c.gap, c.heard = now.Sub(c.heard) > 15*brakeCycle, now
	s.counts.Lost += lost
	c.now += float64(1+lost) * brakeCycle.Seconds()
}

// track counts the stops in which the unit is needed, and logs each when it is over; v is the
// speed of the vehicle, m/s. It reports whether one has begun.
func (s *brake) track(t, v float64, needed, over bool) (begun bool) {
	switch {
	case math.IsNaN(s.stop) && needed:
		s.stop, s.from = t, v
		s.stops++
		return true
	case !math.IsNaN(s.stop) && over:
		fmt.Fprintf(s.log, "%s: %.2f s: from %.1f to %.1f m/s in %.2f s\n", s.name, t, s.from, v, t-s.stop)
		s.stop = math.NaN()
	}

	return false
}

// fourSpeeds reads WheelSpeeds, or AxleSpeeds, m/s at rims of that radius, m.
func fourSpeeds(f *can.Frame, radius float64) (v [4]float64) {
	for i := range v {
		v[i] = float64(signed(f, 15*i, 15)) * wheelBit * radius
	}
	return v
}

const (
	edgeBit    = 1e-6   // s per bit of the age of an edge, 16 bits
	edgeOldest = 0.0655 // s; at the end of its range an age tells no more than that
	edgeSwift  = 200.0  // m/s, more than any wheel has: the count has begun anew
	edgeSpare  = 4      // cycles without edges after which values count again
)

// clock follows the counter of a frame that comes every 5 ms: frames that waited come all
// at once, and their time is the bench's.
type clock struct {
	rolling
	now   float64 // s
	heard time.Time
	gap   bool // nobody knows how many frames are missing before the latest
}

// sensor is a wheel-speed sensor as a unit hears it: as values, or as the number of edges
// and the age of the last one, which do not tell the direction either.
type sensor struct {
	v, rate float64 // at the rim, m/s and m/s2
	mid     float64 // s, at which v was so
	n       uint8   // edges, modulo 256
	begun   bool    // n is known
	known   bool    // so is at
	at      float64 // s, of the latest edge
}

// is takes a speed for an instant; the rate follows within some of them.
func (w *sensor) is(v, mid, some float64) {
	if d := mid - w.mid; d > 1e-4 {
		w.rate += ((v-w.v)/d - w.rate) / some
	}
	w.v, w.mid = v, mid
}

// edges takes the count and the age at bit from of a frame of that instant; the edges are a
// pitch apart on the rim, m. The speed is the mean one between the latest edges of two
// frames, as exact as their ages. Without an edge the wheel is at most so fast that the
// next one is due, and once an age is at its end it stands.
func (w *sensor) edges(f *can.Frame, from int, now, pitch, some float64) {
	n, age := uint8(bits(f, from, 8)), float64(bits(f, from+8, 16))*edgeBit
	passed, at := n-w.n, now-age
	begun := w.begun
	w.n, w.begun = n, true
	switch {
	case age >= edgeOldest:
		w.known = false
		w.is(0, now, some)
	case passed == 0 || !begun:
		if bound := pitch / age; w.known && bound < w.v {
			w.is(bound, now, some)
		}
	default:
		if v := float64(passed) * pitch / (at - w.at); w.known && v > 0 && v < edgeSwift {
			w.is(v, (at+w.at)/2, some)
		}
		w.known, w.at = true, at
	}
}

// sensors are the four of a vehicle. Where edges are heard they count, and the values of the
// same sensors do not.
type sensors struct {
	wheel  [4]sensor
	values clock
	pairs  [2]clock // of the frames with edges
	spare  int      // cycles since the latest edges
	at     float64  // s, of the values in the cycle before
	pitch  float64  // m
	some   float64
}

func newSensors(radius float64, teeth int, some float64) sensors {
	return sensors{spare: edgeSpare, pitch: 2 * math.Pi * radius / float64(teeth), some: some}
}

// take takes four speeds at the rim, m/s.
func (s *sensors) take(v [4]float64) {
	s.spare++
	for i := range s.wheel {
		if s.values.gap {
			s.wheel[i].mid = s.values.now
		}
		if s.spare > edgeSpare {
			s.wheel[i].is(math.Abs(v[i]), s.values.now, s.some)
		}
	}
}

// takeEdges takes the edges of a pair of wheels.
func (s *sensors) takeEdges(f *can.Frame, pair int) {
	s.spare = 0
	for i := range 2 {
		if s.pairs[pair].gap {
			s.wheel[2*pair+i].known = false
		}
		s.wheel[2*pair+i].edges(f, 24*i, s.pairs[pair].now, s.pitch, s.some)
	}
}

// fastest is the speed of the fastest wheel, m/s.
func (s *sensors) fastest() (v float64) {
	for _, w := range s.wheel {
		v = max(v, w.v)
	}
	return v
}
