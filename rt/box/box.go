// Package box owns the virtual box: what is between a bus by wire and the pins of a virtual control unit. It makes the
// edges of the tone wheels at their times, without a dead time, and measures the duties of the unit's outputs. Package
// virtual drives it in virtual time; Server is the box in real time, on UDP. It does not know the plant or the bench: it
// gets images only.
package box

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockstep/io/wire"
	"lockstep/rt/ecu"
)

// Box makes edges from images. Its instants are those of the clock of the caller.
type Box struct {
	image  wire.Image
	tick   time.Duration // of the image
	until  time.Duration // edges before it are made
	wheels [wire.Wheels]toneWheel
	edges  []Edge
}

// toneWheel is an output for a wheel-speed sensor. Its edges have numbers over all turns.
type toneWheel struct {
	next   int64         // number of the next edge of the image
	behind int64         // edges up to this number are behind the sensor
	known  bool          // next is known
	last   time.Duration // instant of the last edge
}

// Edge is an edge of a wheel at an instant.
type Edge struct {
	At    time.Duration
	Wheel int
	Word  uint16 // data word of the AK protocol
}

const (
	// hold is the time for which the wheels go on without a new image.
	hold = 100 * time.Millisecond
	// mostEdges limits the edges of a wheel from one image: 40 kHz over hold.
	mostEdges = 4096
	// mostShift is the number of edges by which an image may correct the one before. A larger shift is another place: a
	// reset of the plant, or the sensor of another wheel.
	mostShift = 4
)

// Take takes an image whose tick is at an instant. Take the edges until then first.
func (b *Box) Take(m *wire.Image, tick time.Duration) {
	b.image, b.tick = *m, tick
	for i := range b.wheels {
		b.wheels[i].follow(&b.image.Wheel[i], (b.until - tick).Seconds())
	}
}

// follow takes over the number of the next edge of an image. The number is known modulo the teeth. An image
// that comes late, s, has edges that are made already.
func (o *toneWheel) follow(w *wire.Wheel, late float64) {
	if w.Direction == 0 || w.Teeth == 0 {
		return
	}
	turn := int64(w.Teeth)
	step := (int64(w.Tooth) - o.next) % turn
	switch {
	case 2*step > turn:
		step -= turn
	case 2*step < -turn:
		step += turn
	}
	o.next += step
	behind := o.next // as the image has it
	if w.Direction > 0 {
		behind--
	}
	made := int64(min(max(late, 0)*math.Abs(w.Speed)/w.Pitch, mostEdges))
	if shift := (behind - o.behind) * int64(w.Direction); !o.known || shift > mostShift || shift < -mostShift-made {
		o.behind, o.known = behind, true
	}
}

// Edges returns the edges since the last call that come before an instant, in the order of time. They are valid until
// the next call.
func (b *Box) Edges(until time.Duration) []Edge {
	b.edges, b.until = b.edges[:0], max(b.until, until)
	within := min(until-b.tick, hold).Seconds()
	for i := range b.wheels {
		b.collect(i, within)
	}
	slices.SortStableFunc(b.edges, func(a, b Edge) int { return cmp.Compare(a.At, b.At) })
	return b.edges
}

// collect appends the edges of a wheel within a time after the tick, s. A line that is broken or short has none.
func (b *Box) collect(i int, within float64) {
	o, w := &b.wheels[i], &b.image.Wheel[i]
	if !o.known || w.Direction == 0 {
		return
	}
	for n := range int64(mostEdges) {
		at := edgeTime(w, n)
		if !(at < within) {
			return
		}
		number, forward := o.next+n*int64(w.Direction), w.Direction > 0
		if forward && number <= o.behind || !forward && number > o.behind {
			continue // made before, from this image or the one before
		}
		if o.behind = number; !forward {
			o.behind--
		}
		o.last = max(o.last, b.tick+time.Duration(1e9*at)) // an image that comes late has edges before those made
		if w.State == wire.Working && !(n < 64 && w.Lost>>n&1 == 1) {
			b.edges = append(b.edges, Edge{o.last, i, w.Word})
		}
	}
}

// edgeTime returns the time of edge n after the image, s, as wire_edge in io/wire/c/wire.h: +Inf without one.
func edgeTime(w *wire.Wheel, n int64) float64 {
	if w.Next == math.MaxInt64 {
		return math.Inf(1)
	}
	t, sign := 1e-9*float64(w.Next), float64(w.Direction)
	v := sign * (w.Speed + w.Accel*t)
	way := float64(n) * w.Pitch
	d := v*v + 2*sign*w.Accel*way
	switch {
	case n == 0:
		return t
	case d < 0 || v+math.Sqrt(d) <= 0:
		return math.Inf(1)
	}
	return t + 2*way/(v+math.Sqrt(d))
}

// SetLines gives the unit the states of the lines of its sensors.
func (b *Box) SetLines(u *ecu.Stepped) {
	for i := range b.wheels {
		u.SetLine(i, ecu.Line(b.image.Wheel[i].State))
	}
}

// pwmFrequency is that of the outputs of a virtual control unit, Hz.
const pwmFrequency = 2000

// Measure sets the PWM channels of an image to the duties of the outputs; nil: the unit has no supply.
func Measure(m *wire.Image, u *ecu.Stepped) {
	m.PWM = [wire.PWMs]wire.PWM{}
	if u == nil {
		return
	}
	for i, duty := range u.Duties() {
		m.PWM[i] = wire.PWM{Duty: duty, Frequency: pwmFrequency}
	}
}
