package kernel

import (
	"math"

	"lockstep/model"
)

// A wheel-speed sensor only looks: its edges are no events, cut no piece and change
// nothing. They lie on the polynomial on which events are found, so their times are
// exact to rounding (in the held form, on its line). Of the edges of a piece only the
// number and the last two are wanted: the cost does not grow with the speed.

// pulse is what a sensor has given so far.
type pulse struct {
	edge   int64   // the last one at or below the angle
	count  int64   // edges passed since the start, in either direction
	side   float64 // in which the last one was passed, 1 or -1; 0: none was
	last   stamp   // of the last edge, before the first of the start
	before stamp   // of the one before
}

// sensors are all of them.
type sensors struct {
	pulse   []pulse
	saved   []pulse // before the tick
	counted []int64 // as published
}

func sensing(t *Tables) sensors {
	n := len(t.Pulses)
	return sensors{make([]pulse, n), make([]pulse, n), make([]int64, n)}
}

// stamp is an instant, local s after the grid time of a tick: as fine after days as
// at the start.
type stamp struct {
	tick  int64
	local float64
}

// noEdge is the part of a pitch, and of the angle, by which one must go back before
// the same edge counts again: a wheel at rest on an edge gives none by rounding.
const (
	noEdge      = 1e-9
	noEdgeAngle = 1e-15
)

// farthest is the angle up to which edges are counted, rad: beyond it they are finer
// than its last bit.
const farthest = 1e12

// pulses goes through the part of a piece that is taken, before the state does.
//
//go:nosplit
func (k *Kernel) pulses(local, part float64, expanded bool) {
	for i := range k.pulse {
		if !k.nears(i) {
			continue
		}
		if !expanded {
			k.calls.expand(k, k.x)
			expanded = true
		}
		k.calls.turns(k, i, local, part)
	}
}

// nears reports whether sensor i can pass an edge in the piece: whether one lies among
// the control points of the cubic through both ends and slopes, within what a sine of
// at most one radian departs from it.
//
//go:nosplit
func (k *Kernel) nears(i int) bool {
	d := &k.t.Pulses[i]
	a, b := k.x[d.State], k.x1[d.State]
	if !(math.Abs(a) < farthest && math.Abs(b) < farthest) {
		return false
	}
	if k.t.Form == Held { // A is not what a step makes of it
		return true
	}
	r, s := k.ends(d.State)
	room := 0.02 * (math.Abs(r) + math.Abs(s) + math.Abs(b-a))
	lo, hi := min(a, a+r/3, b-s/3, b)-room, max(a, a+r/3, b-s/3, b)+room
	if !(lo > -farthest && hi < farthest) {
		return false
	}
	return edgeBelow(d, lo) != k.pulse[i].edge || edgeBelow(d, hi) != k.pulse[i].edge
}

// ends are the slopes of a state at both ends of the piece, per piece.
//
//go:nosplit
func (k *Kernel) ends(state int) (r, s float64) {
	n := k.t.N
	if k.t.Net != nil { // it is expanded
		for j := 1; j <= k.degree; j++ {
			s += float64(j) * k.c[j*n+state]
		}
		return k.c[n+state], s
	}
	m := k.use()
	k.instant(0)
	r = k.length * (dotRow(m.A, state, k.x) + dotRow(m.B, state, k.w))
	k.instant(1)
	s = k.length * (dotRow(m.A, state, k.x1) + dotRow(m.B, state, k.w))
	return r, s
}

// turns takes sensor i through the part of the expanded piece, in stretches between
// which the wheel turns back.
//
//go:nosplit
func (k *Kernel) turns(i int, local, part float64) {
	state, from := k.t.Pulses[i].State, 0.0
	k.anglePoly(state, 1, 1)
	steady, bend := math.Abs(k.poly[0]), 0.0
	for _, c := range k.poly[1:] {
		bend += math.Abs(c)
	}
	if steady <= bend {
		at, slope := 0.0, k.polyAt(0)
		for j := 1; j <= rootSamples; j++ {
			b := part * float64(j) / rootSamples
			next := k.polyAt(b)
			if slope*next < 0 {
				k.anglePoly(state, 1, math.Copysign(1, slope))
				turn := k.calls.refine(k, thePoly, at, b, math.Abs(slope), -math.Abs(next))
				k.stretch(i, local, from, turn)
				k.anglePoly(state, 1, 1)
				from = turn
			}
			if next != 0 {
				at, slope = b, next
			}
		}
	}
	k.stretch(i, local, from, part)
}

// anglePoly sets poly to side times the angle of a sensor over the expanded piece, or
// with derivative 1 to its slope.
//
//go:nosplit
func (k *Kernel) anglePoly(state, derivative int, side float64) {
	n := k.t.N
	clear(k.poly)
	for j := derivative; j <= k.degree; j++ {
		c := side * k.c[j*n+state]
		if derivative == 1 {
			c *= float64(j)
		}
		k.poly[j-derivative] = c
	}
}

// stretch takes sensor i from place a to b of the expanded piece, between which its
// angle goes one way. An edge passed last is not passed back by rounding.
//
//go:nosplit
func (k *Kernel) stretch(i int, local, a, b float64) {
	p, d := &k.pulse[i], &k.t.Pulses[i]
	k.anglePoly(d.State, 0, 1)
	end, side := k.polyAt(b), int64(1)
	to := edgeBelow(d, end)
	next := p.edge + 1
	if to < p.edge {
		side, next = -1, p.edge
	}
	passed := side * (to - p.edge)
	if passed == 1 && float64(side) == -p.side {
		back := noEdge*2*math.Pi/float64(d.Teeth) + noEdgeAngle*math.Abs(end)
		if float64(side)*(end-edgeAt(d, next)) < back {
			return
		}
	}
	if passed == 0 {
		return
	}
	last := next + side*(passed-1)
	if passed > 1 {
		p.last = stamp{k.tick, local + k.passing(i, last-side, side, a, b)*k.length}
	}
	p.before = p.last
	p.last = stamp{k.tick, local + k.passing(i, last, side, a, b)*k.length}
	p.edge, p.count, p.side = to, p.count+passed, float64(side)
}

// passing is where between a and b the angle of sensor i goes through an edge.
//
//go:nosplit
func (k *Kernel) passing(i int, edge, side int64, a, b float64) float64 {
	d := &k.t.Pulses[i]
	k.anglePoly(d.State, 0, -float64(side))
	k.poly[0] += float64(side) * edgeAt(d, edge)
	before, behind := k.polyAt(a), k.polyAt(b)
	if before <= 0 { // by rounding it was passed already
		return a
	}
	return k.calls.refine(k, thePoly, a, b, before, min(behind, 0))
}

// edgeAt is the angle of an edge, rad.
//
//go:nosplit
func edgeAt(d *model.Pulses, edge int64) float64 {
	pitches := float64(edge) + 0.5
	if d.Runout != 0 {
		teeth := int64(d.Teeth)
		pitches += d.Runout * sin(2*math.Pi*float64(edge%teeth)/float64(teeth))
	}
	return pitches * (2 * math.Pi / float64(d.Teeth))
}

// edgeBelow is the last edge at or below an angle. Edge i lies within pitch i, as
// Runout is at most a half.
//
//go:nosplit
func edgeBelow(d *model.Pulses, angle float64) int64 {
	edge := int64(floor(angle*float64(d.Teeth)/(2*math.Pi))) + 1
	for range 2 {
		if edgeAt(d, edge) <= angle {
			break
		}
		edge--
	}
	return edge
}

// resetPulses has every sensor begin at the angle of its wheel.
//
//go:nosplit
func (k *Kernel) resetPulses() {
	for i := range k.pulse {
		d := &k.t.Pulses[i]
		k.pulse[i], k.counted[i] = pulse{edge: edgeBelow(d, k.x[d.State])}, 0
	}
}

// showPulses writes the outputs of the sensors at the grid time: the count, the time
// since the last edge and that between the last two. A count that a prediction gave is
// not taken back.
//
//go:nosplit
func (k *Kernel) showPulses(y []float64) {
	for i := range k.pulse {
		p, at := &k.pulse[i], k.t.Pulses[i].Output
		k.counted[i] = max(k.counted[i], p.count)
		y[at] = float64(k.counted[i])
		y[at+1] = max(0, float64(k.tick-p.last.tick)*k.h-p.last.local)
		if p.count > 1 {
			y[at+2] = float64(p.last.tick-p.before.tick)*k.h + p.last.local - p.before.local
		}
	}
}
