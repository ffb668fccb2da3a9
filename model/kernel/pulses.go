package kernel

import (
	"math"

	"lockstep/model"
)

// The edges of a wheel-speed sensor are not events: they end no substep and change
// no state. They lie on the polynomial on which events are located, so their times are
// exact to rounding (in the held form, on its line). Of the edges of a substep only the
// number and the last two are computed, so the cost does not grow with the speed.

// pulse is the state of a sensor.
type pulse struct {
	edge       int64    // number of the last edge at or below the angle
	count      int64    // edges passed since the start, in either direction
	side       float64  // direction in which the last edge was passed, 1 or -1; 0: none passed
	last       edgeTime // time of the last edge; the start before the first
	beforeLast edgeTime // time of the edge before the last
}

// sensors is the working memory of all sensors, besides their state in plantState.
type sensors struct {
	savedPulse     []pulse // state before the tick
	publishedCount []int64 // counts as published
}

// edgeTime is an instant, local s after the grid time of a tick: its resolution does not fall with
// time.
type edgeTime struct {
	tick  int64
	local float64
}

// The wheel must go back by this part of a pitch, plus this part of the angle, before the same edge
// counts again. A wheel at rest on an edge then gives no pulses by rounding.
const (
	edgeHysteresis = 1e-9
	edgeRounding   = 1e-15
)

// maxAngle is the angle up to which edges are counted, rad: above it they are finer than its last
// bit.
const maxAngle = 1e12

// countPulses counts the edges in the part of a substep that is taken, before the state advances.
//
//go:nosplit
func (k *Kernel) countPulses(local, end float64, expanded bool) {
	for i := range k.pulse {
		if !k.mayPassEdge(i) {
			continue
		}
		if !expanded {
			k.calls.expand(k, k.x)
			expanded = true
		}

		k.calls.countEdges(k, i, local, end)
	}
}

// mayPassEdge reports whether sensor i can pass an edge in the substep. It checks the control
// points of the cubic through both ends and slopes, within the deviation of a sine of at most one
// radian from it.
//
//go:nosplit
func (k *Kernel) mayPassEdge(i int) bool {
	d := &k.t.Pulses[i]
	a, b := k.x[d.State], k.x1[d.State]
	if !(math.Abs(a) < maxAngle && math.Abs(b) < maxAngle) {
		return false
	}
	if k.t.Form == Held { // here A does not give the slope
		return true
	}
	r, s := k.endSlopes(d.State)
	room := float64(0.02 * (math.Abs(r) + math.Abs(s) + math.Abs(b-a)))
	lo, hi := min(a, a+r/3, b-s/3, b)-room, max(a, a+r/3, b-s/3, b)+room
	if !(lo > -maxAngle && hi < maxAngle) {
		return false
	}
	return edgeBelow(d, lo) != k.pulse[i].edge || edgeBelow(d, hi) != k.pulse[i].edge
}

// endSlopes returns the slopes of a state at both ends of the substep, per substep.
//
//go:nosplit
func (k *Kernel) endSlopes(state int) (r, s float64) {
	n := k.t.N
	if k.t.Sparse != nil { // the substep is expanded
		for j := 1; j <= k.degree; j++ {
			s += float64(float64(j) * k.c[j*n+state])
		}
		return k.c[n+state], s
	}

	m := k.currentMode()
	k.setInstant(0)
	r = float64(k.length * (dotRow(m.A, state, k.x) + dotRow(m.B, state, k.w)))
	k.setInstant(1)
	s = float64(k.length * (dotRow(m.A, state, k.x1) + dotRow(m.B, state, k.w)))
	return r, s
}

// countEdges counts the edges of sensor i in the part of the expanded substep, between reversals of
// the wheel.
//
//go:nosplit
func (k *Kernel) countEdges(i int, local, end float64) {
	state, from := k.t.Pulses[i].State, 0.0
	k.anglePoly(state, 1, 1)
	slope0, variation := math.Abs(k.poly[0]), 0.0
	for _, c := range k.poly[1:] {
		variation += math.Abs(c)
	}
	if slope0 <= variation {
		at, slope := 0.0, k.polyAt(0)
		for j := 1; j <= rootSamples; j++ {
			b := float64(end * float64(j) / rootSamples)
			next := k.polyAt(b)
			if slope*next < 0 {
				k.anglePoly(state, 1, math.Copysign(1, slope))
				turn := k.calls.refineRoot(k, polynomial, at, b, math.Abs(slope), -math.Abs(next))
				k.countMonotonic(i, local, from, turn)
				k.anglePoly(state, 1, 1)
				from = turn
			}

			if next != 0 {
				at, slope = b, next
			}
		}
	}

	k.countMonotonic(i, local, from, end)
}

// anglePoly sets poly to side times the angle of a sensor over the expanded substep, or with
// derivative 1 to the slope of the angle.
//
//go:nosplit
func (k *Kernel) anglePoly(state, derivative int, side float64) {
	n := k.t.N
	clear(k.poly)
	for j := derivative; j <= k.degree; j++ {
		c := float64(side * k.c[j*n+state])
		if derivative == 1 {
			c = float64(c * float64(j))
		}
		k.poly[j-derivative] = c
	}
}

// countMonotonic counts the edges of sensor i from place a to b of the expanded substep, between
// which its angle is monotonic. Rounding never passes the last edge back.
//
//go:nosplit
func (k *Kernel) countMonotonic(i int, local, a, b float64) {
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
		back := edgeHysteresis*2*math.Pi/float64(d.Teeth) + float64(edgeRounding*math.Abs(end))
		if float64(side)*(end-edgeAt(d, next)) < back {
			return
		}
	}

	if passed == 0 {
		return
	}
	last := next + side*(passed-1)
	if passed > 1 {
		p.last = edgeTime{k.tick, local + float64(k.locateEdge(i, last-side, side, a, b)*k.length)}
	}
	p.beforeLast = p.last
	p.last = edgeTime{k.tick, local + float64(k.locateEdge(i, last, side, a, b)*k.length)}
	p.edge, p.count, p.side = to, p.count+passed, float64(side)
}

// locateEdge returns the place between a and b at which the angle of sensor i passes an edge.
//
//go:nosplit
func (k *Kernel) locateEdge(i int, edge, side int64, a, b float64) float64 {
	d := &k.t.Pulses[i]
	k.anglePoly(d.State, 0, -float64(side))
	k.poly[0] += float64(float64(side) * edgeAt(d, edge))
	before, after := k.polyAt(a), k.polyAt(b)
	if before <= 0 { // rounding has passed the edge already
		return a
	}
	return k.calls.refineRoot(k, polynomial, a, b, before, min(after, 0))
}

// edgeAt returns the angle of an edge, rad.
//
//go:nosplit
func edgeAt(d *model.Pulses, edge int64) float64 {
	pitches := float64(edge) + 0.5
	if d.Runout != 0 {
		teeth := int64(d.Teeth)
		pitches += float64(d.Runout * sin(2*math.Pi*float64(edge%teeth)/float64(teeth)))
	}

	return float64(pitches * (2 * math.Pi / float64(d.Teeth)))
}

// edgeBelow returns the last edge at or below an angle, which it limits to maxAngle: processors convert
// a number beyond int64 differently. Edge i lies within pitch i, as Runout is at most a half.
//
//go:nosplit
func edgeBelow(d *model.Pulses, angle float64) int64 {
	switch {
	case angle > maxAngle:
		angle = maxAngle
	case !(angle >= -maxAngle): // NaN, too
		angle = -maxAngle
	}
	edge := int64(floor(angle*float64(d.Teeth)/(2*math.Pi))) + 1
	for range 2 {
		if edgeAt(d, edge) <= angle {
			break
		}
		edge--
	}

	return edge
}

// resetPulses starts every sensor at the angle of its wheel.
//
//go:nosplit
func (k *Kernel) resetPulses() {
	for i := range k.pulse {
		d := &k.t.Pulses[i]
		k.pulse[i], k.publishedCount[i] = pulse{edge: edgeBelow(d, k.x[d.State])}, 0
	}
}

// writePulses writes the outputs of the sensors at the grid time: the count, the time since the
// last edge and the time between the last two, s. A count that a prediction published is not taken
// back.
//
//go:nosplit
func (k *Kernel) writePulses(y []float64) {
	for i := range k.pulse {
		p, at := &k.pulse[i], k.t.Pulses[i].Output
		k.publishedCount[i] = max(k.publishedCount[i], p.count)
		y[at] = float64(k.publishedCount[i])
		y[at+1] = max(0, float64(float64(k.tick-p.last.tick)*k.h)-p.last.local)
		if p.count > 1 {
			y[at+2] = float64(float64(p.last.tick-p.beforeLast.tick)*k.h) + p.last.local - p.beforeLast.local
		}
	}
}
