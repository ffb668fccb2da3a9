package virtual

import (
	"cmp"
	"math"
	"slices"
	"time"

	"lockstep/io/can"
	"lockstep/io/wire"
	"lockstep/rt/ecu"
)

// box is the box of a bus by wire in virtual time, between the loop and the wires of a virtual control unit. It makes
// the edges of the tone wheels at their times, without a dead time, and measures the duties of the outputs.
type box struct {
	bus    int
	end    *can.Bus
	times  *can.Times    // arrivals of its messages
	period time.Duration // of the images

	image  wire.Outgoing
	tick   time.Duration // of the image
	wheels [wire.Wheels]toneWheel
	edges  []edge // of a period, in the order of time

	measured wire.Image
	take     []uint32 // messages of the box that the bench receives
	frames   [32]can.Frame
}

// toneWheel is an output for a wheel-speed sensor. Its edges have numbers over all turns.
type toneWheel struct {
	next   int64 // number of the next edge of the image
	behind int64 // edges up to this number are behind the sensor
	known  bool  // next is known
}

// edge is an edge of a wheel at an instant.
type edge struct {
	at    time.Duration
	wheel int
	word  uint16
}

// newBox returns the box of the first bus by wire of the bench; nil: there is none.
func newBox(w *simulation) *box {
	h := w.view.Handover
	for i := range h.Bench.Buses {
		if !h.Bench.Buses[i].ByWire || w.unitEnds[i] == nil {
			continue
		}
		x := &box{bus: i, end: w.unitEnds[i], times: w.buses[i].Times, period: w.Step}
		for _, id := range wire.Received {
			if slices.ContainsFunc(h.LogFilters(i), func(f can.Filter) bool { return id&f.Mask == f.ID&f.Mask }) {
				x.take = append(x.take, id)
			}
		}
		return x
	}
	return nil
}

// receive takes the messages of the loop at a grid point as an image. Without messages the wheels go on.
func (x *box) receive(now time.Duration) {
	for n := x.end.Recv(x.frames[:]); n > 0; n = x.end.Recv(x.frames[:]) {
		for i := range n {
			x.image.Put(x.frames[i].ID, &x.frames[i].Data)
		}
	}
	x.image.Tick, x.tick = int64(now), now
	x.image.Finish()
	for i := range x.wheels {
		x.wheels[i].follow(&x.image.Wheel[i])
	}
}

// follow takes over the number of the next edge of an image. The number is known modulo the teeth.
func (o *toneWheel) follow(w *wire.Wheel) {
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
	if !o.known {
		o.behind = int64(w.Tooth)
		if w.Direction > 0 {
			o.behind--
		}
		step, o.known = int64(w.Tooth)-o.next, true
	}
	o.next += step
}

// drive gives the unit the edges and lines of the period that begins at the image, with its cycles in between.
func (x *box) drive(u *ecu.Stepped, begun time.Duration) error {
	x.edges = x.edges[:0]
	for i := range x.wheels {
		u.SetLine(i, ecu.Line(x.image.Wheel[i].State))
		x.collect(i)
	}
	slices.SortStableFunc(x.edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	for _, e := range x.edges {
		if err := u.Tick(e.at - begun); err != nil {
			return err
		}
		u.Edge(e.wheel, e.at-begun, e.word)
	}
	return nil
}

// collect appends the edges of a wheel until the next image. A line that is broken or short has none.
func (x *box) collect(i int) {
	o, w := &x.wheels[i], &x.image.Wheel[i]
	if !o.known || w.Direction == 0 {
		return
	}
	for n := int64(0); ; n++ {
		at := edgeTime(w, n)
		if !(at < x.period.Seconds()) {
			return
		}
		number, forward := o.next+n*int64(w.Direction), w.Direction > 0
		if forward && number <= o.behind || !forward && number > o.behind {
			continue // made before, from the image before
		}
		if o.behind = number; !forward {
			o.behind--
		}
		if w.State == wire.Working && !(n < 64 && w.Lost>>n&1 == 1) {
			x.edges = append(x.edges, edge{x.tick + time.Duration(1e9*at), i, w.Word})
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

// pwmFrequency is that of the outputs of the virtual control unit, Hz.
const pwmFrequency = 2000

// measure sends the duties of the outputs as they are at an instant; nil: the unit has no supply.
func (x *box) measure(u *ecu.Stepped, now time.Duration) {
	m := &x.measured
	m.PWM = [wire.PWMs]wire.PWM{}
	if u != nil {
		for i, duty := range u.Duties() {
			m.PWM[i] = wire.PWM{Duty: duty, Frequency: pwmFrequency}
		}
	}
	m.Tick = int64(now)
	for _, id := range x.take {
		f := can.Frame{ID: id}
		if f.Len = m.Message(id, &f.Data); f.Len > 8 {
			f.Flags = can.FlagFDF
		}
		if x.end.Send(&f) {
			x.times.Add(int64(now))
		}
	}
	m.Counter++
}
