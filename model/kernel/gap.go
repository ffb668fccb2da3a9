package kernel

import "math"

// A gap is a friction element that cannot be overloaded one way and carries nothing
// the other way: a freewheel that is there only while the gap is closed. It is Free
// while open and Stuck in contact; between them lies an impact.

// Struck is what a gap becomes for an instant when it closes with an impact; in
// events only.
const Struck int8 = 3

// opening is how far gap i is open in state x.
//
//go:nosplit
func (k *Kernel) opening(i int, x []float64) float64 {
	g := k.t.Friction[i].Gap
	return g.Sign * (x[g.State] - g.Limit)
}

// shut puts gap i to exactly zero, which takes out rounding only.
//
//go:nosplit
func (k *Kernel) shut(i int) {
	g := k.t.Friction[i].Gap
	k.x[g.State] = g.Limit
}

// closes reports whether open gap i can close in the piece: the cubic through both
// ends and slopes comes close to zero, as seen from its control points and what a sine
// of at most one radian departs from it, or it is closed now and must leave.
//
//go:nosplit
func (k *Kernel) closes(i int) bool {
	a, b := k.opening(i, k.x), k.opening(i, k.x1)
	if a <= 0 || b <= 0 {
		return true
	}
	r, s := k.length*k.slip[i], k.length*k.slip1[i]
	bend := k.length * k.length * k.slips.dot(i, k.xd)
	return min(a, a+r/3, b-s/3, b) <= 0.02*(math.Abs(r)+math.Abs(s)+math.Abs(bend))
}

// overlapZero is the overlap of a closed gap over a piece that is rounding, and the part
// of its motion that is, m or rad.
const overlapZero = 1e-13

// openingPoly sets poly to the opening of gap i over the piece. Of a gap that is
// closed at the start the root there is divided out; of one that has just parted,
// without a speed, twice.
//
//go:nosplit
func (k *Kernel) openingPoly(i int) {
	n, g := k.t.N, k.t.Friction[i].Gap
	clear(k.poly)
	for j := range k.degree + 1 {
		k.poly[j] = g.Sign * k.c[j*n+g.State]
	}
	k.poly[0] = max(0, k.opening(i, k.x))
	if k.poly[0] > 0 {
		return
	}
	roots := 1
	if k.fresh[i] {
		roots = 2
	}
	copy(k.poly, k.poly[roots:])
	clear(k.poly[len(k.poly)-roots:])
	size := 0.0
	for _, c := range k.poly {
		size += math.Abs(c)
	}
	if k.poly[0] > -overlapZero*(1+size) { // otherwise it closes again at once
		k.poly[0] = max(0, k.poly[0])
	}
}

// part makes the gaps open again whose contact the torques do not hold.
//
//go:nosplit
func (k *Kernel) part() {
	for _, i := range k.t.Gapped {
		if k.mode[i] == Forward {
			k.set(i, Free)
			k.shut(i)
		}
	}
}

// maxStruck is how many impacts of a tick rebound: a pile of them then ends in
// contact, as one does whose rebound is too slow or too short.
const maxStruck = 40

// strike is the impact of gap i (000 eq. 107, 108). The impulse goes through what
// cannot close, closed gaps and freewheels, one after the other; clutches and springs
// transmit none: what is stuck may slip afterwards. It reports whether the gap closed.
//
//go:nosplit
func (k *Kernel) strike(i int, local float64) bool {
	k.shut(i)
	k.slips.mul(k.slip, k.x)
	if k.slip[i] > slipZero {
		return false
	}
	copy(k.before, k.mode)
	if k.slip[i] < -slipZero {
		k.record(Event{Time: k.grid() + local, Friction: i, From: k.mode[i], To: Struck})
		k.struck++
	}
	j := i
	for tries := maxStruck + 4*k.t.Mc; j >= 0 && tries > 0; tries-- {
		k.bounce(j)
		j = k.closing()
	}
	k.regrip()
	for range k.t.Mc { // the rest of a pile is plastic
		if j < 0 {
			break
		}
		k.set(j, Stuck)
		k.land()
		k.slips.mul(k.slip, k.x)
		j = k.closing()
	}
	k.relocate(local)
	k.joint.resolve(k)
	k.land()
	k.count(local)
	k.events++
	return true
}

// bounce gives gap or freewheel i its impulse, momentum kept.
//
//go:nosplit
func (k *Kernel) bounce(i int) {
	f, e := &k.t.Friction[i], 0.0
	if f.Gap != nil {
		if e = f.Gap.Restitution; k.struck > maxStruck || 2*k.stalled > k.pile() || k.rests(i, -e*k.slip[i]) {
			e = 0
		}
		k.fresh[i] = false
		if k.set(i, Stuck); e > 0 {
			k.set(i, Free)
		}
	}
	k.pushes.axpy(k.x, -(1+e)*k.slip[i]/k.mobility(i), i)
	k.slips.mul(k.slip, k.x)
}

// flight is the time in the air below which a rebound is none, s.
const flight = 1e-9

// rests reports whether a rebound of gap i at speed s ends at once.
//
//go:nosplit
func (k *Kernel) rests(i int, s float64) bool {
	k.rates(k.w)
	return s <= slipZero || 2*s < -flight*k.slips.dot(i, k.xd)
}

// closing is the closed gap or freewheel that an impulse closes fastest; -1 for none.
//
//go:nosplit
func (k *Kernel) closing() int {
	worst, most := -1, -slipZero
	for i, s := range k.slip {
		f := &k.t.Friction[i]
		if s < most && f.OneWay && (f.Gap == nil || k.mode[i] == Stuck || k.opening(i, k.x) <= 0) {
			worst, most = i, s
		}
	}
	return worst
}

// regrip brings the modes in line with the slips behind an impact.
//
//go:nosplit
func (k *Kernel) regrip() {
	for i, s := range k.slip {
		switch {
		case k.mode[i] == Free:
		case k.t.Friction[i].Gap == nil:
			k.set(i, k.rest(i, s))
		case s > slipZero:
			k.set(i, Free)
		}
	}
}

// overlap ends a piece that was taken without looking: a gap that has closed in it is
// in contact.
//
//go:nosplit
func (k *Kernel) overlap() bool {
	any := false
	for _, i := range k.t.Gapped {
		if k.mode[i] == Free && k.opening(i, k.x) < 0 {
			k.shut(i)
			k.set(i, Stuck)
			any = true
		}
	}
	return any
}
