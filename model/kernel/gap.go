package kernel

import (
	"math"
	"math/bits"
)

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

// maxStruck is how many impacts of a gap rebound in a tick, whatever the time between
// them: a pile then ends in contact.
const maxStruck = 40

// strike is the impact of gap i (000 eq. 107, 108). The impulse goes through what
// cannot close, closed gaps and freewheels, one after the other, but for those hit from
// both sides at once; clutches and springs transmit none: what is stuck may slip
// afterwards. It reports whether the gap closed.
//
//go:nosplit
func (k *Kernel) strike(i int, local float64) bool {
	k.shut(i)
	k.slips.mul(k.slip, k.x)
	if k.slip[i] > slipZero {
		return false
	}
	copy(k.before, k.mode)
	for r := k.together(i); r != 0; r &= r - 1 {
		if q := k.blocks[k.home[i].block].Of[bits.TrailingZeros64(r)]; k.slip[q] < -slipZero && k.mode[q] == Free {
			k.record(Event{Time: k.grid() + local, Friction: q, From: Free, To: Struck})
			k.struck[q]++
		}
	}
	j := k.collide(i)
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
	k.calls.resolve(k)
	k.land()
	k.count(local)
	k.events++
	return true
}

// collide lets gap or freewheel j hit, and one after the other those that then close. It
// returns the one that still closes when there were too many, -1 for none.
//
//go:nosplit
func (k *Kernel) collide(j int) int {
	for tries := maxStruck + 4*k.t.Mc; j >= 0 && tries > 0; tries-- {
		k.blow(&k.blocks[k.home[j].block], k.together(j))
		j = k.closing()
	}
	return j
}

// together is gap or freewheel j and those that close at this instant against it and each
// other, or out of their reach.
//
//go:nosplit
func (k *Kernel) together(j int) uint64 {
	at := k.home[j]
	g, set := &k.blocks[at.block], uint64(1)<<at.bit
	for l, i := range g.Of {
		if set>>l&1 == 0 && k.closed(i) && g.against(l, set) {
			set |= 1 << l
		}
	}
	return set
}

// blow gives gaps and freewheels that close against each other their impulses at once:
// -W·Bc·p = (1 + e)·W·x. The matrix has no positive element beside its diagonal, so that
// none of them pulls and no energy is made; momentum is kept.
//
//go:nosplit
func (k *Kernel) blow(g *Block, set uint64) {
	for r := set; r != 0; r &= r - 1 {
		i := g.Of[bits.TrailingZeros64(r)]
		k.trial[i] = k.rebound(i)
	}
	f := &k.factor
	f.rank = 0
	for r := set; r != 0; r &= r - 1 {
		l := bits.TrailingZeros64(r)
		i := g.Of[l]
		if k.t.Friction[i].Gap != nil {
			k.fresh[i] = false
			if k.set(i, Stuck); k.trial[i] > 0 {
				k.set(i, Free)
			}
		}
		k.trial[i] = -(1 + k.trial[i]) * k.slip[i]
		f.taken[f.rank] = l
		f.rank++
	}
	k.push(g)
	k.slips.mul(k.slip, k.x)
}

// rebound is the restitution of gap or freewheel i now.
//
//go:nosplit
func (k *Kernel) rebound(i int) float64 {
	g := k.t.Friction[i].Gap
	if g == nil || g.Restitution == 0 || 2*k.stalled > k.pile() || k.rests(i, -g.Restitution*k.slip[i]) {
		return 0
	}
	return g.Restitution
}

// against reports whether element l of a block works against, or not at all on, all of a set.
//
//go:nosplit
func (g *Block) against(l int, set uint64) bool {
	for r := set; r != 0; r &= r - 1 {
		if g.Gram[l*len(g.Of)+bits.TrailingZeros64(r)] < 0 {
			return false
		}
	}
	return true
}

// push gives the elements taken the impulses that change their slips by trial, by
// elimination; one that hangs on the others gets none.
//
//go:nosplit
func (k *Kernel) push(g *Block) {
	f, mc := &k.factor, len(g.Of)
	for q, i := range f.taken[:f.rank] {
		for c, j := range f.taken[:f.rank] {
			f.l[q*mc+c] = g.Gram[i*mc+j]
		}
		for p, j := range f.taken[:q] {
			part := f.l[q*mc+p] / f.l[p*mc+p]
			axpy(f.l[q*mc+p:q*mc+f.rank], -part, f.l[p*mc+p:p*mc+f.rank])
			k.trial[g.Of[i]] -= part * k.trial[g.Of[j]]
		}
		if own := g.Gram[i*mc+i]; f.l[q*mc+q] > 1e-11*own { // both negative
			f.l[q*mc+q] = math.Inf(-1)
		}
	}
	for q := f.rank - 1; q >= 0; q-- {
		i := g.Of[f.taken[q]]
		for c := q + 1; c < f.rank; c++ {
			k.trial[i] -= f.l[q*mc+c] * k.trial[g.Of[f.taken[c]]]
		}
		k.trial[i] /= f.l[q*mc+q]
	}
	for _, l := range f.taken[:f.rank] {
		k.pushes.axpy(k.x, k.trial[g.Of[l]], g.Of[l])
	}
}

// flight is the time in the air below which a rebound is none, s.
const flight = 1e-9

// rests reports whether a rebound of gap i at speed s ends at once, or in a pile of them
// within a stride.
//
//go:nosplit
func (k *Kernel) rests(i int, s float64) bool {
	least := flight
	if k.struck[i] > maxStruck {
		least = max(least, k.h/float64(k.t.strides()))
	}
	return s <= slipZero || 2*s < -least*k.slipRate(i)
}

// slipRate is the slip acceleration of element i under w: rates for few states.
//
//go:nosplit
func (k *Kernel) slipRate(i int) float64 {
	if k.t.Net != nil {
		k.calls.derive(k, k.xd, k.x, k.w, k.trial)
		return k.slips.dot(i, k.xd)
	}
	m, a := k.use(), 0.0
	for r, c := range k.t.W[i*k.t.N : (i+1)*k.t.N] {
		if c != 0 {
			a += c * (dotRow(m.A, r, k.x) + dotRow(m.B, r, k.w))
		}
	}
	return a
}

// closing is the closed gap or freewheel that an impulse closes fastest; -1 for none.
//
//go:nosplit
func (k *Kernel) closing() int {
	worst := -1
	for i, s := range k.slip {
		if k.closed(i) && (worst < 0 || s < k.slip[worst]) {
			worst = i
		}
	}
	return worst
}

// closed reports whether gap or freewheel i is closed and closes. A gap is that would
// close in less than what tells two instants apart.
//
//go:nosplit
func (k *Kernel) closed(i int) bool {
	f, s := &k.t.Friction[i], k.slip[i]
	return s < -slipZero && f.OneWay && (f.Gap == nil || k.mode[i] == Stuck || k.opening(i, k.x) <= -s*k.gap)
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

// terming is the largest term of the torque of contact i.
//
//go:nosplit
func (k *Kernel) terming(i int) float64 {
	most := 0.0
	if net := k.t.Net; net != nil {
		for p := net.WA.begin(i); p < net.WA.End[i]; p++ {
			most = max(most, math.Abs(net.WA.Val[p]*k.x[net.WA.Col[p]]))
		}
		return most / -k.mobility(i)
	}
	for j, c := range k.use().T[i*k.t.N : (i+1)*k.t.N] {
		most = max(most, math.Abs(c*k.x[j]))
	}
	return most
}
