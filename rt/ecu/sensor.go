package ecu

import (
	"math"
	"time"

	"github.com/brutella/can"
)

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
